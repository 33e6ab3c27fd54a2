"""Brings files that already stand there to a tree, whatever was set up beside them, and tells which tree then stands there."""

# Paths are bytes here, as git has them; pathlib has no bytes.
# ruff: noqa: PTH102, PTH103, PTH106, PTH108

from __future__ import annotations

import os
import stat
import time

from bot.custody.inside.disk import POINTER, Disk, Order, Place, parse_listing, tree_id
from bot.custody.inside.fill import Pack, batches, put, remove_directory, start_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bot.custody.inside.disk import Leaves


def kind(path: bytes) -> int:
    """0 when nothing is there."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def remove(path: bytes) -> None:
    """Whatever is there; a link is removed, not what it leads to."""
    found = kind(path)
    if found == stat.S_IFDIR:
        remove_directory(path)
    elif found:
        os.unlink(path)


def make_directory(path: bytes) -> None:
    """A real directory at the path and at every parent of it, in place of whatever else stands there."""
    parent = path.rpartition(b"/")[0]
    if parent:
        make_directory(parent)
    if path and kind(path) != stat.S_IFDIR:
        remove(path)
        os.mkdir(path)


def stood_here(place: Place) -> str:
    """The tree that was put here last; empty when none is known."""
    try:
        return place.read("tree").decode("ascii")
    except (OSError, ValueError):
        return ""


def remove_old(place: Place, files: Leaves) -> None:
    """The files of the tree that stood here before and are not in this one, with the directories they leave empty."""
    try:
        before = parse_listing(place.read(f"listing-{stood_here(place)}"))
    except (OSError, ValueError):
        return
    disk = Disk({})
    for path in sorted(before.keys() - files.keys(), reverse=True):
        if not disk.in_real_directory(path):
            continue
        if before[path][0] != POINTER and kind(path) != stat.S_IFDIR:
            remove(path)
        folder = path.rpartition(b"/")[0]
        while folder:
            try:
                os.rmdir(folder)
            except OSError:
                break
            folder = folder.rpartition(b"/")[0]


def write(place: Place, files: Leaves, parts: int) -> None:
    """Put the given contents at every path that wants them."""
    where: dict[str, list[bytes]] = {}
    for path, (mode, identifier) in files.items():
        if mode != POINTER:
            where.setdefault(identifier, []).append(path)
    given = list(batches(place, parts))
    pack = Pack(place, len(given), f"settled-{time.time_ns()}")
    for identifier, data in given:
        for path in where.get(identifier, ()):
            make_directory(path.rpartition(b"/")[0])
            remove(path)
            put(path, files[path][0], data)
        pack.add(data)
    pack.close()
    pack.finish()


def look(files: Leaves) -> tuple[Disk, Leaves, set[bytes]]:
    """What stands there, read anew, and the paths where it is not what the tree says."""
    disk = Disk({})
    found = disk.known(files)
    return disk, found, {path for path, leaf in files.items() if found.get(path) != leaf}


def settle(place: Place, order: Order) -> dict[str, object]:
    """Tell what then stands there, and in the file `wanted` the ids of what is still missing, to be called again with them."""
    listing = place.read(f"listing-{order.tree}")
    files = parse_listing(listing)
    os.makedirs(place.work, exist_ok=True)
    os.chdir(place.work)
    remove_old(place, files)
    if order.parts:
        write(place, files, order.parts)
    disk, found, wrong = look(files)
    if not wrong:
        for path in (path for path, leaf in files.items() if leaf[0] == POINTER):
            make_directory(path)
        if stood_here(place) != order.tree:
            _start_git_again(place, listing, files)
        place.save("tree", order.tree.encode())
    place.save("cache", b"\0".join(disk.fresh))
    place.save("wanted", "\n".join(sorted({files[path][1] for path in wrong})).encode())
    return {"tree": tree_id(found), "files": len(found), "wrong": len(wrong)}


def _start_git_again(place: Place, listing: bytes, files: Leaves) -> None:
    """For `git diff` and `git status` inside; whatever has become of the repository there, the files matter more."""
    try:
        remove(place.at(b".git/index"))
        start_git(place, listing, files)
    except OSError:
        return
