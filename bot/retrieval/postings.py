"""Which documents have a term, as arrays: made of counts, merged, and cut into buckets that a query reads a few of. Pure.

Terms are known by their hashes, in ascending order; a bucket holds the hashes that begin with the same bits.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]
MOST_DOCUMENTS = 60_000
"""Documents of one segment: a document is kept as 16 bits."""
_BUCKET = 2000
"""Postings of a bucket, about: eight kilobytes."""
_MOST_BITS = 20
_HASH_BITS = 32
_HEAD = struct.Struct("<II")
_MOST_FREQUENCY = 255
_LOW = 0xFFFF
_SIGNED_BITS = 63


@dataclass(frozen=True, slots=True)
class Inverted:
    """Term i has documents[starts[i]:starts[i + 1]], ascending, and as many frequencies."""

    hashes: Hashes
    starts: Ints
    documents: npt.NDArray[np.uint16]
    frequencies: npt.NDArray[np.uint8]


def summed(keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Distinct keys, ascending, and the sum of the counts of each."""
    if not len(keys):
        return keys, counts
    bits = int(counts.max()).bit_length()
    if int(keys.max()) >> (_SIGNED_BITS - bits):
        order = np.argsort(keys)
        ordered, times = keys[order], counts[order]
    else:  # sorting one array takes a quarter of the time
        times = keys << bits
        times |= counts
        times.sort()
        ordered = times >> bits
        times &= (1 << bits) - 1
    firsts = changes(ordered)
    return ordered[firsts], np.add.reduceat(times, firsts)


def changes(ordered: npt.NDArray[np.integer[Any]]) -> Ints:
    """Where a new value begins."""
    if not len(ordered):
        return np.zeros(0, np.int64)
    return np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def inverted(hashes: Hashes, documents: Ints, counts: Ints) -> Inverted:
    """Of three parallel arrays; pairs that occur several times are added up."""
    keys, sums = summed(hashes.astype(np.int64) << 16 | documents, counts)
    terms = keys >> 16
    firsts = changes(terms)
    return Inverted(
        terms[firsts].astype(np.uint32),
        np.append(firsts, len(keys)),
        (keys & 0xFFFF).astype(np.uint16),
        np.minimum(sums, _MOST_FREQUENCY).astype(np.uint8),
    )


def merged(parts: Sequence[tuple[int, Inverted]]) -> Inverted:
    """One of several, whose documents are counted from the number that stands before each."""
    hashes = [np.repeat(part.hashes, np.diff(part.starts)) for _, part in parts]
    documents = [part.documents.astype(np.int64) + offset for offset, part in parts]
    counts = [part.frequencies.astype(np.int64) for _, part in parts]
    return inverted(np.concatenate(hashes), np.concatenate(documents), np.concatenate(counts))


def bits_for(postings: int) -> int:
    """How many bits of a hash name its bucket."""
    return min(max((postings // _BUCKET).bit_length(), 0), _MOST_BITS)


def buckets(found: Inverted, bits: int) -> Iterator[tuple[int, bytes]]:
    """Bucket numbers and their bytes; an empty bucket is left out."""
    numbers = bucket_of(found.hashes, bits)
    edges = [*changes(numbers).tolist(), len(numbers)]
    for begin, end in itertools.pairwise(edges):
        first, last = found.starts[begin], found.starts[end]
        sizes = np.diff(found.starts[begin : end + 1]).astype(np.uint16)
        held = (found.hashes[begin:end], sizes, found.documents[first:last], found.frequencies[first:last])
        yield int(numbers[begin]), _HEAD.pack(end - begin, last - first) + b"".join([part.tobytes() for part in held])


def bucket_of(hashes: Hashes, bits: int) -> Ints:
    """The bucket of each hash."""
    return hashes.astype(np.int64) >> (_HASH_BITS - bits)


def joined(packed: Iterable[bytes]) -> Inverted:
    """The opposite of `buckets`; they come in ascending order."""
    hashes, sizes, documents, frequencies = [], [], [], []
    for data in packed:
        terms, postings = _HEAD.unpack_from(data)
        at = _HEAD.size
        hashes.append(np.frombuffer(data, np.uint32, terms, at))
        sizes.append(np.frombuffer(data, np.uint16, terms, at + 4 * terms))
        documents.append(np.frombuffer(data, np.uint16, postings, at + 6 * terms))
        frequencies.append(np.frombuffer(data, np.uint8, postings, at + 6 * terms + 2 * postings))
    if not hashes:
        return NOTHING
    lengths = np.concatenate(sizes).astype(np.int64)
    return Inverted(
        np.concatenate(hashes),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
        np.concatenate(documents),
        np.concatenate(frequencies),
    )


NOTHING = Inverted(np.zeros(0, np.uint32), np.zeros(1, np.int64), np.zeros(0, np.uint16), np.zeros(0, np.uint8))


def ranges(firsts: Ints, lasts: Ints) -> Ints:
    """Numbers of each range, from its first to before its last, one after the other."""
    lengths = lasts - firsts
    before = np.cumsum(lengths) - lengths
    found: Ints = np.arange(int(lengths.sum())) + np.repeat(firsts - before, lengths)
    return found


def places(starts: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """For rows i of `chosen` with entries starts[i]:starts[i + 1]: which row each entry belongs to, and where it lies."""
    firsts, lasts = starts[chosen], starts[chosen + 1]
    return np.repeat(np.arange(len(chosen)), lasts - firsts), ranges(firsts, lasts)


def matched(hashes: Hashes, asked: Hashes) -> tuple[Ints, Ints]:
    """Which of the hashes are among the asked ones (ascending), and the place of each there. Most are told apart by half their
    bits."""
    likely = np.zeros(_LOW + 1, np.bool_)
    likely[asked & _LOW] = True
    hit = np.flatnonzero(likely[hashes & _LOW])
    at = np.searchsorted(asked, hashes[hit])
    at[at == len(asked)] = 0
    same = asked[at] == hashes[hit]
    return hit[same], at[same]
