"""Lists what is to be indexed: the files of a commit in the bare mirror, or of a plain folder (no git is run there)."""

from __future__ import annotations

import hashlib
import io
import operator
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.custody import raw
from bot.domain.change import FileMode, TreeEntry
from bot.retrieval.extract import LARGEST
from bot.retrieval.languages import language_of

NOT_WALKED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".idea"})
MOST_FILES = 300_000
_UNREAD = {FileMode.SYMLINK: "link", FileMode.GITLINK: "submodule"}
_PATH = operator.attrgetter("path")

Stamp = tuple[int, int, int, str]
"""Size, time of change in ns, inode, blob id: what a folder's file was when it was last read."""


@dataclass(frozen=True, slots=True)
class File:
    """One file: `oid` is git's blob id, or a stand-in when the file is not read; `state` says why it is not.

    `size` is known of a folder's files only.
    """

    path: str
    oid: str
    state: str = ""
    size: int = field(default=0, compare=False)

    @property
    def language(self) -> str:
        return language_of(self.path)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a folder in path order, the stamps to remember, and what was left out, by reason."""

    files: tuple[File, ...]
    stamps: Mapping[str, Stamp]
    gone: tuple[str, ...]
    left_out: Mapping[str, int]


def of_tree(entries: Iterable[TreeEntry]) -> tuple[File, ...]:
    """Files of a commit; symlinks and submodules are named, never followed."""
    found = [File(entry.path, entry.blob, _UNREAD.get(entry.mode, "")) for entry in entries]
    return tuple(sorted(found, key=_PATH))


def of_folder(root: Path, known: Mapping[str, Stamp]) -> Listing:
    """Files of a folder; one whose size, time and inode are as `known` is not read again."""
    files: list[File] = []
    stamps: dict[str, Stamp] = {}
    left_out: dict[str, int] = {}
    for path, entry in _walk(str(root), left_out):
        if len(files) >= MOST_FILES:
            left_out["beyond the limit of files"] = left_out.get("beyond the limit of files", 0) + 1
            continue
        try:
            file, stamp = _looked_at(path, entry, known.get(path))
        except OSError:
            left_out["unreadable"] = left_out.get("unreadable", 0) + 1
            continue
        files.append(file)
        if stamp is not None and known.get(path) != stamp:
            stamps[path] = stamp
    present = {file.path for file in files}
    return Listing(tuple(sorted(files, key=_PATH)), stamps, tuple(sorted(set(known) - present)), left_out)


def _walk(root: str, left_out: dict[str, int]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    pending = [(root, "")]
    while pending:
        folder, inside = pending.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            left_out["unreadable"] = left_out.get("unreadable", 0) + 1
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in NOT_WALKED:
                    pending.append((entry.path, f"{inside}{entry.name}/"))
                continue
            yield inside + entry.name, entry


def _looked_at(path: str, entry: os.DirEntry[str], known: Stamp | None) -> tuple[File, Stamp | None]:
    status = entry.stat(follow_symlinks=False)
    size = status.st_size
    if not stat.S_ISREG(status.st_mode):
        state = "link" if stat.S_ISLNK(status.st_mode) else "special"
        return File(path, _stand_in(state, path, 0), state), None
    if size > LARGEST:
        return File(path, _stand_in("large", path, size), "large", size), None
    seen = (size, status.st_mtime_ns, status.st_ino)
    if known is not None and known[:3] == seen:
        return File(path, known[3], size=size), known
    with io.FileIO(entry.path) as opened:
        oid = raw.blob_id(opened.readall())
    return File(path, oid, size=size), (*seen, oid)


def _stand_in(state: str, path: str, size: int) -> str:
    named = f"{state} {size} {path}".encode("utf-8", "surrogateescape")
    return f"{state}-{hashlib.sha256(named).hexdigest()[:32]}"
