"""A sandbox that is gone before its time costs nothing but time: another is made from the tree that the worker holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bot.custody.mirror import Mirror
from bot.custody.workbench import BenchSettings, Workbench
from bot.domain.ids import CommitId, RepositoryId
from bot.providers.sandbox.port import Sandbox, SandboxLost
from tests.unit.custody.local import Clone, LocalSandbox

LABELS = {"task": "t", "purpose": "p"}


class Makes:
    """A sandbox of its own at every call; `orphans` are those of which nobody kept the id."""

    def __init__(self, root: Path, orphans: int = 0) -> None:
        self.root, self.orphans, self.made = root, orphans, 0

    async def create(
        self, *, template: str, labels: Mapping[str, str], lifetime_seconds: int, egress: Sequence[str] = ()
    ) -> Sandbox:
        assert not self.orphans, "the name is taken"
        self.made += 1
        return LocalSandbox(self.root / str(self.made))

    async def reap(self, labels: Mapping[str, str]) -> int:
        assert labels == LABELS
        gone, self.orphans = self.orphans, 0
        return gone

    async def snapshot_of(self, name: str) -> str | None:
        return None

    async def forget(self, prefix: str, *, but: str) -> None:
        raise AssertionError(prefix, but)


async def bench_of(tmp_path: Path, makes: Makes) -> tuple[Workbench, Mirror, CommitId]:
    clone = Clone(tmp_path / "clone")
    mirror = Mirror(tmp_path / "m", RepositoryId(1))
    base = await mirror.from_directory(clone.path, clone.commit({"a": "1\n"}))
    return Workbench(makes, mirror, base, BenchSettings("base", LABELS)), mirror, base


async def test_m6_a_sandbox_lost_between_edit_and_test_is_made_again_from_the_same_tree(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes")
    bench, mirror, base = await bench_of(tmp_path, makes)
    seen: list[bytes] = []

    async def work(sandbox: Sandbox) -> str:
        seen.append(await sandbox.read("/home/user/repo/a", limit=10))
        if len(seen) < 3:
            raise SandboxLost("gone")
        return "tested"

    assert await bench.act(await mirror.tree_of(base), work) == "tested"
    assert seen == [b"1\n"] * 3
    assert makes.made == 3


async def test_m6_one_that_is_lost_again_and_again_is_given_back_to_the_queue(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes")
    bench, mirror, base = await bench_of(tmp_path, makes)

    async def work(_sandbox: Sandbox) -> None:
        raise SandboxLost("gone")

    with pytest.raises(SandboxLost):
        await bench.act(await mirror.tree_of(base), work)
    assert makes.made == 3


async def test_m7_a_sandbox_nobody_kept_the_id_of_is_ended_before_another_is_made(tmp_path: Path) -> None:
    makes = Makes(tmp_path / "boxes", orphans=1)
    bench, mirror, base = await bench_of(tmp_path, makes)

    async def work(sandbox: Sandbox) -> bytes:
        return await sandbox.read("/home/user/repo/a", limit=10)

    assert await bench.act(await mirror.tree_of(base), work) == b"1\n"
