"""Words of code and prose. An identifier is one term whole and one for each part, so `rate limit` finds `RateLimiter`."""

from __future__ import annotations

import re
import zlib
from collections import Counter

WORD = re.compile(r"[^\W\d]\w*|\d{2,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]{2,}")
LONGEST = 60
"""Characters; what is longer is data, not a word."""
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


def is_term(low: str) -> bool:
    """Whether a part of an identifier, in small letters, says anything."""
    return len(low) > 1 and low not in _STOP


def terms(word: str) -> tuple[str, ...]:
    """Terms of one identifier or word: its parts, stemmed, and the whole when it has several parts."""
    if len(word) > LONGEST:
        return ()
    low = word.lower().strip("_")
    parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [low]
    kept = [stem(part) for part in parts if is_term(part)]
    if len(low) > 1 and parts != [low]:
        kept.append(low)
    return tuple(kept)


def whole(name: str) -> str:
    """The term by which an identifier is found as a whole: the last of `terms`, without making the others."""
    bare = name.strip("_")
    return stem(bare.lower()) if not name.isascii() or _PART.fullmatch(bare) else bare.lower()


def words_of(text: str) -> Counter[str]:
    """Words as they are written, case kept, with how often they occur."""
    return Counter(WORD.findall(text))


def terms_of(text: str) -> dict[str, int]:
    """Terms of a text with how often they occur."""
    found: dict[str, int] = {}
    for word, times in words_of(text).items():
        for term in terms(word):
            found[term] = found.get(term, 0) + times
    return found


def hash_of(term: str) -> int:
    """What the index knows a term by: 32 bits, the same in every process."""
    return zlib.crc32(term.encode("utf-8", "replace"))
