"""Words of code and prose. An identifier is one term whole and one for each part, so `rate limit` finds `RateLimiter`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

WORD = re.compile(r"[^\W\d]\w*|\d{2,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]{2,}")
LONGEST = 60
"""Characters; what is longer is data, not a word."""
_REMEMBERED = 400_000
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
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
        "then",
        "there",
        "this",
        "to",
        "was",
        "we",
        "when",
        "which",
        "will",
        "with",
        "would",
        "should",
        "could",
        "you",
        "i",
    ]
)
_memory: dict[str, tuple[str, ...]] = {}


def stem(word: str) -> str:
    """The word without its English ending: plural, -ed and -ing; short words stay."""
    if len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def terms(word: str) -> tuple[str, ...]:
    """Terms of one identifier or word: its parts, stemmed, and the whole when it has several parts."""
    known = _memory.get(word)
    if known is not None:
        return known
    found = _terms(word)
    if len(_memory) >= _REMEMBERED:
        _memory.clear()
    _memory[word] = found
    return found


def _terms(word: str) -> tuple[str, ...]:
    if len(word) > LONGEST:
        return ()
    low = word.lower().strip("_")
    parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [low]
    kept = [stem(part) for part in parts if len(part) > 1 and part not in _STOP]
    if len(low) > 1 and parts != [low]:
        kept.append(low)
    return tuple(kept)


def count(words: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How often each term occurs, given how often each word does."""
    found: dict[str, int] = {}
    known, held = _memory.get, found.get
    for word, times in words:
        parts = known(word)
        for term in terms(word) if parts is None else parts:
            found[term] = held(term, 0) + times
    return found


def words_of(text: str) -> Counter[str]:
    """Words as they are written, case kept, with how often they occur."""
    return Counter(WORD.findall(text))


def terms_of(text: str) -> dict[str, int]:
    """Terms of a text with how often they occur."""
    return count(words_of(text).items())
