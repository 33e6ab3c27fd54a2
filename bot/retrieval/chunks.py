"""A file cut into passages at its definitions, each with its terms: what makes a long file found by one function in it.

Packed per blob as arrays, so that a query looks at a hundred files without reading their text.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bot.retrieval.definition import Definition
from bot.retrieval.postings import matched

MOST_LINES = 80
_CUT = 60
_MOST = 2000
_SPLITTING = frozenset({"function", "method", "class", "impl", "definition", "heading", "interface", "struct"})
_HEAD = struct.Struct("<II")
K1 = 1.2
B = 0.6
USUAL_TERMS = 150

Span = tuple[int, int]
"""First and last line, 1-based and inclusive."""
Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Chunks:
    """Passages of one file. Passage i is lines first[i]..last[i] (1-based) and owns terms starts[i]:starts[i+1]."""

    first: npt.NDArray[np.uint32]
    last: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.uint32]
    hashes: Hashes
    frequencies: npt.NDArray[np.uint8]


def spans(definitions: Sequence[Definition], lines: int) -> tuple[Span, ...]:
    """Line ranges that cover the file: a passage for each definition, long ones cut."""
    starts = {1} | {item.first for item in definitions if item.kind in _SPLITTING and item.first <= lines}
    ordered = [*sorted(starts), lines + 1]
    found: list[Span] = []
    for start, following in itertools.pairwise(ordered):
        at = start
        while following - at > MOST_LINES:
            found.append((at, at + _CUT - 1))
            at += _CUT
        if following > at:
            found.append((at, following - 1))
    return tuple(found[:_MOST])


def pack(
    cut: Sequence[Span], sizes: npt.NDArray[np.int64], hashes: Hashes, frequencies: npt.NDArray[np.uint8]
) -> bytes:
    """Arrays as they are: hashes do not compress. Passage i has `sizes[i]` terms."""
    lines = np.array(cut, np.uint32).reshape(-1, 2)
    arrays = (lines[:, 0], lines[:, 1], sizes.astype(np.uint32), hashes, frequencies)
    return _HEAD.pack(len(lines), len(hashes)) + b"".join([array.tobytes() for array in arrays])


def unpack(data: bytes) -> Chunks:
    """The opposite of `pack`; nothing packed is a file without passages."""
    if not data:
        empty = np.zeros(0, np.uint32)
        return Chunks(empty, empty, np.zeros(1, np.uint32), empty, np.zeros(0, np.uint8))
    passages, terms = _HEAD.unpack_from(data)
    at = _HEAD.size
    arrays = []
    for length, kind in ((passages, np.uint32), (passages, np.uint32), (passages, np.uint32), (terms, np.uint32)):
        arrays.append(np.frombuffer(data, kind, length, at))
        at += 4 * length
    starts = np.concatenate([np.zeros(1, np.uint32), np.cumsum(arrays[2], dtype=np.uint32)])
    return Chunks(arrays[0], arrays[1], starts, arrays[3], np.frombuffer(data, np.uint8, terms, at))


def scores(chunks: Chunks, asked: Hashes, weights: Floats) -> Floats:
    """BM25 of each passage for terms given by ascending hashes and their weights (idf and importance multiplied)."""
    passages = len(chunks.first)
    if not passages or not len(asked):
        return np.zeros(passages)
    hit, at = matched(chunks.hashes, asked)
    owner = np.repeat(np.arange(passages), chunks.starts[1:].astype(np.int64) - chunks.starts[:-1].astype(np.int64))
    length = np.bincount(owner, chunks.frequencies, passages)
    frequency = chunks.frequencies[hit].astype(np.float64)
    owners = owner[hit]
    gained = weights[at] * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length[owners] / USUAL_TERMS))
    return np.bincount(owners, gained, passages).astype(np.float64)
