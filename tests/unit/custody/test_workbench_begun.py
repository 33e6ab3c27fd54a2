"""A sandbox that is begun while something else is waited for: an act takes it up, or it is ended as if nobody had asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bot.custody.mirror import Mirror
from bot.custody.workbench import BenchSettings, Workbench
from bot.domain.errors import Transient
from bot.domain.ids import RepositoryId, TreeId
from bot.providers.sandbox.port import Sandbox
from tests.unit.custody.local import Clone, LocalSandbox


class Box(LocalSandbox):
    """Counts its end; commands wait while `stuck`."""

    ended = 0
    stuck = False

    async def run(self, command: str, **options):
        if self.stuck:
            await asyncio.Event().wait()
        return await super().run(command, **options)

    async def kill(self) -> None:
        self.ended += 1


class Makes:
    """Gives out boxes as soon as `go` is set, or fails with `fault` once."""

    def __init__(self, root: Path, *, stuck: bool = False, fault: Exception | None = None) -> None:
        self.root, self.stuck, self.fault = root, stuck, fault
        self.boxes: list[Box] = []
        self.go, self.asked, self.given = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.go.set()

    async def create(
        self, *, template: str, labels: Mapping[str, str], lifetime_seconds: int, egress: Sequence[str] = ()
    ) -> Sandbox:
        self.asked.set()
        await self.go.wait()
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        self.boxes.append(Box(self.root / str(len(self.boxes))))
        self.boxes[-1].stuck = self.stuck
        self.given.set()
        return self.boxes[-1]

    async def reap(self, labels: Mapping[str, str]) -> int:
        return 0

    async def snapshot_of(self, name: str) -> str | None:
        return None

    async def forget(self, prefix: str, *, but: str) -> None:
        raise AssertionError(prefix, but)


async def bench_of(tmp_path: Path, makes: Makes) -> tuple[Workbench, TreeId]:
    clone, mirror = Clone(tmp_path / "clone"), Mirror(tmp_path / "m", RepositoryId(1))
    base = await mirror.from_directory(clone.path, clone.commit({"a": "1\n"}))
    return Workbench(makes, mirror, base, BenchSettings("base", {"task": "t"})), await mirror.tree_of(base)


async def look(sandbox: Sandbox) -> bytes:
    return await sandbox.read("/home/user/repo/a", limit=10)


async def test_an_act_takes_up_what_was_begun_and_nothing_is_made_twice(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes")
    bench, tree = await bench_of(tmp_path, makes)
    bench.begin(tree)
    bench.begin(tree)
    await asyncio.wait_for(makes.asked.wait(), 10)
    assert await bench.act(tree, look) == b"1\n"
    bench.begin(tree)
    assert await bench.act(tree, look) == b"1\n"
    assert len(makes.boxes) == 1
    await bench.close()
    assert makes.boxes[0].ended == 1


async def test_after_a_disturbance_a_fresh_one_is_begun(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes")
    bench, tree = await bench_of(tmp_path, makes)
    await bench.act(tree, look)
    bench.disturbed()
    bench.begin(tree)
    await bench.act(tree, look)
    assert [box.ended for box in makes.boxes] == [1, 0]


async def test_what_goes_wrong_with_it_is_the_acts_to_meet_and_the_next_one_is_made_anew(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes", fault=Transient("not now"))
    bench, tree = await bench_of(tmp_path, makes)
    bench.begin(tree)
    with pytest.raises(Transient, match="not now"):
        await bench.act(tree, look)
    assert await bench.act(tree, look) == b"1\n"


async def test_a_fault_that_no_act_met_is_nobodys(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes", fault=Transient("not now"))
    bench, tree = await bench_of(tmp_path, makes)
    bench.begin(tree)
    await asyncio.wait_for(makes.asked.wait(), 10)
    assert (await bench.attempts("a step")).all == ()
    await bench.close()


async def test_one_that_is_being_made_when_the_work_ends_is_ended_as_soon_as_it_has_a_name(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes")
    makes.go.clear()
    bench, tree = await bench_of(tmp_path, makes)
    bench.begin(tree)
    await asyncio.wait_for(makes.asked.wait(), 10)
    closing = asyncio.create_task(bench.close())
    await asyncio.sleep(0)
    assert not closing.done()
    makes.go.set()
    await asyncio.wait_for(closing, 10)
    assert [box.ended for box in makes.boxes] == [1]


async def test_one_that_is_being_filled_when_the_work_ends_is_not_waited_for(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes", stuck=True)
    bench, tree = await bench_of(tmp_path, makes)
    bench.begin(tree)
    await asyncio.wait_for(makes.given.wait(), 10)
    await asyncio.wait_for(bench.close(), 10)
    assert [box.ended for box in makes.boxes] == [1]
