"""Tells what differs from a tree, in a stream that cannot be cut or altered unseen."""

# Paths are bytes here, as git has them; pathlib has no bytes.
# ruff: noqa: PTH103, PTH114

from __future__ import annotations

import hashlib
import os
import struct

from bot.custody.inside.disk import Disk, Order, Place, Stop, content, finish, object_id, parse_listing, tree_id
from bot.custody.inside.fill import JUNK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from bot.custody.inside.disk import Leaves

MAGIC = b"pullwright-capture-v1\n"


def load_cache(place: Place) -> dict[bytes, tuple[str, bytes, str]]:
    try:
        lines = place.read("cache").split(b"\0")
        rows = (line.rsplit(b"\n", 3) for line in lines if line)
        return {path: (stamp.decode(), mode, identifier.decode()) for path, stamp, mode, identifier in rows}
    except (OSError, ValueError):
        return {}


def start_listing(place: Place) -> list[subprocess.Popen[bytes] | None]:
    """Ask git for files that nobody ignores. The repository asked is our own, so the one in the work tree may be in any
    state; of that one only the list of files somebody added is taken.
    """
    ignoring = ("-c", f"core.excludesFile={place.own('junk')}", "--work-tree=.")
    others = place.start_git(*ignoring, "ls-files", "-z", "--others", "--exclude-standard", GIT_DIR=place.own("git"))
    return [others, place.start_git("ls-files", "-z", "--cached", GIT_DIR=".git")]


def new_paths(place: Place, listing: list[subprocess.Popen[bytes] | None]) -> set[bytes]:
    """Every file that may be new."""
    there, added = (finish(process) for process in listing)
    if there is None:
        return set(walk(place.work))
    return set((there + (added or b"")).split(b"\0")) - {b""}


def walk(work: bytes) -> Iterator[bytes]:
    junk = JUNK.encode().replace(b"/", b"").split()
    names = {pattern for pattern in junk if not pattern.startswith(b"*")} | {b".git"}
    endings = (*(pattern[1:] for pattern in junk if pattern.startswith(b"*")), b".pyc", b".pyo")
    for folder, folders, files in os.walk(work):
        inner = [name for name in folders if name not in names and not name.endswith(endings)]
        folders[:] = [name for name in inner if not os.path.islink(folder + b"/" + name)]
        links = [name for name in inner if os.path.islink(folder + b"/" + name)]
        for name in files + links:
            if name not in names and not name.endswith(endings):
                yield os.path.relpath(folder + b"/" + name, work)


def capture(place: Place, order: Order) -> dict[str, object]:
    try:
        base = parse_listing(place.read(f"listing-{order.tree}"))
    except OSError:
        raise Stop(3, rule="no_listing") from None
    os.makedirs(place.work, exist_ok=True)
    os.chdir(place.work)
    listing = start_listing(place)
    disk = Disk(load_cache(place))
    files = disk.known(base)
    for path in new_paths(place, listing) - base.keys():
        found = (b"nested", "") if path.endswith(b"/") else disk.look(path, order.max_bytes)
        if found is not None:
            files[path] = found
    changed = {path: leaf for path, leaf in files.items() if base.get(path) != leaf}
    removed = sorted(base.keys() - files.keys())
    body = records(changed, removed, order)
    files.update(changed)
    tree = order.tree
    if changed or removed:
        tree = tree_id(files) if all(identifier for _, identifier in changed.values()) else "0" * 40
    body += b"E" + struct.pack(">II", len(changed), len(removed)) + tree.encode()
    place.save("result", body + hashlib.sha256(body).digest())
    place.save("cache", b"\0".join(disk.fresh))
    return {"tree": tree, "put": len(changed), "removed": len(removed), "bytes": len(body)}


def records(changed: Leaves, removed: list[bytes], order: Order) -> bytes:
    """The result's records. `changed` is brought up to what was read here, should a file have moved on meanwhile."""
    out = [MAGIC, order.nonce.encode(), b"\n", order.tree.encode(), b"\n"]
    total = 0
    for path in sorted(changed):
        mode, _ = changed[path]
        data = b"" if mode == b"nested" else content(path, mode)
        changed[path] = (mode, object_id(b"blob", data)) if mode != b"nested" else (mode, "")
        total += len(data)
        if total > order.max_bytes:
            raise Stop(4, rule="total_size", path=os.fsdecode(path))
        fields = struct.pack(">HIQ", len(mode), len(path), len(data))
        out += [b"P", fields, mode, changed[path][1].rjust(40, "0").encode(), path, data]
    for path in removed:
        out += [b"D", struct.pack(">I", len(path)), path]
    return b"".join(out)
