"""The first commit of a repository: from texts, from a directory, or from another repository."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from bot.custody.git import git
from bot.emulators.github.gitside.bare import ZERO, Bare, Placement
from bot.emulators.github.gitside.commits import Draft, Identity, write_commit

_WHEN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


async def commit_files(bare: Bare, branch: str, placements: list[Placement]) -> None:
    """One root commit on `branch` that holds the given files."""
    lines = b"".join(f"{item.mode} {item.sha}\t{item.path}".encode() + b"\0" for item in placements)
    index = {"GIT_INDEX_FILE": os.fspath(bare.path / "seed-index")}
    await bare.run("update-index", "-z", "--index-info", stdin=lines, env=index)
    tree = (await bare.run("write-tree", env=index)).stdout.decode().strip()
    author = Identity("Octo Org", "octo-org@users.noreply.github.com", _WHEN)
    sha = await write_commit(bare, Draft(tree, (), "Initial commit\n", author, author))
    await bare.move(f"refs/heads/{branch}", sha, ZERO)


async def from_texts(bare: Bare, branch: str, contents: Mapping[str, str]) -> None:
    placements = [Placement(path, "100644", await bare.write("blob", text.encode())) for path, text in contents.items()]
    await commit_files(bare, branch, placements)


async def from_directory(bare: Bare, branch: str, root: Path) -> None:
    """Every file below `root` but `.git`, with its executable bit; links stay links."""
    found = [(path.relative_to(root).as_posix(), *_content(path)) for path in files_below(root)]
    shas = await _packed(bare, [content for _, _, content in found])
    await commit_files(
        bare, branch, [Placement(name, mode, sha) for (name, mode, _), sha in zip(found, shas, strict=True)]
    )


def _content(path: Path) -> tuple[str, bytes]:
    """A file's mode in git and what it holds."""
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return "120000", os.fsencode(path.readlink())
    return ("100755" if info.st_mode & stat.S_IXUSR else "100644"), path.read_bytes()


async def _packed(bare: Bare, contents: list[bytes]) -> list[str]:
    """Store blobs in one pack: thousands of loose files cost more to write, serve and remove. Their names, in order."""
    stream = b"".join(
        b"blob\nmark :%d\ndata %d\n%s\nget-mark :%d\n" % (mark, len(content), content, mark)
        for mark, content in enumerate(contents, start=1)
    )
    told = await bare.run("fast-import", "--quiet", "--done", "--depth=0", stdin=stream + b"done\n")
    return told.stdout.decode().split()


def files_below(root: Path) -> list[Path]:
    found: list[Path] = []
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name != ".git"]
        found += [Path(directory) / name for name in files]
        found += [Path(directory) / name for name in names if (Path(directory) / name).is_symlink()]
    return sorted(found)


async def from_repository(bare: Bare, source: Path) -> None:
    """All branches and tags of a repository on this machine."""
    git_dir = source / ".git" if (source / ".git").is_dir() else source
    lenient = ["-c", "fetch.fsckObjects=false", "-c", "transfer.fsckObjects=false"]
    refs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
    await git(
        [*lenient, "fetch", "--quiet", "--no-write-fetch-head", str(git_dir), *refs],
        git_dir=bare.path,
        protocols="file",
    )
