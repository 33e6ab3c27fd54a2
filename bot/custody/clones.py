"""A person's own clone, for tasks without GitHub: its current branch, and a new branch given to it.

The clone's config, hooks and work tree play no part: objects are unpacked into its store by a git that reads only ours, and the
branch is a file that must not exist before.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path

from bot.custody.digest import git_dir_of
from bot.custody.faults import UpstreamFault
from bot.custody.git import git
from bot.custody.mirror import Mirror
from bot.domain.ids import CommitId, RepositoryId

_SYMBOLIC = re.compile(r"ref: refs/heads/(.+)\n?")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")


def number_of(directory: Path) -> RepositoryId:
    """Stands in for a repository's number where there is no GitHub: of this directory on this machine and no other."""
    here = f"{socket.gethostname()}:{directory.resolve()}"
    return RepositoryId(int(hashlib.sha256(here.encode("utf-8", "surrogateescape")).hexdigest()[:15], 16))


def current_branch(clone: Path) -> str | None:
    """The branch that is checked out; None for a detached HEAD. Raises UpstreamFault when there is no repository."""
    dot = clone / ".git"
    own = (clone / dot.read_text().removeprefix("gitdir:").strip()).resolve() if dot.is_file() else git_dir_of(clone)
    found = _SYMBOLIC.fullmatch((own / "HEAD").read_text("utf-8", "replace"))
    return found[1] if found else None


async def give_branch(mirror: Mirror, clone: Path, branch: str, commit: CommitId, *, base: CommitId) -> None:
    """The commit, which follows `base`, as a new branch of the clone. Raises UpstreamFault when the branch is there."""
    store = git_dir_of(clone)
    path = store / "refs" / "heads" / branch
    if not _BRANCH.fullmatch(branch) or ".." in branch or not (store / "refs" / "heads").is_dir():
        raise UpstreamFault("ref_name", branch)
    packed = store / "packed-refs"
    listed = packed.read_text("utf-8", "replace").splitlines() if packed.is_file() else []
    if path.exists() or any(line.endswith(f" refs/heads/{branch}") for line in listed):
        raise UpstreamFault("branch_taken", branch)
    wanted = f"{commit}\n^{base}\n".encode()
    pack = await git(["pack-objects", "--revs", "--stdout", "-q"], git_dir=mirror.git_dir, stdin=wanted)
    into = {"GIT_OBJECT_DIRECTORY": os.fspath(store / "objects")}
    await git(["unpack-objects", "-q"], git_dir=mirror.git_dir, stdin=pack.stdout, env=into)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="ascii") as file:
        file.write(f"{commit}\n")
