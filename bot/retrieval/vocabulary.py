"""Terms of very many words at a time: each different run of letters is read once, all new ones together, by arrays.

The terms are those of `words.terms`: one by one they would take ten times as long.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from bot.retrieval import words
from bot.retrieval.postings import Hashes, Ints, changes
from bot.retrieval.runs import Keys, Runs

_LONGEST_RUN = 2000
_NO_TERM = -1
_END, _LOWER, _UPPER, _DIGIT, _UNDERSCORE, _OTHER = range(6)
_CLASS = np.full(256, _OTHER, np.uint8)
_CLASS[ord("a") : ord("z") + 1] = _LOWER
_CLASS[ord("A") : ord("Z") + 1] = _UPPER
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_CLASS[ord("_")] = _UNDERSCORE


class _Table:
    """A number for each run, as two arrays: keys of runs, ascending, and their numbers."""

    def __init__(self) -> None:
        self._keys: Keys = np.zeros(0, np.uint64)
        self._numbers: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, runs: Runs, numbered: Callable[[Runs], Ints]) -> Ints:
        """The number of each run; those of new ones, each once, are asked for and kept."""
        keys = runs.keys()
        order = np.argsort(keys)
        ordered = keys[order]
        firsts = changes(ordered)
        distinct = ordered[firsts]
        at = np.searchsorted(self._keys, distinct)
        known = at < len(self)
        known[known] = self._keys[at[known]] == distinct[known]
        found = np.empty(len(distinct), np.int64)
        found[known] = self._numbers[at[known]]
        new = np.flatnonzero(~known)
        if len(new):
            found[new] = numbered(runs.chosen(order[firsts[new]]))
            self._keys = np.insert(self._keys, at[new], distinct[new])
            self._numbers = np.insert(self._numbers, at[new], found[new])
        numbers = np.empty(len(keys), np.int64)
        numbers[order] = np.repeat(found, np.diff(firsts, append=len(keys)))
        return numbers


class Vocabulary:
    """Numbers for runs as they come. Run i owns hashes[starts[i]:starts[i + 1]], in the order of its terms."""

    def __init__(self) -> None:
        self.starts: Ints = np.zeros(1, np.int64)
        self.hashes: Hashes = np.zeros(0, np.uint32)
        self._runs = _Table()
        self._parts = _Table()

    def __len__(self) -> int:
        return len(self._runs)

    def numbers(self, runs: Runs) -> Ints:
        """The number of each run; new ones are read."""
        return self._runs.of(runs, self._numbered)

    def _numbered(self, new: Runs) -> Ints:
        hashes, counts = self._read(new)
        self.starts = np.append(self.starts, len(self.hashes) + np.cumsum(counts))
        self.hashes = np.append(self.hashes, hashes)
        return len(self) + np.arange(len(counts))

    def _read(self, runs: Runs) -> tuple[Hashes, Ints]:
        """Hashes of the terms of these runs, run after run, and how many each has."""
        letters = _Letters.of(runs)
        strange = np.zeros(len(runs.begins), np.bool_)
        strange[letters.run_of[letters.classes == _OTHER]] = True
        parts, wholes = letters.terms()
        hashes, counted = self._hashes_of(parts)
        owners = np.concatenate([letters.run_of[parts.begins[counted]], letters.run_of[wholes.begins]])
        kept = ~strange[owners]
        odd = [
            (run, words.hash_of(term))
            for run in np.flatnonzero(strange).tolist()
            for word in words.WORD.findall(letters.text(run))
            for term in words.terms(word)
        ]
        owners = np.append(owners[kept], np.array([run for run, _ in odd], np.int64))
        found = np.append(hashes, _checksums(wholes))[kept]
        order = np.argsort(owners, kind="stable")
        every = np.append(found, np.array([hashed for _, hashed in odd], np.uint32))
        return every[order], np.bincount(owners, minlength=len(strange))

    def _hashes_of(self, parts: Runs) -> tuple[Hashes, Ints]:
        """Hashes of the stems of those parts that count, and which these are. The same parts come again and again."""
        hashes = self._parts.of(parts, lambda new: np.array([_part(text) for text in _texts(new)], np.int64))
        counted = np.flatnonzero(hashes != _NO_TERM)
        return hashes[counted].astype(np.uint32), counted


def _part(text: bytes) -> int:
    low = text.decode()
    return words.hash_of(words.stem(low)) if words.is_term(low) else _NO_TERM


def _checksums(runs: Runs) -> Hashes:
    """`words.hash_of` of each."""
    return np.array([zlib.crc32(text) for text in _texts(runs)], np.uint32)


def _texts(runs: Runs) -> list[bytes]:
    return [runs.data[begin:end] for begin, end in zip(runs.begins.tolist(), runs.ends.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class _Letters:
    """Runs one after the other, each with an end behind it: the letters, what each of them is, and which run it is of."""

    data: bytes
    classes: npt.NDArray[np.uint8]
    run_of: Ints
    begins: Ints
    ends: Ints

    @classmethod
    def of(cls, runs: Runs) -> Self:
        """These; very long ones are cut."""
        lengths = np.minimum(runs.ends - runs.begins, _LONGEST_RUN)
        ends = np.cumsum(lengths + 1) - 1
        begins = ends - lengths
        run_of = np.repeat(np.arange(len(lengths)), lengths + 1)
        letters = np.frombuffer(runs.data + b"\n", np.uint8)[np.arange(len(run_of)) + (runs.begins - begins)[run_of]]
        classes = _CLASS[letters]
        classes[ends] = _END
        return cls(letters.tobytes(), classes, run_of, begins, ends)

    def text(self, run: int) -> str:
        """One of them, broken bytes replaced."""
        return self.data[self.begins[run] : self.ends[run]].decode("utf-8", "replace")

    def terms(self) -> tuple[Runs, Runs]:
        """In small letters, the parts of identifiers and the identifiers that are not one part: `words.terms`, for runs of ASCII
        letters, digits and underscores."""
        low = self.data.lower()
        after = np.flatnonzero(self.classes != _DIGIT)
        first = after[np.searchsorted(after, self.begins)]  # an identifier begins behind leading digits
        long, long_number = self.ends - first > words.LONGEST, first - self.begins > words.LONGEST
        begins, ends = self._parts()
        lengths, run = ends - begins, self.run_of[begins]
        inside = begins >= first[run]
        parts = np.bincount(run[inside], minlength=len(first))
        letters = np.bincount(run[inside], lengths[inside], len(first)).astype(np.int64)
        kept = (lengths > 1) & ~np.where(inside, long[run], long_number[run])
        bare, bare_end = self._bare(first)
        one_part = (parts == 1) & (letters == bare_end - bare)
        whole = np.flatnonzero(~long & (bare_end - bare > 1) & ~one_part)
        return Runs(low, begins[kept], ends[kept]), Runs(low, bare[whole], bare_end[whole])

    def _parts(self) -> tuple[Ints, Ints]:
        """Where parts begin and end: small letters with a large one before them, large letters, two digits or more."""
        kind = self.classes
        lower, upper, digit = kind == _LOWER, kind == _UPPER, kind == _DIGIT
        follows_upper, follows_lower, follows_digit = (np.append(False, of[:-1]) for of in (upper, lower, digit))
        before_lower = np.append(lower[1:], False)
        starting = (lower & ~follows_lower & ~follows_upper) | (upper & (~follows_upper | before_lower))
        starting |= digit & ~follows_digit
        edges = np.flatnonzero(starting | ~(lower | upper | digit))
        opening = np.flatnonzero(starting[edges])
        begins, ends = edges[opening], edges[opening + 1]  # the last edge is an end
        kept = ~digit[begins] | (ends - begins > 1)
        return begins[kept], ends[kept]

    def _bare(self, first: Ints) -> tuple[Ints, Ints]:
        """Where identifiers that begin there begin and end without the underscores around them; nothing is left of some."""
        solid = np.flatnonzero((self.classes != _UNDERSCORE) & (self.classes != _END))
        sides = np.searchsorted(solid, first), np.searchsorted(solid, self.ends)
        some = sides[1] > sides[0]
        begins, ends = first.copy(), first.copy()
        begins[some], ends[some] = solid[sides[0][some]], solid[sides[1][some] - 1] + 1
        return begins, ends
