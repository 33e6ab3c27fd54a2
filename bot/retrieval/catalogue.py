"""What paths alone say of files: kind, module, words. Kept in the store, so that a commit costs only its new paths."""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bot.retrieval.kinds import Kind, kind_of
from bot.retrieval.postings import Hashes, Ints, places
from bot.retrieval.words import Vocabulary, hash_of

KINDS = tuple(Kind)
_CODE_OF = {kind: number for number, kind in enumerate(KINDS)}
_HEAD = struct.Struct("<IIII")
K1 = 1.2
B = 0.75

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Catalogue:
    """Paths in order. Path i has kind KINDS[kinds[i]], module stem stems[i] and words hashes[starts[i]:starts[i + 1]]."""

    paths: tuple[str, ...]
    stems: tuple[str, ...]
    kinds: npt.NDArray[np.uint8]
    starts: Ints
    hashes: Hashes

    @cached_property
    def number(self) -> dict[str, int]:
        return {path: index for index, path in enumerate(self.paths)}

    @cached_property
    def by_stem(self) -> dict[str, list[int]]:
        return _grouped(self.stems)

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        return _grouped([path.rpartition("/")[2].lower() for path in self.paths])

    def scores(self, weights: Mapping[str, float], counted: npt.NDArray[np.bool_]) -> Floats:
        """BM25 of the paths' own words; statistics are those of the counted paths."""
        by_hash = {hash_of(term): weight for term, weight in weights.items()}
        asked = np.array(sorted(by_hash), np.uint32)
        if not len(self.paths) or not len(asked):
            return np.zeros(len(self.paths))
        lengths = np.diff(self.starts)
        at = np.searchsorted(asked, self.hashes)
        at[at == len(asked)] = 0
        hit = np.flatnonzero(asked[at] == self.hashes)
        owner = np.repeat(np.arange(len(self.paths)), lengths)[hit]
        pairs, times = np.unique(owner * len(asked) + at[hit], return_counts=True)
        item, term = pairs // len(asked), pairs % len(asked)
        having = np.bincount(term[counted[item]], minlength=len(asked))
        rarity = np.log1p((max(int(counted.sum()), 1) - having + 0.5) / (having + 0.5))
        weight = np.array([by_hash[hashed] for hashed in asked.tolist()]) * rarity
        norm = 1 - B + B * lengths / max(float(lengths[counted].mean()), 1e-9)
        gained = weight[term] * times * (K1 + 1) / (times + K1 * norm[item])
        return np.bincount(item, gained, len(self.paths)).astype(np.float64)


def module_of(path: str) -> str:
    """The module a path stands for: `a/b` for a/b.py, a/b/__init__.py and a/b/index.js."""
    stem = posixpath.splitext(path)[0]
    for name in ("/__init__", "/index", "/mod"):
        stem = stem.removesuffix(name)
    return stem


def _grouped(names: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(name, []).append(index)
    return found


def made(paths: Sequence[str]) -> Catalogue:
    """Of these paths, from nothing."""
    vocabulary = Vocabulary()
    runs: list[int] = []
    counts: list[int] = []
    for path in paths:
        parts = posixpath.splitext(path)[0].encode("utf-8", "replace").split(b"/")
        runs += [vocabulary[part] for part in parts]
        counts.append(len(parts))
    entry, at = places(vocabulary.starts(), np.array(runs, np.int64))
    owner = np.repeat(np.arange(len(paths)), counts)[entry]
    return Catalogue(
        tuple(paths),
        tuple([module_of(path).rpartition("/")[2] for path in paths]),
        np.array([_CODE_OF[kind_of(path)] for path in paths], np.uint8),
        _starts(np.bincount(owner, minlength=len(paths))),
        vocabulary.hashes()[at],
    )


def _starts(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def updated(held: Catalogue, paths: Sequence[str]) -> Catalogue:
    """As `made`, with what `held` knows already."""
    if held.paths == tuple(paths):
        return held
    known = held.number
    new = made([path for path in paths if path not in known])
    fresh = new.number
    shift = len(held.paths)
    rows = np.array([known[path] if path in known else shift + fresh[path] for path in paths], np.int64)
    starts = np.concatenate([held.starts, new.starts[1:] + held.starts[-1]])
    _, at = places(starts, rows)
    stems = held.stems + new.stems
    return Catalogue(
        tuple(paths),
        tuple([stems[row] for row in rows.tolist()]),
        np.concatenate([held.kinds, new.kinds])[rows],
        _starts(starts[rows + 1] - starts[rows]),
        np.concatenate([held.hashes, new.hashes])[at],
    )


def packed(held: Catalogue) -> bytes:
    """For the store."""
    names = [_joined(held.paths), _joined(held.stems)]
    arrays = (held.kinds, np.diff(held.starts).astype(np.uint16), held.hashes)
    head = _HEAD.pack(len(held.paths), len(names[0]), len(names[1]), len(held.hashes))
    return head + b"".join(names) + b"".join([array.tobytes() for array in arrays])


def unpacked(data: bytes) -> Catalogue:
    """The opposite of `packed`; of nothing, a catalogue of no paths."""
    if not data:
        return made(())
    count, first, second, words = _HEAD.unpack_from(data)
    at = _HEAD.size
    paths, stems = _split(data[at : at + first]), _split(data[at + first : at + first + second])
    at += first + second
    lengths = np.frombuffer(data, np.uint16, count, at + count)
    return Catalogue(
        paths,
        stems,
        np.frombuffer(data, np.uint8, count, at),
        _starts(lengths.astype(np.int64)),
        np.frombuffer(data, np.uint32, words, at + 3 * count),
    )


def _joined(names: Sequence[str]) -> bytes:
    return "\0".join(names).encode("utf-8", "surrogateescape")


def _split(data: bytes) -> tuple[str, ...]:
    return tuple(data.decode("utf-8", "surrogateescape").split("\0"))
