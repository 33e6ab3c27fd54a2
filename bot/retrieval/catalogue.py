"""What a query has to know of every file of a tree, as arrays in path order. It is kept in the store and carried from one tree to
the next, so that a commit costs only its own paths; carried or made anew, it is the same.
"""

from __future__ import annotations

import posixpath
import struct
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bot.retrieval.files import File
from bot.retrieval.kinds import Kind, kind_of
from bot.retrieval.postings import matched, places
from bot.retrieval.ragged import Paths, Ragged, starts_of
from bot.retrieval.runs import Runs
from bot.retrieval.store import Document
from bot.retrieval.vocabulary import Vocabulary
from bot.retrieval.words import hash_of

KINDS = tuple(Kind)
STATES = (
    "read", "slow", "nested", "binary", "large", "long-lines", "lfs", "failed", "link", "submodule", "special",
)  # fmt: skip
_KIND = {kind: number for number, kind in enumerate(KINDS)}
_STATE = {state: number for number, state in enumerate(STATES)}
_FACTS = np.dtype(
    [
        ("id", "<u4"),
        ("total", "<u4"),
        ("symbols", "<u4"),
        ("lines", "<u4"),
        ("stem", "<u4"),
        ("name", "<u4"),
        ("kind", "u1"),
        ("state", "u1"),
        ("oid", "S64"),
    ]
)
"""One file: its document and what is known of it, hashes of its module's last part and of its name, kind, state, blob id."""
_HEAD = struct.Struct("<64sQQQ")
K1 = 1.2
B = 0.75

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Catalogue:
    """Files in path order: row i is paths[i], facts[i], and the hashes of its path's words. `tree` is the tree whose files
    these are; nothing for a folder."""

    paths: Paths
    facts: npt.NDArray[np.void]
    words: Ragged
    tree: str = field(default="", compare=False)

    def __len__(self) -> int:
        return len(self.facts)

    def row(self, path: str) -> int | None:
        """The row of a path."""
        at = bisect_left(self.paths, path)
        return at if at < len(self) and self.paths[at] == path else None

    def by_stem(self, stem: str) -> list[int]:
        """Files whose module ends with this name."""
        return [row for row in self._stems.of(stem) if module_of(self.paths[row]).rpartition("/")[2] == stem]

    def by_name(self, name: str) -> list[int]:
        """Files of this name, given in lower case."""
        return [row for row in self._names.of(name) if self.paths[row].rpartition("/")[2].lower() == name]

    @cached_property
    def _stems(self) -> _Places:
        return _Places(self.facts["stem"])

    @cached_property
    def _names(self) -> _Places:
        return _Places(self.facts["name"])

    def scores(self, weights: Mapping[str, float], counted: npt.NDArray[np.bool_]) -> Floats:
        """BM25 of the paths' own words; statistics are those of the counted paths."""
        by_hash = {hash_of(term): weight for term, weight in weights.items()}
        asked = np.array(sorted(by_hash), np.uint32)
        if not len(self) or not len(asked):
            return np.zeros(len(self))
        lengths = self.words.lengths
        hit, at = matched(self.words.values, asked)
        owner = np.searchsorted(self.words.starts, hit, side="right") - 1
        pairs, times = np.unique(owner * len(asked) + at, return_counts=True)
        item, term = pairs // len(asked), pairs % len(asked)
        having = np.bincount(term[counted[item]], minlength=len(asked))
        rarity = np.log1p((max(int(counted.sum()), 1) - having + 0.5) / (having + 0.5))
        weight = np.array([by_hash[hashed] for hashed in asked.tolist()]) * rarity
        norm = 1 - B + B * lengths / max(float(lengths[counted].mean()), 1e-9)
        gained = weight[term] * times * (K1 + 1) / (times + K1 * norm[item])
        return np.bincount(item, gained, len(self)).astype(np.float64)


