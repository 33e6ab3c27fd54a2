"""From one tree to another in a directory where more stands than either: what is tracked is right, what was set up stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.custody.export import STATE, populate, settle
from bot.custody.faults import DamagedResult, TreeMismatch
from bot.custody.importer import capture
from bot.custody.mirror import Mirror
from bot.domain.change import FileMode
from bot.domain.ids import CommitId, TreeId
from bot.providers.sandbox.port import SandboxLost
from tests.unit.custody.local import Clone, LocalSandbox

FIRST: dict[str, str | bytes] = {
    "same": "same\n",
    "changed": "before\n",
    "gone": "gone\n",
    "deep/only/here": "x\n",
    "was_file": "file\n",
    "was_dir/inside": "y\n",
    "run.sh": "#!/bin/sh\n",
}


async def two(clone: Clone, mirror: Mirror) -> tuple[CommitId, TreeId, CommitId, TreeId]:
    first = clone.commit(FIRST)
    for path in ("gone", "deep", "was_file", "was_dir"):
        clone.git("rm", "-q", "-r", path)
    (clone.path / "run.sh").chmod(0o755)
    clone.link("link", "same")
    second = clone.commit(
        {"changed": "after\n", "was_file/inside": "z\n", "was_dir": "file\n", "empty": "", "odd\nname": "o\n"}
    )
    for commit in (first, second):
        await mirror.from_directory(clone.path, commit)
    return first, await mirror.tree_of(first), second, await mirror.tree_of(second)


def on_disk(path: Path) -> tuple[FileMode, bytes]:
    """As git would store it, read without any of our own code; no parent may be a link."""
    assert path.parent.resolve() == path.parent
    if path.is_symlink():
        return FileMode.SYMLINK, os.fsencode(path.readlink())
    executable = path.stat().st_mode & 0o100
    return FileMode.EXECUTABLE if executable else FileMode.REGULAR, path.read_bytes()


async def shell(sandbox: LocalSandbox, command: str) -> str:
    result = await sandbox.run(command, timeout_seconds=30)
    assert result.exit_code == 0, result
    return result.stdout


async def test_only_what_differs_crosses_and_what_was_set_up_stays(
    clone: Clone, mirror: Mirror, sandbox: LocalSandbox
) -> None:
    _, one, second, other = await two(clone, mirror)
    await populate(mirror, sandbox, one)
    await shell(sandbox, "mkdir -p .venv/bin deep/cache && echo made | tee .venv/bin/tool deep/cache/x")
    assert await settle(mirror, sandbox, other) == 7
    assert await shell(
        sandbox, "cat changed was_file/inside was_dir .venv/bin/tool deep/cache/x; ls deep; test -x run.sh"
    ) == ("after\nz\nfile\nmade\nmade\ncache\n")
    assert (await capture(mirror, sandbox, second)).tree != other, "deep/cache is not ignored, so it is a change"
    await shell(sandbox, "rm -r deep")
    assert (await capture(mirror, sandbox, second)).tree == other
    assert (
        await shell(sandbox, "git status --porcelain; git log --oneline | wc -l; git show HEAD:changed") == "1\nafter\n"
    )


async def test_there_and_back_crosses_nothing_that_is_there(
    clone: Clone, mirror: Mirror, sandbox: LocalSandbox
) -> None:
    _, one, _, other = await two(clone, mirror)
    await populate(mirror, sandbox, one)
    assert await settle(mirror, sandbox, one) == 0
    await settle(mirror, sandbox, other)
    await settle(mirror, sandbox, one)
    assert await settle(mirror, sandbox, one) == 0
    assert sorted((await shell(sandbox, "git ls-files; git status --porcelain")).split()) == sorted(FIRST)


@pytest.mark.parametrize(
    ("to", "spoil"),
    [
        (
            1,
            "echo more >> same; mv was_dir moved; ln -s moved was_dir; echo z > moved/inside; rm -r deep; mkdir ../else; ln -s ../else deep; rm -rf .git",
        ),
        (
            1,
            "rm same; ln -s ../nothing same; rm -r deep; echo a-file > deep; rm ../.pullwright/tree; rm -rf .git; ln -s ../elsewhere .git",
        ),
        (
            0,
            "rm same; mkdir -p same/deep; echo x > same/deep/file; rm changed; printf %040d 0 > ../.pullwright/tree; chmod 777 gone",
        ),
        (
            1,
            "touch -r same stamp; printf sane\\n > same; touch -r stamp same; chmod +x changed; rm ../.pullwright/listing-*",
        ),
    ],
)
async def test_whatever_a_set_up_did_to_the_files_they_are_put_back(
    clone: Clone, mirror: Mirror, sandbox: LocalSandbox, to: int, spoil: str
) -> None:
    _, one, _, other = await two(clone, mirror)
    target = (one, other)[to]
    await populate(mirror, sandbox, one)
    await shell(sandbox, spoil)
    await settle(mirror, sandbox, target)
    for entry in await mirror.entries(target):
        assert on_disk(sandbox.work / entry.path) == (entry.mode, await mirror.blob(entry.blob)), entry.path
    assert await settle(mirror, sandbox, target) == 0


async def test_a_cache_that_lies_is_not_asked(clone: Clone, mirror: Mirror, sandbox: LocalSandbox) -> None:
    """What stood in it before would make the changed file pass for the old one."""
    _, one, _, _ = await two(clone, mirror)
    await populate(mirror, sandbox, one)
    lie = """python3 - <<'END'
