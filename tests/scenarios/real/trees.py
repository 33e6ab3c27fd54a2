"""Ids of git trees, worked out from bytes alone: what GitHub must end up with, said by nobody but the sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    data: bytes
    executable: bool = False


def files_of(root: Path) -> dict[str, File]:
    """Every file below `root` by its path."""
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): File(path.read_bytes(), bool(path.stat().st_mode & 0o100)) for path in found
    }


def tree_id(files: Mapping[str, File]) -> str:
    """The id git gives to a tree of these files."""
    directories: dict[str, dict[str, File]] = {}
    entries: list[tuple[bytes, bytes]] = []
    for path, file in files.items():
        top, slash, rest = path.partition("/")
        if slash:
            directories.setdefault(top, {})[rest] = file
        else:
            mode = b"100755" if file.executable else b"100644"
            entries.append((top.encode(), mode + b" " + top.encode() + b"\0" + _id("blob", file.data)))
    for name, inside in directories.items():
        entry = b"40000 " + name.encode() + b"\0" + bytes.fromhex(tree_id(inside))
        entries.append((name.encode() + b"/", entry))
    return _id("tree", b"".join(_sorted(entries))).hex()


def _sorted(entries: list[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Git's order: a directory's name sorts as if it ended in a slash."""
    return (entry for _, entry in sorted(entries))


def _id(kind: str, data: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).digest()
