"""A batch of extracts as rows for the store: outlines, and postings packed by term. Made in the parsing process."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.retrieval import words
from bot.retrieval.definition import Definition
from bot.retrieval.extract import Extract, extract

BODY, SYMBOLS, DEFINED = 0, 1, 2
"""Fields of postings: terms of the whole text, terms of definitions' names, names of definitions as written."""
MOST_DOCUMENTS = 60_000
_POSTING = struct.Struct("<HB")


@dataclass(frozen=True, slots=True)
class Source:
    """One blob to read: its git id, its language, its bytes; `state` set when it is not to be read at all."""

    oid: str
    language: str
    data: bytes
    state: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One blob of a segment: `total` terms of the text, `symbols` terms of its definitions' names, packed outline."""

    oid: str
    language: str
    state: str
    lines: int
    size: int
    generated: bool
    total: int
    symbols: int
    outline: bytes
    passages: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows, numbered from 0, and postings (field, term, packed pairs of row number and frequency)."""

    rows: tuple[Row, ...]
    postings: tuple[tuple[int, str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """What is shown of a file and joins it with others."""

    definitions: tuple[Definition, ...]
    imports: tuple[str, ...]


def build(sources: Iterable[Source]) -> Segment:
    """Reads every source; the same sources give the same segment."""
    rows: list[Row] = []
    postings: dict[tuple[int, str], bytearray] = {}
    pack = _POSTING.pack
    for number, source in enumerate(sources):
        found = _read(source)
        symbols = symbol_terms(found.definitions)
        rows.append(_row(source, found, symbols))
        named = Counter(definition.name for definition in found.definitions)
        for field, counts in ((BODY, found.counts), (SYMBOLS, symbols), (DEFINED, named)):
            for term, frequency in counts.items():
                pair = pack(number, min(255, frequency))
                held = postings.get((field, term))
                if held is None:
                    postings[field, term] = bytearray(pair)
                else:
                    held += pair
    packed = tuple((field, term, bytes(data)) for (field, term), data in sorted(postings.items()))
    return Segment(tuple(rows), packed)


def _read(source: Source) -> Extract:
    if source.state:
        return Extract(source.language, source.state, size=source.size)
    try:
        return extract(source.data, source.language)
    except (ValueError, RuntimeError, MemoryError):  # costs this file only; nothing here raises them by design
        return Extract(source.language, "failed", size=len(source.data))


def symbol_terms(definitions: Iterable[Definition]) -> dict[str, int]:
    """Terms of the names that are defined."""
    return words.count(Counter(definition.name for definition in definitions).items())


def _row(source: Source, found: Extract, symbols: dict[str, int]) -> Row:
    return Row(
        source.oid,
        source.language,
        found.state,
        found.lines,
        found.size,
        found.generated,
        sum(found.counts.values()),
        sum(symbols.values()),
        pack_outline(Outline(found.definitions, found.imports)),
        found.passages,
    )


def pack_outline(outline: Outline) -> bytes:
    """Compressed JSON."""
    if not outline.definitions and not outline.imports:
        return b""
    value = [
        [(one.name, one.kind, one.first, one.last, one.signature, one.doc, one.inside) for one in outline.definitions],
        outline.imports,
    ]
    return zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"), 3)


def unpack_outline(data: bytes) -> Outline:
    """The opposite of `pack_outline`."""
    if not data:
        return Outline((), ())
    definitions, imports = json.loads(zlib.decompress(data))
    return Outline(tuple(Definition(*row) for row in definitions), tuple(imports))


def unpack_postings(data: bytes) -> Iterator[tuple[int, int]]:
    """Pairs of row number and frequency."""
    yield from _POSTING.iter_unpack(data)
