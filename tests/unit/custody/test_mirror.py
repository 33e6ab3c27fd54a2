from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.custody import git as git_room
from bot.custody.faults import DamagedResult, OverLimit, UpstreamFault
from bot.custody.mirror import EMPTY_TREE, Author, Mirror
from bot.custody.upstream import Upstream
from bot.domain.change import FileMode, TreeEntry
from bot.domain.errors import Transient
from bot.domain.ids import BlobId, CommitId, RepositoryId
from tests.unit.custody.local import DATE, Clone

ADA = Author("Ada", "ada@example.org")


def upstream(clone: Clone) -> Upstream:
    clone.git("config", "uploadpack.allowAnySHA1InWant", "true")
    return Upstream(os.fspath(clone.path), protocols="file")


async def test_a_commit_is_fetched_by_its_full_id(mirror: Mirror, clone: Clone) -> None:
    old = clone.commit({"a": "1"})
    clone.commit({"a": "2"})
    await mirror.fetch(upstream(clone), commits=[old])
    assert await mirror.file_at(old, "a") == b"1"


async def test_a_commit_that_is_here_is_not_asked_for_again(mirror: Mirror, clone: Clone) -> None:
    commit = clone.commit({"a": "1"})
    await mirror.fetch(upstream(clone), commits=[commit])
    await mirror.fetch(Upstream("https://nowhere.invalid/x.git"), commits=[commit])


async def test_a_pull_request_ref_must_point_where_it_was_said_to(mirror: Mirror, clone: Clone) -> None:
    first, second = clone.commit({"a": "1"}), clone.commit({"a": "2"})
    clone.git("update-ref", "refs/pull/7/head", second)
    await mirror.fetch(upstream(clone), refs={"refs/pull/7/head": second})
    assert await mirror.has(second)
    with pytest.raises(UpstreamFault, match="ref_moved"):
        await mirror.fetch(upstream(clone), refs={"refs/pull/7/head": first})
    assert not list((mirror.git_dir / "refs/incoming").iterdir())


async def test_a_branch_named_like_a_commit_is_refused(mirror: Mirror, clone: Clone) -> None:
    pinned = clone.commit({"a": "good"})
    evil = clone.commit({"a": "evil"})
    clone.git("update-ref", f"refs/heads/{pinned}", evil)
    with pytest.raises(UpstreamFault, match="ref_named_like_commit"):
        await mirror.fetch(upstream(clone), commits=[pinned])


async def test_an_absent_commit_is_not_replaced_by_anything(mirror: Mirror, clone: Clone) -> None:
    clone.commit({"a": "1"})
    with pytest.raises(UpstreamFault, match="commit_absent"):
        await mirror.fetch(upstream(clone), commits=[CommitId("d" * 40)])


@pytest.mark.parametrize("name", ["main", "abc1234", "HEAD", "--upload-pack=x", "D" * 40, "d" * 39])
async def test_nothing_but_a_whole_id_names_a_commit(mirror: Mirror, name: str) -> None:
    with pytest.raises(ValueError, match="not a whole object id"):
        await mirror.fetch(Upstream("https://nowhere.invalid/x"), commits=[CommitId(name)])
    with pytest.raises(ValueError, match="not a whole object id"):
        await mirror.tree_of(CommitId(name))


@pytest.mark.parametrize(
    "name", ["--upload-pack=x", "refs/heads/a:refs/heads/b", "HEAD", "refs/heads/*", "+refs/heads/a"]
)
async def test_a_ref_is_a_plain_full_name(mirror: Mirror, name: str) -> None:
    with pytest.raises(UpstreamFault, match="ref_name"):
        await mirror.fetch(Upstream("https://nowhere.invalid/x"), refs={name: CommitId("d" * 40)})


async def test_a_tree_or_blob_id_is_no_commit(mirror: Mirror, clone: Clone) -> None:
    clone.commit({"a": "1"})
    tree = CommitId(clone.git("rev-parse", "HEAD^{tree}"))
    with pytest.raises(UpstreamFault, match="not_a_commit"):
        await mirror.fetch(upstream(clone), commits=[tree])


