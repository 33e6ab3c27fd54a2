"""The index of a commit in the bare mirror answers as that of the same files in a folder."""

import subprocess
from pathlib import Path

from bot.custody.mirror import Mirror
from bot.domain.ids import RepositoryId
from bot.retrieval.service import context_for, context_of_folder, search_for
from tests.unit.retrieval.test_context import QUERY
from tests.unit.retrieval.test_index import PROJECT, put


def git(root: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
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
