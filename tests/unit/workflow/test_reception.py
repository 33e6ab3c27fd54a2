"""The desk behind the door: what leads to nothing is done at once, what may lead to something gets a workflow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.domain.errors import Transient
from bot.domain.event import Actor
from bot.domain.ids import DeliveryId
from bot.providers.store.port import Delivery
from bot.providers.store.sql import Store, open_store, sqlite_url
from bot.workflow.reception import Reception
from bot.workflow.services import Services
from tests.unit.stages.intake.builders import comment, issue, payload, pull
from tests.unit.stages.intake.forges import Forges

TALK = payload("created", issue=issue(), comment=comment("I agree."))
COMMAND = payload("created", issue=issue(), comment=comment("/agent run"))
ELSEWHERE = payload("synchronize", pull_request=pull())


@dataclass
class Desk:
    """A reception over a real store, with the queue written down."""

    store: Store
    forges: Forges = field(default_factory=Forges)
    queued: list[DeliveryId] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = SimpleNamespace(deliveries=self.store.deliveries, tasks=self.store.tasks, label="agent")
        self.reception = Reception(cast(Services, known), self.forges, self._queue)

    async def _queue(self, delivery: DeliveryId) -> None:
        if self.faults:
            raise self.faults.pop()
        self.queued.append(delivery)

    async def comes(self, identifier: str, body: dict[str, Any], event: str = "issue_comment") -> bool:
        raw = json.dumps(body | {"nonce": identifier}).encode()
        return await self.reception.accept(Delivery(DeliveryId(identifier), event, raw, "2026-11-29T10:00:00+00:00"))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """At work until nothing waits."""
        work = asyncio.create_task(self.reception.work())
        yield
        while self.reception.waiting and not work.done():  # noqa: ASYNC110 - what waits is a set, not an event
            await asyncio.sleep(0.005)
        work.cancel()
        if work.done():
            work.result()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    store = open_store(sqlite_url(tmp_path / "store.db"))
    yield Desk(store)
    store.close()


async def test_what_leads_to_nothing_is_finished_without_a_workflow(desk: Desk):
    async with desk.open():
        assert await desk.comes("talk", TALK)
        assert await desk.comes("elsewhere", ELSEWHERE, "pull_request")
    assert desk.queued == []
    assert await desk.store.deliveries.unfinished() == ()
    assert desk.forges.asked == []


async def test_a_command_gets_a_workflow_and_nobody_is_asked_about_twice(desk: Desk):
    async with desk.open():
        await desk.comes("command", COMMAND)
    assert desk.queued == [DeliveryId("command")]
    assert desk.forges.asked == []
    assert await desk.store.deliveries.unfinished() == (DeliveryId("command"),)


async def test_the_same_delivery_waits_once(desk: Desk):
    assert await desk.comes("command", COMMAND)
    assert not await desk.comes("command", COMMAND)
    async with desk.open():
        assert desk.reception.waiting == {DeliveryId("command")}
    assert desk.queued == [DeliveryId("command")]


async def test_what_cannot_be_told_now_is_left_to_a_workflow(desk: Desk):
    asked = []

    async def no_answer() -> Actor:
        asked.append("bot")
        raise Transient("GitHub does not answer")

    desk.forges.bot = no_answer  # type: ignore[method-assign]
    async with desk.open():
        await desk.comes("talk", TALK)
        await desk.comes("more", TALK)
    assert desk.queued == [DeliveryId("talk"), DeliveryId("more")]
    assert asked == ["bot"]


async def test_a_fault_at_the_desk_leaves_that_delivery_to_the_sweep_and_no_other(desk: Desk):
    desk.faults.append(RuntimeError("the queue is broken"))
    await desk.comes("first", COMMAND)
    await desk.comes("second", COMMAND | {"x": 1})
    with pytest.raises(RuntimeError, match="broken"):
        async with desk.open():
            pass
    assert desk.reception.waiting == {DeliveryId("second")}
    async with desk.open():
        pass
    assert desk.queued == [DeliveryId("second")]
    assert set(await desk.store.deliveries.unfinished()) == {DeliveryId("first"), DeliveryId("second")}
