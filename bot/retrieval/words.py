"""Words of code and prose. An identifier is one term whole and one for each part, so `rate limit` finds `RateLimiter`."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence

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


_NO_TERM, _END = -1, -2
_PART_OR_END = re.compile(f"{_PART.pattern}|\\n")


class _Parts(dict[str, int]):
    """Hashes of the stems of parts of identifiers; the same parts come again and again."""

    def __missing__(self, part: str) -> int:
        low = part.lower()
        hashed = self[part] = hash_of(stem(low)) if len(low) > 1 and low not in _STOP else _NO_TERM
        return hashed


class Vocabulary(dict[bytes, int]):
    """Numbers for runs as they come, and the hashes of the terms in each, so that a batch is counted by arrays.

    What is in a run is looked at for all new ones together, when the arrays are asked for: one by one takes ten times as long.
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self._hashes: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._parts = _Parts({"\n": _END})
        self._new: list[bytes] = []

    def __missing__(self, run: bytes) -> int:
        self._new.append(run)
        number = self[run] = len(self)
        return number

    def starts(self) -> npt.NDArray[np.int64]:
        """Run i owns hashes starts[i]:starts[i + 1]."""
        self._read()
        return self._starts

    def hashes(self) -> npt.NDArray[np.uint32]:
        """Hashes of terms, run after run."""
        self._read()
        return self._hashes

    def _read(self) -> None:
        if not self._new:
            return
        runs = [run[:_LONGEST_RUN].replace(b"\n", b" ") for run in self._new]
        texts = b"\n".join(runs).decode("utf-8", "replace").split("\n")
        self._new = []
        words: list[str] = []
        cuts = [0]
        for text in texts:
            if text.isascii() and text.isidentifier():
                words.append(text)
            else:
                words += WORD.findall(text)
            cuts.append(len(words))
        hashes, starts = self._terms(words)
        self._starts = np.concatenate([self._starts, len(self._hashes) + starts[cuts[1:]]])
        self._hashes = np.concatenate([self._hashes, hashes])

    def _terms(self, words: Sequence[str]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Hashes of `terms(word)`, word after word, and where those of each word begin and the last ones end."""
        plain = [word if word.isascii() and len(word) <= LONGEST else "" for word in words]
        lines = "".join([f"{word}\n" for word in plain])
        parts = _PART_OR_END.findall(lines)
        hashes = np.fromiter(map(self._parts.__getitem__, parts), np.int64, len(parts))
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        ends = np.flatnonzero(hashes == _END)
        bare = [word.strip("_") for word in lines.lower().split("\n")[:-1]]
        whole = np.fromiter(map(len, bare), np.int64, len(bare))
        different = (np.diff(ends, prepend=-1) != 2) | (lengths[ends - 1] != whole)  # not one part, or not all of it
        chosen = np.flatnonzero(different & (whole > 1))
        hashes[ends] = _NO_TERM
        hashes[ends[chosen]] = [zlib.crc32(bare[word].encode()) for word in chosen.tolist()]
        for word in np.flatnonzero(whole == 0).tolist():
            if not words[word].isascii() and len(words[word]) <= LONGEST:
                hashes[ends[word]] = self._parts[words[word].lower().strip("_")]
        kept = hashes != _NO_TERM
        starts = np.append(0, np.cumsum(kept)[ends])
        return hashes[kept].astype(np.uint32), starts