async def test_an_upstream_that_does_not_answer_is_transient_and_its_token_stays_out_of_the_message(
    mirror: Mirror,
) -> None:
    silent = Upstream("http://127.0.0.1:9/x.git", token="ghs_secret", protocols="http")
    with pytest.raises(Transient) as caught:
        await mirror.fetch(silent, commits=[CommitId("d" * 40)])
    assert "ghs_secret" not in str(caught.value) + repr(silent)


async def test_other_protocols_than_the_named_one_are_closed(mirror: Mirror, clone: Clone) -> None:
    commit = clone.commit({"a": "1"})
    for url in (os.fspath(clone.path), f"file://{clone.path}", "ext::sh -c true", "ssh://localhost/x"):
        with pytest.raises(Transient, match="not allowed"):
            await mirror.fetch(Upstream(url), commits=[commit])


async def test_local_clones_are_imported_by_branch_tag_head_or_id(mirror: Mirror, clone: Clone) -> None:
    first = clone.commit({"a": "1"})
    clone.git("tag", "-a", "v1", "-m", "v1")
    second = clone.commit({"a": "2"})
    clone.write({"a": "not committed"})
    assert await mirror.from_directory(clone.path) == second
    assert await mirror.from_directory(clone.path, "main") == second
    assert await mirror.from_directory(clone.path, "v1") == first
    assert await mirror.from_directory(clone.path, first) == first
    with pytest.raises(UpstreamFault, match="commit_absent"):
        await mirror.from_directory(clone.path, "nothing")
    with pytest.raises(UpstreamFault, match="ref_name"):
        await mirror.from_directory(clone.path, "--upload-pack=x")


async def test_a_shallow_clone_is_imported_too(mirror: Mirror, clone: Clone, tmp_path: Path) -> None:
    clone.commit({"a": "1"})
    head = clone.commit({"a": "2"})
    clone.git("clone", "-q", "--depth=1", f"file://{clone.path}", os.fspath(tmp_path / "shallow"))
    assert await mirror.from_directory(tmp_path / "shallow") == head
    assert await mirror.file_at(head, "a") == b"2"


async def test_the_config_is_ours_again_whatever_it_became(mirror: Mirror) -> None:
    ours = (mirror.git_dir / "config").read_text()
    (mirror.git_dir / "config").write_text("[core]\n\tfsmonitor = evil\n")
    mirror.open()
    assert (mirror.git_dir / "config").read_text() == ours
    assert not (mirror.git_dir / "hooks").exists()


async def test_leftovers_of_a_killed_process_stop_nothing(mirror: Mirror, clone: Clone) -> None:
    commit = clone.commit({"a": "1"})
    (mirror.git_dir / "refs/custody" / f"c-{commit}.lock").write_text("")
    (mirror.git_dir / "objects/pack/tmp_pack_x").write_bytes(b"half")
    await mirror.fetch(upstream(clone), commits=[commit])
    assert await mirror.has(commit)


async def test_blobs_trees_and_commits_are_written_by_plumbing(mirror: Mirror, clone: Clone) -> None:
    base = await mirror.from_directory(clone.path) if clone.commit({"a": "1", "d/b": "2"}) else None
    assert base is not None
    tree = await mirror.tree_of(base)
    one, two, same = await mirror.write_blobs([b"one", b"\0" * 70_000, b"one"])
    assert one == same
    assert await mirror.blobs([one, two]) == {one: b"one", two: b"\0" * 70_000}
    new = await mirror.write_tree(
        tree,
        put=[TreeEntry("d", FileMode.EXECUTABLE, one), TreeEntry("a/x", FileMode.SYMLINK, two)],
        removed=["d/b", "a"],
    )
    assert [(entry.path, entry.mode.value) for entry in await mirror.entries(new)] == [
        ("a/x", "120000"),
        ("d", "100755"),
    ]
    commit = await mirror.commit_tree(new, [base], message="Say it\n", author=ADA, date=DATE)
    again = await mirror.commit_tree(new, [base], message="Say it\n", author=ADA, date=DATE)
    assert commit == again
    assert await mirror.has(commit)
    assert await mirror.merge_base(base, commit) == base


