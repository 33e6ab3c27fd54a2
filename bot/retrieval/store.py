"""The index on disk: one SQLite file of one extractor version, keyed by blob id and language. Everything in it can be rebuilt.

A segment is written in one transaction, so a killed process loses at most the one it was writing; two processes may
write at the same time, and the second leaves out what the first has brought. Segments of one level are merged when there
are eight, as log-structured stores do, so that a query reads few of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bot.custody import raw
from bot.domain.errors import UserError
from bot.retrieval import postings
from bot.retrieval.chunks import Chunks, unpack
from bot.retrieval.definition import Definition
from bot.retrieval.extract import VERSION
from bot.retrieval.postings import Hashes, Ints, Inverted
from bot.retrieval.segment import Joints, Segment, unpack_joints, unpack_outline
from bot.retrieval.words import hash_of

_TABLES = ("blob", "content", "segment", "posting", "kept", "seen")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS blob (
  id INTEGER PRIMARY KEY, oid TEXT NOT NULL, language TEXT NOT NULL, state TEXT NOT NULL, lines INTEGER NOT NULL,
  size INTEGER NOT NULL, generated INTEGER NOT NULL, total INTEGER NOT NULL, symbols INTEGER NOT NULL,
  UNIQUE (oid, language));
CREATE TABLE IF NOT EXISTS content (
  id INTEGER PRIMARY KEY, imports BLOB NOT NULL, names BLOB NOT NULL, outline BLOB NOT NULL, passages BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS segment (
  first INTEGER PRIMARY KEY, documents INTEGER NOT NULL, level INTEGER NOT NULL, bits TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS posting (id INTEGER PRIMARY KEY, bucket BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS seen (
  path BLOB PRIMARY KEY, size INTEGER NOT NULL, changed INTEGER NOT NULL, inode INTEGER NOT NULL, oid TEXT NOT NULL
  ) WITHOUT ROWID;
"""
_WAIT_SECONDS = 60.0
_PAGE_BYTES = 16_384
"""A bucket of postings and the passages of most files fit a page."""
_WAL_PAGES = 4_000
_SCANNED_FROM = 4
"""A quarter of all blobs are found faster by reading them all than one by one."""
_FIELD_BITS, _BUCKET_BITS = 2, 20
_MERGED_AT = 8
"""Segments of one level that become one of the next."""

Key = tuple[str, str]
"""Blob id and language."""


class IndexFault(UserError):  # noqa: N818 - as its parent, it names what the person can do something about
    """The index cannot be written or read; what was in it before stays."""


class Document(NamedTuple):
    """One blob in the index. There are as many as files, so it is a plain tuple."""

    id: int
    state: str
    lines: int
    size: int
    generated: int
    total: int
    symbols: int


