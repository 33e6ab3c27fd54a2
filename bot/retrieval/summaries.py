"""Summaries of files and their vectors: kept by blob id in a file of their own, because unlike the index they cost money."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bot.domain.money import MicroUsd
from bot.providers.llm.batches import Answer, Question
from bot.retrieval.catalogue import Floats
from bot.retrieval.definition import Definition
from bot.retrieval.kinds import Kind
from bot.retrieval.store import IndexFault, transaction
from bot.retrieval.view import Item, View

_SCHEMA = """
CREATE TABLE IF NOT EXISTS summary (key TEXT PRIMARY KEY, text TEXT NOT NULL, vector BLOB NOT NULL DEFAULT x'');
CREATE TABLE IF NOT EXISTS batch (id TEXT PRIMARY KEY, worst INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS spent (micros INTEGER NOT NULL);
"""
SMALLEST = 20
"""Words; a smaller file says what it does by itself."""
MOST_TEXT = 6_000
MOST_OUTLINE = 3_000
MOST_SUMMARY = 800
_ASKED = (
    "Say in at most three sentences what this file of a program does, for somebody who has to find where to change something: "
    "the behaviour it is responsible for, in the words of its users, and the main names it defines. Answer with the sentences only."
)


@dataclass(frozen=True, slots=True)
class Job:
    """A file to summarise: its key in the file of summaries, and its item of the view."""

    key: str
    item: int


def key_of(item: Item) -> str:
    """Blob id and language, in letters that a batch takes."""
    return f"{item.oid}_{item.language}"[:64]


class Summaries:
    """One connection to the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60.0, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            raise IndexFault(
                f"The summaries {self.path} cannot be used ({error}).", "What is in them is kept."
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._explained(), transaction(self._db):
            yield self._db

    def texts(self) -> dict[str, str]:
        """Every summary by its key."""
        return dict(self._db.execute("SELECT key, text FROM summary"))

    def without_vector(self) -> list[tuple[str, str]]:
        """Key and text of summaries that are not embedded yet, in order."""
        return list(self._db.execute("SELECT key, text FROM summary WHERE vector = x'' ORDER BY key"))

    def vectors(self) -> dict[str, bytes]:
        """Int8 vectors by key."""
        return dict(self._db.execute("SELECT key, vector FROM summary WHERE vector != x''"))

    def batches(self) -> list[str]:
        """Batches that were submitted and not collected."""
        return [batch for (batch,) in self._db.execute("SELECT id FROM batch ORDER BY id")]

    def spent(self) -> MicroUsd:
        """What summaries and vectors have cost so far."""
        (micros,) = self._db.execute("SELECT COALESCE(SUM(micros), 0) FROM spent").fetchone()
        return MicroUsd(micros)

    def submitted(self, batch: str, worst: MicroUsd) -> None:
        """Remember a batch until it is collected."""
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO batch VALUES (?, ?)", (batch, worst))

    def collected(self, batch: str, answers: Iterable[Answer]) -> None:
        """Keep the answers of a batch, what they cost, and forget the batch: all or nothing."""
        answers = list(answers)
        with self._writing() as db:
            if db.execute("DELETE FROM batch WHERE id = ?", (batch,)).rowcount == 0:
                return  # another process was first
            kept = [(answer.key, answer.text[:MOST_SUMMARY]) for answer in answers if answer.text]
            db.executemany("INSERT OR IGNORE INTO summary (key, text) VALUES (?, ?)", kept)
            db.execute("INSERT INTO spent VALUES (?)", (sum(answer.cost for answer in answers),))

    def embedded(self, vectors: Mapping[str, bytes], cost: MicroUsd) -> None:
        """Keep vectors and what they cost."""
        with self._writing() as db:
            db.executemany(
                "UPDATE summary SET vector = ? WHERE key = ?", [(data, key) for key, data in vectors.items()]
            )
            db.execute("INSERT INTO spent VALUES (?)", (cost,))


def wanted(view: View, known: Iterable[str]) -> list[Job]:
    """Code files without a summary, one for each blob, in path order."""
    seen = set(known)
    found: list[Job] = []
    for number, item in enumerate(view):
        key = key_of(item)
        if item.kind is Kind.CODE and item.state == "read" and item.terms >= SMALLEST and key not in seen:
            seen.add(key)
            found.append(Job(key, number))
    return found


def question(job: Job, path: str, outline: Sequence[Definition], text: str) -> Question:
    """The prompt of one file: its path, what it defines, and how it begins."""
    defined = "\n".join(f"{one.signature}  {one.doc}".rstrip() for one in outline if one.signature)
    parts = (_ASKED, f"Path: {path}", f"Definitions:\n{defined[:MOST_OUTLINE]}", f"Beginning:\n{text[:MOST_TEXT]}")
    return Question(job.key, "\n\n".join(parts))


def closeness(view: View, vectors: Mapping[str, bytes], asked: bytes) -> Floats:
    """How near each item's summary is to the task, 0..1: cosine above the median, the best is 1; 0 for one without a vector."""
    rows = [
        (number, data) for number, item in enumerate(view) if len(data := vectors.get(key_of(item), b"")) == len(asked)
    ]
    found = np.zeros(len(view))
    if not rows or not asked:
        return found
    matrix = np.frombuffer(b"".join([data for _, data in rows]), np.int8).reshape(len(rows), -1).astype(np.float32)
    query = np.frombuffer(asked, np.int8).astype(np.float32)
    norms = np.maximum(np.linalg.norm(matrix, axis=1) * np.linalg.norm(query), 1e-6)
    cosines = (matrix @ query) / norms
    above = np.maximum(0.0, cosines - np.median(cosines)) if len(rows) > 2 else np.maximum(0.0, cosines)
    found[[number for number, _ in rows]] = above / max(float(above.max()), 1e-9)
    return found


def within(questions: Sequence[Question], costs: Sequence[MicroUsd], budget: MicroUsd) -> list[Question]:
    """The first questions whose costs together stay within the budget."""
    left = int(budget)
    kept: list[Question] = []
    for one, cost in zip(questions, costs, strict=True):
        left -= cost
        if left < 0:
            break
        kept.append(one)
    return kept
