"""BM25 over words of paths and texts. Words are identifiers cut at case changes and underscores, so `rate limit` finds `RateLimiter`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*|\d+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "is",
        "it",
        "its",
        "not",
        "of",
        "on",
        "or",
        "so",
        "that",
        "the",
        "this",
        "to",
        "was",
        "we",
        "when",
        "will",
        "with",
        "you",
        "should",
        "could",
        "would",
        "please",
        "add",
        "all",
        "new",
        "use",
        "make",
        "it's",
    ]
)
_K1 = 1.2
_B = 0.75
_PATH_WEIGHT = 4


def words(text: str) -> list[str]:
    """Lower-case words: each identifier whole and in its parts, without stop words and one-letter ones."""
    found: list[str] = []
    for match in _WORD.finditer(text):
        whole = match.group()
        parts = _PART.findall(whole)
        candidates = [whole, *parts] if len(parts) > 1 else [whole]
        found += [low for part in candidates if len(low := _stem(part.lower())) > 1 and low not in _STOP]
    return found


def _stem(word: str) -> str:
    for ending in ("ing", "ers", "er", "ies", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@dataclass(frozen=True, slots=True)
class Ranked:
    """A file with its score and the words that made it, best first."""

    path: str
    score: float
    why: tuple[str, ...]


def rank(query: str, texts: Mapping[str, str]) -> tuple[Ranked, ...]:
    """Files with a score above zero, best first; equal scores in path order."""
    wanted = Counter(words(query))
    counts = {path: _count(path, text, wanted) for path, text in texts.items()}
    lengths = {path: len(text) / 6 + 10 for path, text in texts.items()}
    average = sum(lengths.values()) / max(len(lengths), 1)
    present = Counter(word for count in counts.values() for word in count)
    ranked = []
    for path, count in counts.items():
        scores = {
            word: _weight(len(texts), present[word]) * _saturated(frequency, lengths[path] / average)
            for word, frequency in count.items()
        }
        if scores:
            why = tuple(sorted(scores, key=lambda word: (-scores[word], word))[:4])
            ranked.append(Ranked(path, round(sum(scores.values()), 6), why))
    return tuple(sorted(ranked, key=lambda item: (-item.score, item.path)))


def _count(path: str, text: str, wanted: Counter[str]) -> dict[str, int]:
    counts = Counter(word for word in words(text) if word in wanted)
    for word in words(path):
        if word in wanted:
            counts[word] += _PATH_WEIGHT
    return dict(counts)


def _weight(files: int, having: int) -> float:
    return math.log(1 + (files - having + 0.5) / (having + 0.5))


def _saturated(frequency: float, relative_length: float) -> float:
    return frequency * (_K1 + 1) / (frequency + _K1 * (1 - _B + _B * relative_length))
