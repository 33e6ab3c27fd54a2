"""A batch of sources as rows for the store, and their postings. Made in the parsing process, counted by arrays."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bot.custody.raw import blob_id
from bot.retrieval import chunks, disk, words
from bot.retrieval.definition import Definition
from bot.retrieval.extract import LARGEST, Extract, extract
from bot.retrieval.postings import Hashes, Ints, Inverted, inverted, places, summed
from bot.retrieval.words import Vocabulary, hash_of

BODY, SYMBOLS, DEFINED = 0, 1, 2
"""Fields of postings: terms of the whole text, terms of definitions' names, names of definitions as written."""
_MOST_RUNS = 400_000
_SHORTEST_NAME = 4
"""Characters; shorter names are used by too many files to join two of them."""


@dataclass(frozen=True, slots=True)
class Source:
    """One blob to read: its git id, its language, its bytes or the file with them; `state` set when it is not to be read."""

    oid: str
    language: str
    data: bytes = b""
    state: str = ""
    size: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One blob of a segment: `total` terms of the text, `symbols` terms of its definitions' names; the rest is packed."""

    oid: str
    language: str
    state: str
    lines: int
    size: int
    generated: bool
    total: int
    symbols: int
    outline: bytes
    imports: bytes
    names: bytes
    passages: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows, numbered from 0, and the postings of each field."""

    rows: tuple[Row, ...]
    postings: tuple[Inverted, Inverted, Inverted]


@dataclass(frozen=True, slots=True)
class Joints:
    """What joins a file with others: what it imports, and the terms of the names it defines, ascending."""

    imports: tuple[str, ...]
    names: Hashes


@dataclass(frozen=True, slots=True)
class _Counted:
    """Terms of passages: passage of the batch, hash, and how often; in this order."""

    passage: Ints
    hashes: chunks.Hashes
    times: Ints


_vocabularies = [Vocabulary()]
"""The one of this process; renewed when it has grown large."""


def _vocabulary() -> Vocabulary:
    if len(_vocabularies[0]) > _MOST_RUNS:
        _vocabularies[0] = Vocabulary()
    return _vocabularies[0]


def build(sources: Sequence[Source]) -> Segment:
    """Reads every source that still is what it was when it was listed; the same sources give the same segment."""
    vocabulary = _vocabulary()
    sources = [there for source in sources if (there := _loaded(source)) is not None]
    found = [_read(source) for source in sources]
    counted = _passages(found, vocabulary)
    cuts = [0, *np.cumsum([len(one.passages) for one in found]).tolist()]
    document_of = np.repeat(np.arange(len(found)), np.diff(cuts))
    body = (counted.hashes, document_of[counted.passage], counted.times)
    names = [definition.name for one in found for definition in one.definitions]
    owner = np.repeat(np.arange(len(found)), [len(one.definitions) for one in found])
    runs = np.array([vocabulary[name.encode()] for name in names], np.int64)
    symbols = _terms(owner, runs, vocabulary)
    written = np.array([hash_of(name) for name in names], np.uint32)
    totals = np.bincount(body[1], body[2], len(found)).astype(np.int64).tolist()
    defined = np.bincount(symbols[1], symbols[2], len(found)).astype(np.int64).tolist()
    packed = _packed(found, counted, cuts)
    rows = [
        _row(source, one, total, named, joining, passages)
        for source, one, total, named, joining, passages in zip(
            sources, found, totals, defined, _names(found, runs, vocabulary), packed, strict=True
        )
    ]
    return Segment(tuple(rows), (inverted(*body), inverted(*symbols), inverted(written, owner, np.ones_like(owner))))


def _read(source: Source) -> Extract:
    if source.state:
        return Extract(source.language, source.state, source.size)
    try:
        return extract(source.data, source.language)
    except (ValueError, RuntimeError, MemoryError):  # costs this file only: it did what nothing should
        return Extract(source.language, "failed", source.size or len(source.data))


def _loaded(source: Source) -> Source | None:
    """With its bytes; None when the file was changed since or is gone: other bytes must not be known by this id."""
    if not source.path or source.state:
        return source
    try:
        data = disk.read(source.path, LARGEST + 1)
    except OSError:
        return None
    return replace(source, data=data) if blob_id(data) == source.oid else None


def _passages(found: Sequence[Extract], vocabulary: Vocabulary) -> _Counted:
    numbers: list[Ints] = []
    sizes: list[int] = []
    number_of = vocabulary.__getitem__
    for one in found:
        if one.text is None:
            sizes += [0] * len(one.passages)
            continue
        plain, ends = words.separated(one.text.source), one.text.ends
        runs: list[bytes] = []
        for first, last in one.passages:
            before = len(runs)
            runs += plain[
                ends[first - 2] + 1 if first > 1 else 0 : ends[last - 1] if last <= len(ends) else None
            ].split()
            sizes.append(len(runs) - before)
        numbers.append(np.fromiter(map(number_of, runs), np.int64, len(runs)))
    passage = np.repeat(np.arange(len(sizes)), sizes)
    hashes, owner, times = _terms(passage, np.concatenate(numbers) if numbers else passage, vocabulary)
    keys, sums = summed(owner << 32 | hashes, times)
    return _Counted(keys >> 32, (keys & 0xFFFFFFFF).astype(np.uint32), sums)


def _terms(owner: Ints, runs: Ints, vocabulary: Vocabulary) -> tuple[chunks.Hashes, Ints, Ints]:
    """Terms of runs, given who owns each: hashes, owners, and how often; the same pair may come several times."""
    most = len(vocabulary) + 1
    keys, times = np.unique(owner * most + runs, return_counts=True)
    entry, at = places(vocabulary.starts(), keys % most)
    return vocabulary.hashes()[at], (keys // most)[entry], times[entry]


def _names(found: Sequence[Extract], runs: Ints, vocabulary: Vocabulary) -> list[bytes]:
    """For each source the terms of its names as a whole, each the last one of its run."""
    starts, hashes = vocabulary.starts(), vocabulary.hashes()
    joining = np.array([_joins(one) for source in found for one in source.definitions], np.bool_)
    kept = joining & (starts[runs + 1] > starts[runs])
    last = np.zeros(len(runs), np.uint32)
    last[kept] = hashes[starts[runs[kept] + 1] - 1]
    cuts = [0, *np.cumsum([len(one.definitions) for one in found]).tolist()]
    return [np.unique(last[begin:end][kept[begin:end]]).tobytes() for begin, end in itertools.pairwise(cuts)]


def _joins(one: Definition) -> bool:
    return len(one.name) >= _SHORTEST_NAME and one.name.isidentifier()


def _packed(found: Sequence[Extract], counted: _Counted, cuts: Sequence[int]) -> list[bytes]:
    sizes = np.bincount(counted.passage, minlength=cuts[-1])
    starts = [0, *np.cumsum(sizes).tolist()]
    frequencies = np.minimum(counted.times, 255).astype(np.uint8)
    return [
        chunks.pack(
            one.passages,
            sizes[begin:end],
            counted.hashes[starts[begin] : starts[end]],
            frequencies[starts[begin] : starts[end]],
        )
        if one.passages
        else b""
        for one, begin, end in zip(found, cuts, cuts[1:], strict=False)
    ]


def _row(source: Source, found: Extract, total: int, symbols: int, names: bytes, passages: bytes) -> Row:
    return Row(
        source.oid,
        source.language,
        found.state,
        found.lines,
        found.size,
        found.generated,
        total,
        symbols,
        pack_outline(found.definitions),
        "\n".join(found.imports).encode("utf-8", "replace"),
        names,
        passages,
    )


def pack_outline(definitions: Sequence[Definition]) -> bytes:
    """JSON, not compressed: that would cost more time than the disk it saves is worth."""
    if not definitions:
        return b""
    return json.dumps(definitions, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def unpack_outline(data: bytes) -> tuple[Definition, ...]:
    """The opposite of `pack_outline`."""
    return tuple([Definition(*row) for row in json.loads(data)]) if data else ()


def unpack_joints(imports: bytes, names: bytes) -> Joints:
    """Of the two columns of a row."""
    return Joints(tuple(imports.decode().split("\n")) if imports else (), np.frombuffer(names, np.uint32))
