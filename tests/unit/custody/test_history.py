"""A clone's history as facts, and the one commit of it that a trial may know."""

from __future__ import annotations

import pytest

from bot.custody.digest import borrowed
from bot.custody.faults import UpstreamFault
from bot.custody.history import walk
from bot.custody.mirror import Mirror
from bot.domain.change import CommitFacts
from tests.unit.custody.local import Clone


async def told(clone: Clone, most: int = 100) -> list[CommitFacts]:
    async with borrowed(clone.path) as mirror:
        return [facts async for facts in walk(mirror, most)]


async def test_each_commit_is_compared_with_its_first_parent(clone: Clone):
    root = clone.commit({"a.py": "1\n2\n"})
    clone.git("checkout", "-q", "-b", "work")
    clone.commit({"b\tc.py": "x\n"})
    clone.commit({f"{'d' * 40}": b"\0\1"})
    clone.git("checkout", "-q", "main")
    second = clone.commit({"a.py": "1\n3\n4\n"})
    clone.git("merge", "-q", "--no-ff", "-m", "Merge work\n\nSays why.", "work")
    merge, middle, first = await told(clone)
    assert (merge.parent, middle.id, middle.parent, first.id, first.parent) == (second, second, root, root, None)
    assert merge.message == "Merge work\n\nSays why.\n"
    assert [change.path for change in merge.changes] == ["b\tc.py", "d" * 40]
    assert (merge.lines, middle.lines) == (1, 3)
    assert [(change.path, change.kind) for change in middle.changes] == [("a.py", "modified")]
    assert first.changes == ()
    assert [facts.id for facts in await told(clone, 2)] == [merge.id, second]


async def test_an_empty_commit_changes_nothing_and_an_empty_clone_has_none(clone: Clone):
    with pytest.raises(UpstreamFault, match="commit_absent"):
        await told(clone)
    clone.commit({"a.py": "1\n"})
    clone.git("commit", "-q", "--allow-empty", "-m", "nothing")
    assert (await told(clone))[0].changes == ()


async def test_a_commit_imported_alone_brings_nothing_that_came_before_or_after(clone: Clone, mirror: Mirror):
    clone.commit({"a.py": "before\n"})
    base = clone.commit({"a.py": "base\n"})
    after = clone.commit({"a.py": "after\n", "test_a.py": "hidden\n"})
    assert await mirror.from_directory(clone.path, base, alone=True) == base
    store = ("--git-dir", str(mirror.git_dir), "cat-file", "--batch-all-objects", "--batch-check")
    listed = clone.git(*store)
    assert sorted(line.split(" ")[1] for line in listed.splitlines()) == ["blob", "commit", "tree"]
    assert await mirror.file_at(base, "a.py") == b"base\n"
    assert not await mirror.has(after)
    assert await mirror.from_directory(clone.path, base) == base
