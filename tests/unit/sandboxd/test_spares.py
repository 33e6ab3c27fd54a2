"""Starting ahead, without any sandbox: what is told apart is who gets which, and that none is forgotten."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.sandbox import Sandbox
from bot.sandboxd.spares import Spares
from bot.sandboxd.templates import Template, base_template

BASE, OTHER, THIRD = base_template(), Template("other"), Template("third")


class Made:
    """What a sandbox is to its spares: alive or gone, and killed in the end."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self.gone = asyncio.Event()

    async def kill(self) -> None:
        self.gone.set()


class Starter:
    """Makes them, slowly; `faults` are raised first."""

    def __init__(self) -> None:
        self.made: list[Made] = []
        self.faults: list[Exception] = []

    async def __call__(self, template: Template) -> Sandbox:
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop()
        self.made.append(Made(template))
        return cast(Sandbox, self.made[-1])

    def alive(self) -> list[str]:
        return [made.template.name for made in self.made if not made.gone.is_set()]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_second_is_there_before_it_is_asked_for():
    start = Starter()
    spares = Spares(start)
    first = await spares.take(BASE)
    await settle()
    assert len(start.made) == 2
    second = await spares.take(BASE)
    assert second is cast(Sandbox, start.made[1])
    assert second is not first


async def test_takers_at_the_same_time_get_one_each():
    start = Starter()
    spares = Spares(start)
    taken = await asyncio.gather(*(spares.take(BASE) for _ in range(9)))
    assert len(set(map(id, taken))) == 9


async def test_a_spare_that_died_is_not_given_out():
    start = Starter()
    spares = Spares(start)
    await spares.take(BASE)
    await settle()
    start.made[1].gone.set()
    assert not (await spares.take(BASE)).gone.is_set()


async def test_a_spare_that_did_not_start_is_started_by_who_wants_it_and_the_reason_is_theirs():
    start = Starter()
    spares = Spares(start)
    await spares.take(BASE)
    start.faults = [OSError("no process")]
    await settle()
    assert (await spares.take(BASE)) is cast(Sandbox, start.made[1])
    start.faults = [IsolationUnavailable("no namespaces"), OSError("no process")]
    await settle()
    with pytest.raises(IsolationUnavailable):
        await spares.take(BASE)


async def test_only_the_templates_in_use_have_one_and_closing_ends_all():
    start = Starter()
    spares = Spares(start)
    taken = [await spares.take(template) for template in (BASE, OTHER, THIRD)]
    await settle()
    for sandbox in taken:
        await sandbox.kill()
    assert sorted(start.alive()) == ["other", "third"]
    last = asyncio.create_task(spares.take(BASE))
    await asyncio.sleep(0)
    await spares.close()
    await (await last).kill()
    await settle()
    assert start.alive() == []


async def test_a_taker_that_leaves_while_it_waits_leaves_nothing_running():
    start = Starter()
    spares = Spares(start)
    await (await spares.take(BASE)).kill()
    leaving = asyncio.create_task(spares.take(BASE))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await spares.close()
    assert start.alive() == []
