"""The index of a commit in the bare mirror answers as that of the same files in a folder."""

import random
import subprocess
from pathlib import Path

import pytest

from bot.custody.mirror import Mirror
from bot.domain.ids import RepositoryId
from bot.retrieval.service import context_for, context_of_folder, search_for, store_of
from tests.unit.retrieval.test_context import QUERY
from tests.unit.retrieval.test_index import PROJECT, put


def git(root: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", "-C", str(root), *identity, *args], check=True, capture_output=True)


async def test_a_commit_and_a_folder_give_the_same(tmp_path: Path):
    root = put(tmp_path / "tree", PROJECT)
    (root / "link.py").symlink_to("app/mail.py")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(root, "commit", "-qm", "one")
    mirror = Mirror(tmp_path / "mirrors", RepositoryId(7))
    tree = await mirror.tree_of(await mirror.from_directory(root))
    found = await search_for(mirror, tree, QUERY)
    assert {one.path for one in found[:2]} == {"app/limits.py", "app/views.py"}
    made = await context_for(mirror, tree, QUERY, 2000)
    again = await context_for(mirror, tree, QUERY, 2000)
    assert made.text == again.text
    folder = context_of_folder(tmp_path / "index.db", root, QUERY, 2000)
    assert made.parts == folder.parts


async def test_a_second_commit_reads_only_its_new_blobs(tmp_path: Path):
    root = put(tmp_path / "tree", PROJECT)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    mirror = Mirror(tmp_path / "mirrors", RepositoryId(7))
    await search_for(mirror, await mirror.tree_of(await mirror.from_directory(root)), QUERY)
    put(root, {"app/mail.py": "def deliver_letters(): pass\n"})
    git(root, "commit", "-qam", "two")
    seen: list[tuple[int, int]] = []
    tree = await mirror.tree_of(await mirror.from_directory(root))
    found = await search_for(mirror, tree, "deliver letters", progress=lambda done, total: seen.append((done, total)))
    assert found[0].path == "app/mail.py"
    assert seen == [(1, 1)]


@pytest.mark.parametrize("seed", range(3))
async def test_carried_over_random_edits_ranking_and_context_are_those_of_a_new_index(tmp_path: Path, seed: int):
    chance, root = random.Random(seed), put(tmp_path / "tree", PROJECT)
    git(root, "init", "-q")
    carried = Mirror(tmp_path / "carried", RepositoryId(7))
    for number in range(4):
        for path in [path for path in sorted(root.rglob("*.py")) if chance.random() < 0.2]:
            path.unlink()
        edits = {
            f"app/{chance.choice('abc')}/limits_{chance.randrange(9)}.py": f"def rate_{chance.randrange(5)}(key):\n    return key\n"
            for _ in range(5)
        }
        put(root, {**edits, "app/keys.py": f"KEYS = {number}\n"})
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more")
        tree = await carried.tree_of(await carried.from_directory(root))
        afresh = Mirror(tmp_path / f"afresh_{number}", RepositoryId(7))
        await afresh.from_directory(root)
        assert await search_for(carried, tree, QUERY) == await search_for(afresh, tree, QUERY)
        assert await context_for(carried, tree, QUERY, 2000) == await context_for(afresh, tree, QUERY, 2000)


async def test_a_kept_tree_that_is_no_longer_in_the_mirror_costs_only_time(tmp_path: Path):
    root = put(tmp_path / "tree", PROJECT)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    first, second = (Mirror(tmp_path / name, RepositoryId(7)) for name in ("first", "second"))
    await search_for(first, await first.tree_of(await first.from_directory(root)), QUERY)
    put(root, {"app/mail.py": "def deliver_letters(): pass\n"})
    (root / "app/views.py").unlink()
    git(root, "commit", "-qam", "two")
    git(root, "checkout", "-q", "--orphan", "alone")
    git(root, "commit", "-qm", "without its past")
    tree = await second.tree_of(await second.from_directory(root))
    store_of(first).rename(store_of(second))
    found = await search_for(second, tree, "deliver letters")
    assert found[0].path == "app/mail.py"
    assert "app/views.py" not in {one.path for one in await search_for(second, tree, QUERY)}
