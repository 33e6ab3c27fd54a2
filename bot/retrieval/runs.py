"""Runs of letters of a text, found and told apart by arrays. Pure.

A run is told by a hash of 64 bits, not by its bytes: a table of that many bytes objects is looked up outside the processor's
caches, which takes longer than all the rest. Runs of one hash would be taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from bot.retrieval.postings import Ints

Keys = npt.NDArray[np.uint64]

_SPACE = ord(" ")
_SEPARATING = bytes(
    code if code >= 128 or code == ord("\n") or chr(code).isalnum() or code == ord("_") else _SPACE
    for code in range(256)
)
_WORD = 8
_MASKS = np.array([(1 << 8 * kept) - 1 for kept in range(_WORD + 1)], np.uint64)
_SEED, _FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), np.uint64(32)


@dataclass(frozen=True, slots=True)
class Runs:
    """Run i is data[begins[i]:ends[i]]."""

    data: bytes
    begins: Ints
    ends: Ints

    @classmethod
    def of(cls, runs: Sequence[bytes]) -> Self:
        """These."""
        ends = np.cumsum(np.fromiter(map(len, runs), np.int64, len(runs)))
        return cls(b"".join(runs), np.append(0, ends)[:-1], ends)

    @classmethod
    def within(cls, text: bytes) -> Self:
        """Those of a text: what stands between ASCII punctuation and white space. One letter or digit alone is left out: no term."""
        plain = text.translate(_SEPARATING)
        inside = np.frombuffer(b" " + plain + b" ", np.uint8) > _SPACE
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        begins, ends = edges[0::2], edges[1::2]
        longer = np.flatnonzero(ends - begins > 1)
        return cls(plain, begins[longer], ends[longer])

    def chosen(self, rows: Ints) -> Runs:
        """Some of them."""
        return Runs(self.data, self.begins[rows], self.ends[rows])

    def keys(self) -> Keys:
        """A hash of each, eight bytes at a time."""
        eight = np.ndarray((len(self.data) + 1,), "<u8", self.data + bytes(_WORD), 0, (1,))
        lengths = self.ends - self.begins
        keys = _mixed(lengths.astype(np.uint64) * _SEED, eight[self.begins] & _MASKS[np.minimum(lengths, _WORD)])
        done, longer = _WORD, np.flatnonzero(lengths > _WORD)
        while len(longer):
            word = eight[self.begins[longer] + done] & _MASKS[np.minimum(lengths[longer] - done, _WORD)]
            keys[longer] = _mixed(keys[longer], word)
            done += _WORD
            longer = longer[lengths[longer] > done]
        return keys


def _mixed(keys: Keys, word: Keys) -> Keys:
    mixed = (keys ^ word) * _FACTOR
    return mixed ^ (mixed >> _SHIFT)
