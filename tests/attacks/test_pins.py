"""Upstreams and checkouts that pass one commit for another (cases N01-N07)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.custody.faults import TreeMismatch, UpstreamFault
from bot.custody.mirror import Mirror
from bot.custody.pins import Pin, check, place, resolve, tree_on_disk
from bot.custody.upstream import Upstream, local_url
from bot.domain.ids import CommitId, RepositoryId
from tests.attacks.conftest import Control
from tests.unit.custody.local import Clone


@pytest.fixture
def upstream(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "upstream")
    clone.commit({"tool.py": "good\n", "bin/run": "#!/bin/sh\n"})
    return clone


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirrors", RepositoryId(7))


def pin(clone: Clone, commit: str) -> Pin:
    return Pin(Upstream(local_url(clone.path), protocols="file"), CommitId(commit))


def evil_ref(clone: Clone, name: str) -> None:
    good = clone.head()
    evil = clone.commit({"tool.py": "evil\n"})
    clone.git("update-ref", name, evil)
    clone.git("reset", "-q", "--hard", good)


async def test_positive_control_a_pin_is_placed_and_stands_there(upstream: Clone, mirror: Mirror, tmp_path: Path):
    tree = await place(mirror, pin(upstream, upstream.head()), tmp_path / "out")
    assert (tmp_path / "out/tool.py").read_text() == "good\n"
    assert tree == upstream.git("rev-parse", "HEAD^{tree}")
    check(tmp_path / "out", tree)


async def test_n01_a_branch_named_like_the_pin_never_stands_in_for_it(
    upstream: Clone, mirror: Mirror, tmp_path: Path, control: Control
):
    good = upstream.head()
    evil_ref(upstream, f"refs/heads/{good}")
    upstream.git("clone", "-q", "--branch", good, ".", str(tmp_path / "naive"))
    control((tmp_path / "naive/tool.py").read_text() == "evil\n", "clone --branch takes the branch")
    with pytest.raises(UpstreamFault, match="ref_named_like_commit"):
        await resolve(mirror, pin(upstream, good))


async def test_n01_a_branch_named_like_a_commit_is_seen_although_it_came_after_the_pinned_one_was_fetched(
    upstream: Clone, mirror: Mirror
):
    good = upstream.head()
    await resolve(mirror, pin(upstream, good))
    evil_ref(upstream, f"refs/heads/{'ab' * 20}")
    with pytest.raises(UpstreamFault, match="ref_named_like_commit"):
        await resolve(mirror, pin(upstream, good))


async def test_n02_an_absent_commit_is_not_replaced_by_a_branch_of_that_name(
    upstream: Clone, mirror: Mirror, tmp_path: Path, control: Control
):
    absent = "ab" * 20
    evil_ref(upstream, f"refs/heads/{absent}")
    upstream.git("clone", "-q", "--branch", absent, ".", str(tmp_path / "naive"))
    control((tmp_path / "naive/tool.py").read_text() == "evil\n", "clone --branch takes the branch")
    with pytest.raises(UpstreamFault):
        await resolve(mirror, pin(upstream, absent))
    upstream.git("update-ref", "-d", f"refs/heads/{absent}")
    with pytest.raises(UpstreamFault, match="commit_absent"):
        await resolve(mirror, pin(upstream, absent))


async def test_n03_a_short_id_is_no_pin(upstream: Clone, mirror: Mirror, control: Control):
    short = upstream.head()[:10]
    evil_ref(upstream, f"refs/tags/{short}")
    control(upstream.git("show", f"refs/tags/{short}:tool.py") == "evil", "a tag may bear the name")
    with pytest.raises(UpstreamFault, match="pin_not_whole"):
        await resolve(mirror, pin(upstream, short))


async def test_n04_a_commit_that_no_branch_leads_to_is_refused(upstream: Clone, mirror: Mirror, control: Control):
    good = upstream.head()
    of_a_fork = upstream.commit({"tool.py": "evil\n"})
    upstream.git("reset", "-q", "--hard", good)
    upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
    control(upstream.git("cat-file", "-t", of_a_fork) == "commit", "the upstream can serve it by its id")
    with pytest.raises(UpstreamFault, match=r"pin_unreachable|commit_absent"):
        await resolve(mirror, pin(upstream, of_a_fork))
    assert await resolve(mirror, pin(upstream, good))


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
async def test_n05_tampering_that_git_is_told_not_to_see_is_seen(flag: str, upstream: Clone, control: Control):
    tree = upstream.git("rev-parse", "HEAD^{tree}")
    assert tree_on_disk(upstream.path) == tree
    upstream.git("update-index", flag, "tool.py")
    (upstream.path / "tool.py").write_text("evil\n")
    control(upstream.git("status", "--porcelain") == "", "git status is empty")
    with pytest.raises(TreeMismatch, match="pin_tampered"):
        check(upstream.path, tree)  # type: ignore[arg-type]


async def test_n06_a_file_that_ignore_rules_hide_is_seen(upstream: Clone, control: Control):
    tree = upstream.git("rev-parse", "HEAD^{tree}")
    (upstream.path / ".git/info").mkdir(exist_ok=True)
    (upstream.path / ".git/info/exclude").write_text("evil.py\n")
    (upstream.path / "evil.py").write_text("evil\n")
    control(upstream.git("status", "--porcelain") == "", "git status is empty")
    with pytest.raises(TreeMismatch, match="pin_tampered"):
        check(upstream.path, tree)  # type: ignore[arg-type]


async def test_n06_a_link_a_mode_and_a_missing_file_are_seen(upstream: Clone, control: Control):
    tree = upstream.git("rev-parse", "HEAD^{tree}")
    control(tree_on_disk(upstream.path) == tree, "untouched it is the tree")
    (upstream.path / "bin/run").chmod(0o755)
    assert tree_on_disk(upstream.path) != tree
    (upstream.path / "bin/run").unlink()
    assert tree_on_disk(upstream.path) != tree
    (upstream.path / "bin/run").symlink_to("../tool.py")
    assert tree_on_disk(upstream.path) != tree


async def test_n07_a_replaced_commit_gives_its_own_files(
    upstream: Clone, mirror: Mirror, tmp_path: Path, control: Control
):
    good = upstream.head()
    evil = upstream.commit({"tool.py": "evil\n"})
    upstream.git("replace", good, evil)
    control(upstream.git("show", f"{good}:tool.py") == "evil", "an ordinary git shows the other's")
    await place(mirror, pin(upstream, good), tmp_path / "out")
    assert (tmp_path / "out/tool.py").read_text() == "good\n"


async def test_a_pin_with_links_is_refused(upstream: Clone, mirror: Mirror, tmp_path: Path):
    upstream.link("link", "tool.py")
    with pytest.raises(UpstreamFault, match="pin_holds_link"):
        await place(mirror, pin(upstream, upstream.commit()), tmp_path / "out")