@dataclass(frozen=True, slots=True)
class Postings:
    """Term i is in documents[starts[i]:starts[i + 1]], ascending, and as often as `frequencies` say; terms are sorted."""

    terms: tuple[str, ...]
    starts: Ints
    documents: Ints
    frequencies: Ints

    def of(self, term: str) -> Ints:
        """Documents that have this term."""
        if term not in self.terms:
            return self.documents[:0]
        place = self.terms.index(term)
        return self.documents[self.starts[place] : self.starts[place + 1]]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A segment as stored: documents first .. first + documents, and how many bits name a bucket of each field."""

    first: int
    documents: int
    level: int
    bits: tuple[int, ...]


class Store:
    """One connection to the file; not to be shared between threads at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._db.execute(f"PRAGMA page_size={_PAGE_BYTES}")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute("PRAGMA cache_size=-65536")
            self._prepare()

    def _prepare(self) -> None:
        if self._version() == VERSION:
            return
        with self._writing() as db:
            version = self._version()  # another process may have prepared it meanwhile
            if version > VERSION:
                raise IndexFault(f"The index {self.path} is of a newer Pullwright.", "Update, or delete the file.")
            if version < VERSION:
                for table in _TABLES:
                    db.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version={VERSION}")

    def _version(self) -> int:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        return int(version)

    def close(self) -> None:
        self._db.close()

    def limit_pages(self, pages: int) -> None:
        """The file may not grow past this many pages of 16 KiB."""
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
        """Write the blobs that are not there yet; numbers of the others stay unused. Nothing is written when all are there."""
        with self._writing() as db:
            known = self.documents(row.oid for row in segment.rows)
            if all((row.oid, row.language) in known for row in segment.rows):
                return
            (first,) = db.execute("SELECT COALESCE(MAX(first + documents), 1) FROM segment").fetchone()
            db.executemany(
                "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (first + n, r.oid, r.language, r.state, r.lines, r.size, r.generated, r.total, r.symbols)
                    for n, r in enumerate(segment.rows)
                ),
            )
            db.executemany(
                "INSERT INTO content SELECT id, ?, ?, ?, ? FROM blob WHERE id = ?",
                ((r.imports, r.names, r.outline, r.passages, first + n) for n, r in enumerate(segment.rows)),
            )
            self._put(first, len(segment.rows), 0, segment.postings)
            self._merge()

    def _put(self, first: int, documents: int, level: int, fields: Sequence[Inverted]) -> None:
        bits = [postings.bits_for(len(found.documents)) for found in fields]
        self._db.execute("INSERT INTO segment VALUES (?, ?, ?, ?)", (first, documents, level, json.dumps(bits)))
        for field, (found, wide) in enumerate(zip(fields, bits, strict=True)):
            start = _row(first, field)
            self._db.executemany(
                "INSERT INTO posting VALUES (?, ?)",
                ((start + bucket, data) for bucket, data in postings.buckets(found, wide)),
            )

    def _merge(self) -> None:
        stretches = self._stretches()
        for level in sorted({stretch.level for stretch in stretches}):
            same = [stretch for stretch in self._stretches() if stretch.level == level]
            if len(same) < _MERGED_AT:
                continue
            for group in _groups(same):
                fields = [
                    postings.merged([(part.first - group[0].first, self._field(part, field)) for part in group])
                    for field in range(len(group[0].bits))
                ]
                for part in group:
                    self._db.execute("DELETE FROM posting WHERE id >= ? AND id < ?", _rows(part.first))
                    self._db.execute("DELETE FROM segment WHERE first = ?", (part.first,))
                documents = group[-1].first + group[-1].documents - group[0].first
                self._put(group[0].first, documents, level + 1, fields)

    def _stretches(self) -> list[_Stretch]:
        rows = self._db.execute("SELECT first, documents, level, bits FROM segment ORDER BY first")
        return [_Stretch(first, documents, level, tuple(json.loads(bits))) for first, documents, level, bits in rows]

    def _field(self, part: _Stretch, field: int) -> Inverted:
        bounds = (_row(part.first, field), _row(part.first, field + 1))
        rows = self._db.execute("SELECT bucket FROM posting WHERE id >= ? AND id < ? ORDER BY id", bounds)
        return postings.joined(data for (data,) in rows)

    def size(self) -> int:
        """How many blobs are in it."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM blob").fetchone()
        return int(count)

    def kept(self, name: str) -> bytes:
        """What was kept under this name; nothing when nothing was."""
        row = self._db.execute("SELECT data FROM kept WHERE name = ?", (name,)).fetchone()
        return bytes(row[0]) if row else b""

    def keep(self, name: str, data: bytes) -> None:
        """Keep this under the name instead of what was there."""
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, data))

    def documents(self, oids: Iterable[str]) -> dict[Key, Document]:
        """What is known of these blobs, by blob id and language."""
        asked = set(oids)
        if len(asked) * _SCANNED_FROM > self.size():
            rows = self._db.execute("SELECT oid, language, id, state, lines, size, generated, total, symbols FROM blob")
            return {(row[0], row[1]): Document._make(row[2:]) for row in rows if row[0] in asked}
        rows = self._db.execute(
            "SELECT b.oid, b.language, b.id, b.state, b.lines, b.size, b.generated, b.total, b.symbols"
            " FROM json_each(?) AS j CROSS JOIN blob AS b ON b.oid = j.value",
            (json.dumps(sorted(asked)),),
        )
        return {(row[0], row[1]): Document._make(row[2:]) for row in rows}

    def postings(self, field: int, terms: Iterable[str]) -> Postings:
        """Postings of these terms; a term that nobody has is left out."""
        asked = sorted(set(terms))
        hashes = np.array([hash_of(term) for term in asked], np.uint32)
        order = np.argsort(hashes, kind="stable")
        found = [self._found(part, field, hashes[order], order) for part in self._stretches()] if asked else []
        owner, documents, frequencies = (
            np.concatenate([np.zeros(0, np.int64), *[part[column] for part in found]]) for column in range(3)
        )
        by_term = np.argsort(owner, kind="stable")
        counts = np.bincount(owner, minlength=len(asked))
        present = np.flatnonzero(counts)
        return Postings(
            tuple(asked[place] for place in present),
            np.concatenate([[0], np.cumsum(counts[present])]),
            documents[by_term],
            frequencies[by_term],
        )

    def _found(self, part: _Stretch, field: int, hashes: Hashes, order: Ints) -> tuple[Ints, Ints, Ints]:
        """Entries of one segment for these ascending hashes: number of the term, document, frequency."""
        wanted = np.unique(postings.bucket_of(hashes, part.bits[field])) + _row(part.first, field)
        rows = self._db.execute(
            "SELECT p.bucket FROM json_each(?) AS j CROSS JOIN posting AS p ON p.id = j.value",
            (json.dumps(wanted.tolist()),),
        )
        held = postings.joined(data for (data,) in rows)
        _, hits, places = np.intersect1d(hashes, held.hashes, return_indices=True)
        entry, at = postings.places(held.starts, places)
        documents = held.documents[at].astype(np.int64) + part.first
        return order[hits][entry], documents, held.frequencies[at].astype(np.int64)

    def outlines(self, ids: Iterable[int]) -> dict[int, tuple[Definition, ...]]:
        """Definitions of these documents."""
        return {row[0]: unpack_outline(row[1]) for row in self._contents("outline", ids)}

    def joints(self, ids: Iterable[int]) -> dict[int, Joints]:
        """What joins these documents with others."""
        return {row[0]: unpack_joints(row[1], row[2]) for row in self._contents("imports, names", ids)}

    def passages(self, ids: Iterable[int]) -> dict[int, Chunks]:
        """Passages of these documents."""
        return {row[0]: unpack(row[1]) for row in self._contents("passages", ids)}

    def _contents(self, columns: str, ids: Iterable[int]) -> sqlite3.Cursor:
        return self._db.execute(
            f"SELECT b.id, {columns} FROM json_each(?) AS j CROSS JOIN content AS b ON b.id = j.value",  # noqa: S608 - ours
            (json.dumps(sorted(ids)),),
        )

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


def _row(first: int, field: int) -> int:
    """The first row of a segment's field; one for each bucket follows."""
    return (first << _FIELD_BITS | field) << _BUCKET_BITS


def _rows(first: int) -> tuple[int, int]:
    """All rows of a segment: from here, to before there."""
    return _row(first, 0), _row(first + 1, 0)


def _groups(same: Sequence[_Stretch]) -> list[list[_Stretch]]:
    """Neighbours that together are not too many documents for one segment; one alone moves up as it is."""
    groups: list[list[_Stretch]] = []
    for stretch in same:
        if groups and stretch.first + stretch.documents - groups[-1][0].first <= postings.MOST_DOCUMENTS:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return groups


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
