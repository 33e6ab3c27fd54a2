"""A batch of sources as rows for the store, and their postings. Made in the parsing process, counted by arrays."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted
from typing import NamedTuple, TypeVar

import numpy as np

from bot.custody.raw import blob_id
from bot.retrieval import chunks, disk
from bot.retrieval.definition import Definition
from bot.retrieval.extract import LARGEST, Extract, Parsed, extracted, parsed
from bot.retrieval.postings import Hashes, Ints, Inverted, inverted, places, ranges, summed
from bot.retrieval.runs import Runs
from bot.retrieval.vocabulary import Vocabulary
from bot.retrieval.words import hash_of

BODY, SYMBOLS, DEFINED = 0, 1, 2
"""Fields of postings: terms of the whole text, terms of definitions' names, names of definitions as written."""
_MOST_RUNS = 400_000
_GROUP_BYTES = 1_000_000
"""Of sources whose syntax trees are held at the same time; a tree takes some twenty times as much."""
_SHORTEST_NAME = 4
"""Characters; shorter names are used by too many files to join two of them."""

_Given = TypeVar("_Given")
_Read = TypeVar("_Read")


class Source(NamedTuple):
    """One blob to read: its git id, its language, its bytes or the file with them; `state` set when it is not to be read. Plain
    tuples cross from process to process in a third of the time."""

    oid: str
    language: str
    data: bytes = b""
    state: str = ""
    size: int = 0
    path: str = ""


class Row(NamedTuple):
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


_ALONE = threading.Lock()
"""Parsers, cursors and the vocabulary of a process serve one batch at a time."""
_vocabularies = [Vocabulary()]
"""The one of this process; renewed when it has grown large."""


def _vocabulary() -> Vocabulary:
    if len(_vocabularies[0]) > _MOST_RUNS:
        _vocabularies[0] = Vocabulary()
    return _vocabularies[0]


def build(sources: Sequence[Source]) -> Segment:
    """Reads every source that still is what it was when it was listed; the same sources give the same segment."""
    with _ALONE:
        return _built(sources)


def _built(sources: Sequence[Source]) -> Segment:
    vocabulary = _vocabulary()
    sources = [there for source in sources if (there := _loaded(source)) is not None]
    found = [one for group in _groups(sources) for one in _read(group)]
    counted = _passages(found, vocabulary)
    cuts = [0, *np.cumsum([len(one.passages) for one in found]).tolist()]
    document_of = np.repeat(np.arange(len(found)), np.diff(cuts))
    body = (counted.hashes, document_of[counted.passage], counted.times)
    names = [definition.name for one in found for definition in one.definitions]
    owner = np.repeat(np.arange(len(found)), [len(one.definitions) for one in found])
    runs = vocabulary.numbers(Runs.of([name.encode() for name in names]))
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


def _groups(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """In order, each small enough that the syntax trees of all of it fit the memory."""
    group: list[Source] = []
    weight = 0
    for source in sources:
        size = len(source.data)
        if group and weight + size > _GROUP_BYTES:
            yield group
            group, weight = [], 0
        group.append(source)
        weight += size
    if group:
        yield group


def _read(group: Sequence[Source]) -> list[Extract]:
    opened = [_or_failed(_opened, source, source) for source in group]
    return [
        _or_failed(extracted, one, source) if isinstance(one, Parsed) else one
        for source, one in zip(group, opened, strict=True)
    ]


def _opened(source: Source) -> Parsed | Extract:
    if source.state:
        return Extract(source.language, source.state, source.size)
    return parsed(source.data, source.language)


def _or_failed(read: Callable[[_Given], _Read], given: _Given, source: Source) -> _Read | Extract:
    """What cannot be read costs this file only: it did what nothing should."""
    try:
        return read(given)
    except (ValueError, RuntimeError, MemoryError):
        return Extract(source.language, "failed", source.size or len(source.data))


def _loaded(source: Source) -> Source | None:
    """With its bytes; None when the file was changed since or is gone: other bytes must not be known by this id."""
    if not source.path or source.state:
        return source
    try:
        data = disk.read(source.path, LARGEST + 1)
    except OSError:
        return None
    return source._replace(data=data) if blob_id(data) == source.oid else None


def _passages(found: Sequence[Extract], vocabulary: Vocabulary) -> _Counted:
    """Terms of every passage, numbered through the batch."""
    texts: list[bytes] = []
    begins: list[int] = []
    ends: list[int] = []
    base = 0
    for one in found:
        if one.text is None:
            continue
        lines, end = one.text.ends, len(one.text.source)
        begins += [base + (lines[first - 2] + 1 if first > 1 else 0) for first, _ in one.passages]
        ends += [base + (lines[last - 1] if last <= len(lines) else end) for _, last in one.passages]
        texts.append(one.text.source)
        base += end + 1
    runs = Runs.within(b"\n".join(texts))
    lows, highs = np.searchsorted(runs.begins, begins), np.searchsorted(runs.begins, ends)
    passage = np.repeat(np.arange(len(begins)), highs - lows)
    numbers = vocabulary.numbers(runs)
    hashes, owner, times = _terms(passage, numbers[ranges(lows, highs)], vocabulary)
    keys, sums = summed(owner << 32 | hashes, times)
    return _Counted(keys >> 32, (keys & 0xFFFFFFFF).astype(np.uint32), sums)


def _terms(owner: Ints, runs: Ints, vocabulary: Vocabulary) -> tuple[chunks.Hashes, Ints, Ints]:
    """Terms of runs, given who owns each: hashes, owners, and how often; the same pair may come several times."""
    most = len(vocabulary) + 1
    keys, times = np.unique(owner * most + runs, return_counts=True)
    entry, at = places(vocabulary.starts, keys % most)
    return vocabulary.hashes[at], (keys // most)[entry], times[entry]


def _names(found: Sequence[Extract], runs: Ints, vocabulary: Vocabulary) -> list[bytes]:
    """For each source the terms of its names as a whole, each the last one of its run."""
    starts, hashes = vocabulary.starts, vocabulary.hashes
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
    """JSON, not compressed: that would cost more time than the disk it saves is worth. Written by hand: in a third of the time."""
    if not definitions:
        return b""
    rows = [
        f"[{quoted(name)},{quoted(kind)},{first},{last},{quoted(signature)},{quoted(doc)},{quoted(inside)}]"
        for name, kind, first, last, signature, doc, inside in definitions
    ]
    return f"[{','.join(rows)}]".encode("utf-8", "replace")


def unpack_outline(data: bytes) -> tuple[Definition, ...]:
    """The opposite of `pack_outline`."""
    return tuple([Definition(*row) for row in json.loads(data)]) if data else ()


def unpack_joints(imports: bytes, names: bytes) -> Joints:
    """Of the two columns of a row."""
    return Joints(tuple(imports.decode().split("\n")) if imports else (), np.frombuffer(names, np.uint32))
