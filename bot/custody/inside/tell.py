"""Tells what differs from a tree, in a stream that cannot be cut or altered unseen."""

# Paths are bytes here, as git has them; pathlib has no bytes.
# ruff: noqa: PTH114

from __future__ import annotations

import argparse
import hashlib
import os
import struct
import typing

from bot.custody.inside.disk import Disk, Leaves, Place, Stop, content, object_id, parse_listing, tree_id
from bot.custody.inside.fill import JUNK

MAGIC = b"pullwright-capture-v1\n"


def load_cache(place: Place) -> dict[bytes, tuple[str, bytes, str]]:
    try:
        lines = place.read("cache").split(b"\0")
        rows = (line.rsplit(b"\n", 3) for line in lines if line)
        return {path: (stamp.decode(), mode, identifier.decode()) for path, stamp, mode, identifier in rows}
    except (OSError, ValueError):
        return {}


def new_paths(place: Place) -> set[bytes]:
    """Files that nobody ignores. The listing repository is our own, so the one in the work tree may be in any state."""
    there = place.run_git(
        "-c",
        f"core.excludesFile={place.own('junk')}",
        "--work-tree=.",
        "ls-files",
        "-z",
        "--others",
        "--exclude-standard",
        GIT_DIR=place.own("git"),
    )
    if there is None:
        return set(walk(place.work))
    forced = place.run_git("ls-files", "-z", "--cached", GIT_DIR=".git") or b""
    return set((there + forced).split(b"\0")) - {b""}


def walk(work: bytes) -> typing.Iterator[bytes]:
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


def capture(place: Place, args: argparse.Namespace) -> dict[str, object]:
    try:
        base = parse_listing(place.read(f"listing-{args.tree}"))
    except OSError:
        raise Stop(3, rule="no_listing") from None
    disk = Disk(place, load_cache(place))
    files = disk.known(base)
    for path in new_paths(place) - base.keys():
        found = (b"nested", "") if path.endswith(b"/") else disk.look(path)
        if found is not None:
            files[path] = found
    changed = {path: leaf for path, leaf in files.items() if base.get(path) != leaf}
    removed = sorted(base.keys() - files.keys())
    body = records(place, changed, removed, args)
    files.update(changed)
    plain = all(len(identifier) == 40 for _, identifier in files.values())
    tree = tree_id(files) if plain else "0" * 40
    body += b"E" + struct.pack(">II", len(changed), len(removed)) + tree.encode()
    place.save("result", body + hashlib.sha256(body).digest())
    place.save("cache", b"\0".join(disk.fresh))
    return {"tree": tree, "put": len(changed), "removed": len(removed), "bytes": len(body)}


def records(place: Place, changed: Leaves, removed: list[bytes], args: argparse.Namespace) -> bytes:
    """The result's records. `changed` is brought up to what was read here, should a file have moved on meanwhile."""
    out = [MAGIC, args.nonce.encode(), b"\n", args.tree.encode(), b"\n"]
    total = 0
    for path in sorted(changed):
        mode, _ = changed[path]
        data = b"" if mode == b"nested" else content(place.at(path), mode)
        changed[path] = (mode, object_id(b"blob", data)) if mode != b"nested" else (mode, "")
        total += len(data)
        if total > args.max_bytes:
            raise Stop(4, rule="total_size", path=os.fsdecode(path))
        fields = struct.pack(">HIQ", len(mode), len(path), len(data))
        out += [b"P", fields, mode, changed[path][1].rjust(40, "0").encode(), path, data]
    for path in removed:
        out += [b"D", struct.pack(">I", len(path)), path]
    return b"".join(out)
