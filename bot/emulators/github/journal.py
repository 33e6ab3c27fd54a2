"""Requests seen, in order, and what they add up to."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    at: str
    method: str
    path: str
    query: str
    actor: str
    permission: str
    status: int
    version: str
    seconds: float


class Journal:
    """Keeps the last 50,000 requests and exact counts of all of them."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=50_000)
        self._counts: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._counts["requests"] += 1
        self._counts[f"method {entry.method}"] += 1
        self._counts[f"actor {entry.actor}"] += 1
        self._counts[f"status {entry.status}"] += 1
        if entry.method not in {"GET", "HEAD"}:
            self._counts["mutations"] += 1

    def count(self, what: str) -> None:
        self._counts[what] += 1

    @property
    def next_number(self) -> int:
        return self._counts["requests"] + 1

    def entries(self, after: int = 0) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in self._entries if entry.number > after]

    def totals(self) -> Mapping[str, int]:
        return dict(sorted(self._counts.items()))
