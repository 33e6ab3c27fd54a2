"""A file cut into passages at its definitions, each with its terms: what makes a long file found by one function in it.

Packed per blob as arrays, so that a query looks at a hundred files without reading their text.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bot.retrieval import words
from bot.retrieval.definition import Definition

MOST_LINES = 80
_CUT = 60
_MOST = 2000
_SPLITTING = frozenset({"function", "method", "class", "impl", "definition", "heading", "interface", "struct"})
_HEAD = struct.Struct("<II")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chunks:
    """Passages of one file. Passage i is lines first[i]..last[i] (1-based) and owns terms starts[i]:starts[i+1]."""

    first: npt.NDArray[np.uint32]
    last: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.uint32]
    hashes: npt.NDArray[np.uint32]
    frequencies: npt.NDArray[np.uint8]


_hashes: dict[str, int] = {}


def hash_of(term: str) -> int:
    """32 bits, the same in every process."""
    known = _hashes.get(term)
    if known is None:
        if len(_hashes) > 1_000_000:
            _hashes.clear()
        known = _hashes[term] = zlib.crc32(term.encode("utf-8", "replace"))
    return known


def spans(definitions: Sequence[Definition], lines: int) -> list[tuple[int, int]]:
    """Line ranges, 1-based and inclusive, that cover the file: a passage for each definition, long ones cut."""
    starts = {1} | {item.first for item in definitions if item.kind in _SPLITTING and item.first <= lines}
    ordered = [*sorted(starts), lines + 1]
    found: list[tuple[int, int]] = []
    for start, following in itertools.pairwise(ordered):
        at = start
        while following - at > MOST_LINES:
            found.append((at, at + _CUT - 1))
            at += _CUT
        if following > at:
            found.append((at, following - 1))
    return found[:_MOST]


def count(text_lines: Sequence[str], cut: Iterable[tuple[int, int]]) -> list[tuple[tuple[int, int], dict[str, int]]]:
    """Terms of each passage."""
    return [((first, last), words.terms_of("\n".join(text_lines[first - 1 : last]))) for first, last in cut]


def pack(counted: Sequence[tuple[tuple[int, int], dict[str, int]]]) -> bytes:
    """Arrays, compressed."""
    first = np.array([span[0] for span, _ in counted], np.uint32)
    last = np.array([span[1] for span, _ in counted], np.uint32)
    sizes = np.array([len(terms) for _, terms in counted], np.uint32)
    hashes = np.array([hash_of(term) for _, terms in counted for term in terms], np.uint32)
    times = np.array([times for _, terms in counted for times in terms.values()], np.int64)
    frequencies = np.minimum(times, 255).astype(np.uint8)
    body = b"".join(array.tobytes() for array in (first, last, sizes, hashes, frequencies))
    return zlib.compress(_HEAD.pack(len(first), len(hashes)) + body, 1)


def unpack(data: bytes) -> Chunks:
    """The opposite of `pack`; nothing packed is a file without passages."""
    if not data:
        empty = np.zeros(0, np.uint32)
        return Chunks(empty, empty, np.zeros(1, np.uint32), empty, np.zeros(0, np.uint8))
    raw = zlib.decompress(data)
    passages, terms = _HEAD.unpack_from(raw)
    at = _HEAD.size
    arrays = []
    for length, kind in ((passages, np.uint32), (passages, np.uint32), (passages, np.uint32), (terms, np.uint32)):
        arrays.append(np.frombuffer(raw, kind, length, at))
        at += 4 * length
    starts = np.concatenate([np.zeros(1, np.uint32), np.cumsum(arrays[2], dtype=np.uint32)])
    return Chunks(arrays[0], arrays[1], starts, arrays[3], np.frombuffer(raw, np.uint8, terms, at))


def scores(chunks: Chunks, asked: npt.NDArray[np.uint32], weights: Floats) -> Floats:
    """BM25 of each passage for terms given by ascending hashes and their weights (idf and importance multiplied)."""
    passages = len(chunks.first)
    if not passages or not len(asked):
        return np.zeros(passages)
    at = np.searchsorted(asked, chunks.hashes)
    at[at == len(asked)] = 0
    hit = asked[at] == chunks.hashes
    owner = np.repeat(np.arange(passages), chunks.starts[1:].astype(np.int64) - chunks.starts[:-1].astype(np.int64))
    length = np.bincount(owner, chunks.frequencies, passages)
    frequency = chunks.frequencies[hit].astype(np.float64)
    owners = owner[hit]
    gained = weights[at[hit]] * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length[owners] / USUAL_TERMS))
    return np.bincount(owners, gained, passages).astype(np.float64)


K1 = 1.2
B = 0.6
USUAL_TERMS = 150