import os
open("same", "w").write("lie\\n")
s = os.lstat("same")
stamp = f"{s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino} {s.st_size} {s.st_mode}"
good = os.popen("git rev-parse HEAD:same").read().strip()
open("../.pullwright/cache", "w").write(f"same\\n{stamp}\\n100644\\n{good}")
END"""
    await shell(sandbox, lie)
    assert await settle(mirror, sandbox, one) == 1
    assert await shell(sandbox, "cat same") == "same\n"


class Lying(LocalSandbox):
    """Says other things than the script, which the worker must notice."""

    wanted = b""
    tree: bytes | None = None

    async def read(self, path: str, *, limit: int) -> bytes:
        if path == f"{STATE}/tree":
            if self.tree is None:
                raise FileNotFoundError(path)
            return self.tree
        return self.wanted if path == f"{STATE}/wanted" and self.wanted else await super().read(path, limit=limit)


async def test_an_answer_that_asks_for_foreign_content_is_refused(
    clone: Clone, mirror: Mirror, sandbox: LocalSandbox
) -> None:
    _, one, _, other = await two(clone, mirror)
    secret = await mirror.write_blobs([b"of another tree"])
    lying = Lying(sandbox.root)
    await populate(mirror, lying, one)
    for wanted in (secret[0].encode(), b"\xff ../x"):
        lying.wanted, lying.tree = wanted, wanted
        with pytest.raises(DamagedResult):
            await settle(mirror, lying, other)
    lying.wanted, lying.tree = (await mirror.entries(other))[0].blob.encode(), other.encode()
    with pytest.raises(TreeMismatch):
        await settle(mirror, lying, other)


class Losing(LocalSandbox):
    """Is gone when one of the uploads arrives."""

    async def write(self, path: str, data: bytes) -> None:
        if path.endswith("part-1"):
            raise SandboxLost("gone")
        await super().write(path, data)


async def test_a_large_tree_goes_in_in_parts_and_a_loss_on_the_way_is_told(
    clone: Clone, mirror: Mirror, sandbox: LocalSandbox
) -> None:
    large = {f"large-{number}": bytes([number]) * (5 << 20) for number in range(3)}
    commit = await mirror.from_directory(clone.path, clone.commit({**large, "small": "s\n"}))
    tree = await mirror.tree_of(commit)
    await populate(mirror, sandbox, tree)
    for name, data in large.items():
        assert on_disk(sandbox.work / name)[1] == data
    assert sorted(path.name for path in sandbox.root.joinpath(".pullwright").glob("part-*")) == []
    with pytest.raises(SandboxLost):
        await populate(mirror, Losing(sandbox.root), tree)
