"""The index on disk: one SQLite file, keyed by blob id, language and extractor version. Everything in it can be rebuilt.

A segment is written in one transaction, so a killed process loses at most the one it was writing; two processes may
write at the same time, and the second leaves out what the first has brought.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bot.custody import raw
from bot.domain.errors import UserError
from bot.retrieval.chunks import Chunks, unpack
from bot.retrieval.extract import VERSION
from bot.retrieval.segment import Outline, Segment, unpack_outline

_SCHEMA = """
CREATE TABLE IF NOT EXISTS blob (
  id INTEGER PRIMARY KEY, oid TEXT NOT NULL, language TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL,
  lines INTEGER NOT NULL, size INTEGER NOT NULL, generated INTEGER NOT NULL, total INTEGER NOT NULL,
  symbols INTEGER NOT NULL, UNIQUE (oid, language, version));
CREATE TABLE IF NOT EXISTS content (id INTEGER PRIMARY KEY, outline BLOB NOT NULL, passages BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS segment (first INTEGER PRIMARY KEY, documents INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS posting (
  field INTEGER NOT NULL, term TEXT NOT NULL, first INTEGER NOT NULL, pairs BLOB NOT NULL,
  PRIMARY KEY (field, term, first)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (
  path BLOB PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, inode INTEGER NOT NULL, oid TEXT NOT NULL
  ) WITHOUT ROWID;
"""
_PAIRS = np.dtype([("row", "<u2"), ("frequency", "u1")])
_WAIT_SECONDS = 60.0

Ints = npt.NDArray[np.int64]
Key = tuple[str, str]
"""Blob id and language."""


class IndexFault(UserError):  # noqa: N818 - as its parent, it names what the person can do something about
    """The index cannot be written or read; what was in it before stays."""


@dataclass(frozen=True, slots=True)
class Document:
    """One blob in the index."""

    id: int
    state: str
    lines: int
    size: int
    generated: bool
    total: int
    symbols: int


@dataclass(frozen=True, slots=True)
class Postings:
    """Documents that have a term, ascending, and how often each."""

    documents: Ints
    frequencies: Ints


NOTHING = Postings(np.zeros(0, np.int64), np.zeros(0, np.int64))


class Store:
    """One connection to the file; not to be shared between threads at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA cache_size=-65536")
            self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def limit_pages(self, pages: int) -> None:
        """The file may not grow past this many pages of 4 KiB."""
        self._db.execute(f"PRAGMA max_page_count={int(pages)}")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with _explained(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def add(self, segment: Segment) -> None:
        """Write the blobs that are not there yet; numbers of the others stay unused."""
        with self._writing() as db:
            (first,) = db.execute("SELECT COALESCE(MAX(first + documents), 1) FROM segment").fetchone()
            db.execute("INSERT INTO segment VALUES (?, ?)", (first, len(segment.rows)))
            db.executemany(
                "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        first + number,
                        row.oid,
                        row.language,
                        VERSION,
                        row.state,
                        row.lines,
                        row.size,
                        row.generated,
                        row.total,
                        row.symbols,
                    )
                    for number, row in enumerate(segment.rows)
                ),
            )
            db.executemany(
                "INSERT INTO content SELECT id, ?, ? FROM blob WHERE id = ?",
                ((row.outline, row.passages, first + number) for number, row in enumerate(segment.rows)),
            )
            db.executemany(
                "INSERT INTO posting VALUES (?, ?, ?, ?)",
                ((field, term, first, pairs) for field, term, pairs in segment.postings),
            )

    def size(self) -> int:
        """How many blobs are in it."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM blob").fetchone()
        return int(count)

    def documents(self, oids: Iterable[str]) -> dict[Key, Document]:
        """What is known of these blobs, by blob id and language."""
        asked = json.dumps(sorted(set(oids)))
        rows = self._db.execute(
            "SELECT b.oid, b.language, b.id, b.state, b.lines, b.size, b.generated, b.total, b.symbols"
            " FROM json_each(?) AS j CROSS JOIN blob AS b ON b.oid = j.value WHERE b.version = ?",
            (asked, VERSION),
        )
        return {
            (row[0], row[1]): Document(row[2], row[3], row[4], row[5], bool(row[6]), row[7], row[8]) for row in rows
        }

    def postings(self, field: int, terms: Sequence[str]) -> dict[str, Postings]:
        """Postings of each of these terms; a term that nobody has is left out."""
        found: dict[str, list[tuple[int, bytes]]] = {}
        rows = self._db.execute(
            "SELECT p.term, p.first, p.pairs FROM json_each(?) AS j CROSS JOIN posting AS p"
            " ON p.field = ? AND p.term = j.value ORDER BY p.term, p.first",
            (json.dumps(list(terms)), field),
        )
        for term, first, pairs in rows:
            found.setdefault(term, []).append((first, pairs))
        return {term: _joined(parts) for term, parts in found.items()}

    def outlines(self, ids: Iterable[int]) -> dict[int, Outline]:
        """Definitions and imports of these documents."""
        rows = self._db.execute(
            "SELECT b.id, b.outline FROM json_each(?) AS j CROSS JOIN content AS b ON b.id = j.value",
            (json.dumps(sorted(ids)),),
        )
        return {identifier: unpack_outline(data) for identifier, data in rows}

    def passages(self, ids: Iterable[int]) -> dict[int, Chunks]:
        """Passages of these documents."""
        rows = self._db.execute(
            "SELECT b.id, b.passages FROM json_each(?) AS j CROSS JOIN content AS b ON b.id = j.value",
            (json.dumps(sorted(ids)),),
        )
        return {identifier: unpack(data) for identifier, data in rows}

    def seen(self) -> dict[str, tuple[int, int, int, str]]:
        """Files of a plain folder as last looked at: size, time of change in ns, inode, blob id."""
        return {raw.text(row[0]): (row[1], row[2], row[3], row[4]) for row in self._db.execute("SELECT * FROM seen")}

    def remember(self, put: Mapping[str, tuple[int, int, int, str]], gone: Iterable[str]) -> None:
        """Update what `seen` tells."""
        with self._writing() as db:
            db.executemany("DELETE FROM seen WHERE path = ?", ((raw.octets(path),) for path in gone))
            db.executemany(
                "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)",
                ((raw.octets(path), *stamp) for path, stamp in put.items()),
            )


def _joined(parts: Sequence[tuple[int, bytes]]) -> Postings:
    documents, frequencies = [], []
    for first, pairs in parts:
        read = np.frombuffer(pairs, dtype=_PAIRS)
        documents.append(read["row"].astype(np.int64) + first)
        frequencies.append(read["frequency"].astype(np.int64))
    return Postings(np.concatenate(documents), np.concatenate(frequencies))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """What SQLite and the file system refuse, as one sentence to a person."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = error.sqlite_errorname if hasattr(error, "sqlite_errorname") else ""
        if "FULL" in code or "IOERR" in code:
            raise IndexFault(
                f"The index {path} cannot grow ({error}); what it held before is kept.", "Free some disk space."
            ) from error
        if code in {"SQLITE_CORRUPT", "SQLITE_NOTADB"}:
            raise IndexFault(f"The index {path} is damaged ({error}).", "Delete the file; it is built anew.") from error
        raise IndexFault(f"The index {path} cannot be used ({error}).") from error
    except OSError as error:
        raise IndexFault(f"The index {path} cannot be written: {error.strerror}.") from error