async def test_no_blobs_need_no_process_and_an_unknown_blob_makes_no_tree(mirror: Mirror) -> None:
    assert await mirror.write_blobs([]) == ()
    with pytest.raises(git_room.GitError):
        await mirror.write_tree(EMPTY_TREE, put=[TreeEntry("x", FileMode.REGULAR, BlobId("1" * 40))])


async def test_a_clean_merge_has_a_tree_and_a_conflict_has_none(mirror: Mirror, clone: Clone) -> None:
    root = clone.commit({"a": "1\n", "b": "1\n"})
    left = clone.commit({"a": "left\n"})
    clone.git("checkout", "-q", "-b", "side", root)
    right = clone.commit({"b": "right\n"})
    clash = clone.commit({"a": "right\n"})
    for commit in (left, clash):
        await mirror.from_directory(clone.path, commit)
    merged = await mirror.merge_tree(left, right)
    assert merged is not None
    assert [await mirror.blob(entry.blob) for entry in await mirror.entries(merged)] == [b"left\n", b"right\n"]
    assert await mirror.merge_tree(left, clash) is None


async def test_commits_without_common_history_have_no_merge_base(mirror: Mirror, clone: Clone) -> None:
    one = clone.commit({"a": "1"})
    clone.git("checkout", "-q", "--orphan", "other")
    two = clone.commit({"a": "2"})
    await mirror.from_directory(clone.path, one)
    await mirror.from_directory(clone.path, two)
    with pytest.raises(UpstreamFault, match="no_common_history"):
        await mirror.merge_base(one, two)


async def test_files_are_read_by_their_exact_path(mirror: Mirror, clone: Clone) -> None:
    clone.write({"d/a[1].txt": "x", "d/big": "y" * 100, "*": "star"})
    (clone.path / "link").symlink_to("d/a")
    commit = await mirror.from_directory(clone.path, clone.commit())
    assert await mirror.file_at(commit, "d/a[1].txt") == b"x"
    assert await mirror.file_at(commit, "*") == b"star"
    for absent in ("d/a*", "d", "link", "nope", "d/"):
        assert await mirror.file_at(commit, absent) is None
    with pytest.raises(OverLimit):
        await mirror.file_at(commit, "d/big", limit=10)


async def test_asking_for_an_object_that_is_not_here_is_damage(mirror: Mirror) -> None:
    with pytest.raises(DamagedResult):
        await mirror.blob(BlobId("1" * 40))
    with pytest.raises(DamagedResult):
        await mirror.sizes([BlobId(EMPTY_TREE)])


async def test_the_diff_for_people_obeys_no_attributes_and_shows_what_is_hidden(mirror: Mirror, clone: Clone) -> None:
    old = clone.commit({".gitattributes": "* -diff\n*.py diff=evil\n", "a.py": "x = 1\n"})
    new = clone.commit({"a.py": "x = 2 \u202e\n"})
    trees = [await mirror.tree_of(await mirror.from_directory(clone.path, commit)) for commit in (old, new)]
    shown = await mirror.human_diff(*trees)
    assert "-x = 1" in shown
    assert "+x = 2 <U+202E>" in shown
    assert (await mirror.human_diff(*trees, limit=40)).endswith("[cut after 40 bytes]\n")


async def test_repositories_are_kept_apart_by_number(tmp_path: Path, clone: Clone) -> None:
    one, two = Mirror(tmp_path / "m", RepositoryId(1)), Mirror(tmp_path / "m", RepositoryId(2))
    commit = await one.from_directory(clone.path, clone.commit({"a": "1"}))
    two.open()
    assert await one.has(commit)
    assert not await two.has(commit)
