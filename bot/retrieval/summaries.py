"""What summaries of files are asked for, and how near they are to a task. Pure; they are kept in the store role, by blob id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bot.domain.money import MicroUsd
from bot.providers.llm.batches import Question
from bot.retrieval.catalogue import Floats
from bot.retrieval.definition import Definition
from bot.retrieval.kinds import Kind
from bot.retrieval.view import Item, View

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