class _Places:
    """Rows by a hash."""

    def __init__(self, hashes: npt.NDArray[np.void]) -> None:
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def of(self, name: str) -> list[int]:
        """Rows with the hash of this name, ascending; others may share it."""
        hashed = np.uint32(hash_of(name))
        first, last = np.searchsorted(self._hashes, hashed), np.searchsorted(self._hashes, hashed, side="right")
        return [int(row) for row in self._order[first:last]]


def module_of(path: str) -> str:
    """The module a path stands for: `a/b` for a/b.py, a/b/__init__.py and a/b/index.js."""
    stem = posixpath.splitext(path)[0]
    for name in ("/__init__", "/index", "/mod"):
        stem = stem.removesuffix(name)
    return stem


NOTHING = Catalogue(Paths.of(()), np.zeros(0, _FACTS), Ragged(np.zeros(1, np.int64), np.zeros(0, np.uint32)))


def made(files: Sequence[tuple[File, Document]]) -> Catalogue:
    """Of these files, which are in path order, from nothing."""
    paths = Paths.of([file.path for file, _ in files])
    return Catalogue(paths, np.array([_facts(*one) for one in files], _FACTS), _words([file.path for file, _ in files]))


def _facts(file: File, document: Document) -> tuple[int | bytes, ...]:
    return (
        document.id,
        document.total,
        document.symbols,
        document.lines,
        hash_of(module_of(file.path).rpartition("/")[2]),
        hash_of(file.path.rpartition("/")[2].lower()),
        _KIND[kind_of(file.path, generated=bool(document.generated))],
        _STATE[document.state],
        file.oid.encode(),
    )


def _words(paths: Sequence[str]) -> Ragged:
    vocabulary = Vocabulary()
    parts = [posixpath.splitext(path)[0].encode("utf-8", "replace").split(b"/") for path in paths]
    counts = [len(one) for one in parts]
    runs = vocabulary.numbers(Runs.of([part for one in parts for part in one]))
    entry, at = places(vocabulary.starts, runs)
    owner = np.repeat(np.arange(len(paths)), counts)[entry]
    return Ragged(starts_of(np.bincount(owner, minlength=len(paths))), vocabulary.hashes[at])


def updated(
    held: Catalogue, gone: Collection[str], put: Sequence[tuple[File, Document]], *, tree: str = ""
) -> Catalogue:
    """What `held` becomes when these paths are gone and then these files, in path order, are there."""
    stale = {*gone, *(file.path for file, _ in put)}
    rows = [row for path in stale if (row := held.row(path)) is not None]
    new, paths = made(put), held.paths.without(rows)
    at = np.array([bisect_left(paths, file.path) for file, _ in put], np.int64)
    return Catalogue(
        paths.merged(at, new.paths),
        np.insert(np.delete(held.facts, rows), at, new.facts),
        held.words.without(rows).merged(at, new.words),
        tree,
    )


def packed(held: Catalogue) -> bytes:
    """For the store."""
    lengths = (held.paths.lengths.astype(np.uint32), held.words.lengths.astype(np.uint32))
    arrays = (held.facts, held.paths.values, held.words.values, *lengths)
    head = _HEAD.pack(held.tree.encode(), len(held), len(held.paths.values), len(held.words.values))
    return head + b"".join([array.tobytes() for array in arrays])


def unpacked(data: bytes) -> Catalogue:
    """The opposite of `packed`; of nothing, a catalogue of no files."""
    if not data:
        return NOTHING
    tree, count, letters, words = _HEAD.unpack_from(data)
    at = _HEAD.size
    facts = np.frombuffer(data, _FACTS, count, at)
    at += facts.nbytes
    names = np.frombuffer(data, np.uint8, letters, at)
    at += letters
    hashes = np.frombuffer(data, np.uint32, words, at)
    lengths = np.frombuffer(data, np.uint32, 2 * count, at + hashes.nbytes).astype(np.int64)
    paths = Paths(starts_of(lengths[:count]), names)
    return Catalogue(paths, facts, Ragged(starts_of(lengths[count:]), hashes), tree.rstrip(b"\0").decode())
