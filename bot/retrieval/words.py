"""Words of code and prose. An identifier is one term whole and one for each part, so `rate limit` finds `RateLimiter`."""

from __future__ import annotations

import re
import zlib
from array import array
from collections import Counter

import numpy as np
import numpy.typing as npt

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


def terms(word: str) -> tuple[str, ...]:
    """Terms of one identifier or word: its parts, stemmed, and the whole when it has several parts."""
    if len(word) > LONGEST:
        return ()
    low = word.lower().strip("_")
    parts = [part.lower() for part in _PART.findall(word)] if word.isascii() else [low]
    kept = [stem(part) for part in parts if len(part) > 1 and part not in _STOP]
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


_SEPARATING = bytes(
    code if code >= 128 or code == ord("\n") or chr(code).isalnum() or code == ord("_") else ord(" ")
    for code in range(256)
)
_LONGEST_RUN = 2000


def separated(source: bytes) -> bytes:
    """The text with ASCII punctuation as spaces, every byte where it was: no word crosses the end of a run between them."""
    return source.translate(_SEPARATING)


_NO_TERM = -1


class _Parts(dict[str, int]):
    """Hashes of the stems of parts of identifiers; the same parts come again and again."""

    def __missing__(self, part: str) -> int:
        low = part.lower()
        hashed = self[part] = hash_of(stem(low)) if len(low) > 1 and low not in _STOP else _NO_TERM
        return hashed


class Vocabulary(dict[bytes, int]):
    """Numbers for runs as they come, and the hashes of the terms in each, so that a batch is counted by arrays."""

    def __init__(self) -> None:
        super().__init__()
        self._starts = array("q", [0])
        self._hashes = array("I")
        self._part = _Parts().__getitem__

    def __missing__(self, run: bytes) -> int:
        text = run[:_LONGEST_RUN].decode("utf-8", "replace")
        for word in (text,) if text.isascii() and text.isidentifier() else WORD.findall(text):
            if len(word) <= LONGEST:
                self._add(word)
        self._starts.append(len(self._hashes))
        number = self[run] = len(self)
        return number

    def _add(self, word: str) -> None:
        """Hashes of `terms(word)`."""
        if word.isascii():
            snake = word.islower() and word.replace("_", "a").isalpha()
            parts = [part for part in word.split("_") if part] if snake else _PART.findall(word)
        else:
            parts = [word.lower().strip("_")]
        self._hashes.extend([hashed for hashed in map(self._part, parts) if hashed != _NO_TERM])
        if len(parts) != 1 or len(parts[0]) != len(word):
            low = word.lower().strip("_")
            if len(low) > 1 and (len(parts) != 1 or len(parts[0]) != len(low)):
                self._hashes.append(zlib.crc32(low.encode()))

    def starts(self) -> npt.NDArray[np.int64]:
        """Run i owns hashes starts[i]:starts[i + 1]."""
        return np.array(self._starts, np.int64)

    def hashes(self) -> npt.NDArray[np.uint32]:
        """Hashes of terms, run after run."""
        return np.array(self._hashes, np.uint32)
