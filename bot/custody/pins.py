"""Pinned plugins, actions and skills: what stands on disk is the very tree of the pinned commit, or nothing is used (specs/security.md §2.6).

No step is trusted: the pin is a whole id, the upstream may not carry a ref named like one, the commit must be reachable from
a branch or tag of the named repository, and the tree is built again from the files themselves, hidden ones included.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.custody.faults import OverLimit, TreeMismatch, UpstreamFault
from bot.custody.grammar import check_base_paths
from bot.custody.inside.disk import tree_id
from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.domain.change import FileMode
from bot.domain.ids import CommitId, TreeId, is_full_object_id

MAX_FILES = 50_000
MAX_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Pin:
    """A repository and the one commit of it that may be used."""

    upstream: Upstream
    commit: CommitId


async def resolve(mirror: Mirror, pin: Pin) -> TreeId:
    """Bring the pinned commit into the mirror; its tree. Raises UpstreamFault for anything that only looks like it."""
    if not is_full_object_id(pin.commit):
        raise UpstreamFault("pin_not_whole", detail=f"{pin.commit!a} is not a whole commit id")
    mirror.open()
    await mirror.refuse_disguised_refs(pin.upstream)  # also where the commit is here already: one may have come since
    await mirror.fetch(pin.upstream, commits=[pin.commit])
    if not await mirror.reachable(pin.upstream, pin.commit):
        raise UpstreamFault("pin_unreachable", detail=f"{pin.commit} is on no branch or tag of the repository")
    return await mirror.tree_of(pin.commit)


async def place(mirror: Mirror, pin: Pin, directory: Path) -> TreeId:
    """Write the pinned files into an empty directory and check them there. Links and submodules are refused."""
    tree = await resolve(mirror, pin)
    entries = await mirror.entries(tree)
    check_base_paths(entry.path for entry in entries)
    odd = next((entry for entry in entries if entry.mode in {FileMode.SYMLINK, FileMode.GITLINK}), None)
    if odd is not None:
        raise UpstreamFault("pin_holds_link", odd.path)
    if len(entries) > MAX_FILES:
        raise OverLimit("tree_files", detail=f"{len(entries):,} files, at most {MAX_FILES:,}")
    sizes = await mirror.sizes(dict.fromkeys(entry.blob for entry in entries))
    if sum(sizes.values()) > MAX_BYTES:
        raise OverLimit("tree_size", detail=f"{sum(sizes.values()):,} bytes, at most {MAX_BYTES:,}")
    contents = await mirror.blobs(sizes)
    for entry in entries:
        target = directory / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(contents[entry.blob])
        target.chmod(0o755 if entry.mode is FileMode.EXECUTABLE else 0o644)
    check(directory, tree)
    return tree


def check(directory: Path, tree: TreeId) -> None:
    """Raises TreeMismatch unless the files on disk, all of them, are that tree. To be called before every use."""
    found = tree_on_disk(directory)
    if found != tree:
        raise TreeMismatch("pin_tampered", detail=f"is {found}, not {tree}")


def tree_on_disk(directory: Path) -> TreeId:
    """The tree of every file under a directory: no index, no ignore rules, no attributes. A top-level `.git` is not looked at."""
    return TreeId(tree_id({os.fsencode(path): leaf for path, leaf in _leaves(directory)}))


def _leaves(directory: Path) -> Iterator[tuple[str, tuple[bytes, str]]]:
    for folder, names, files in os.walk(directory, followlinks=False):
        inside = Path(folder).relative_to(directory)
        if inside == Path() and ".git" in names:
            names.remove(".git")
        links = [name for name in names if (Path(folder) / name).is_symlink()]
        for name in (*files, *links):
            yield str(inside / name), _leaf(Path(folder) / name)


def _leaf(path: Path) -> tuple[bytes, str]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return b"120000", _blob(os.fsencode(path.readlink()))
    if not stat.S_ISREG(status.st_mode):
        raise TreeMismatch("pin_tampered", path.name, "is not a regular file")
    mode = b"100755" if status.st_mode & stat.S_IXUSR else b"100644"
    return mode, _blob(path.read_bytes())


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
