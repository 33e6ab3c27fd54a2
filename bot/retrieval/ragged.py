"""Rows of different lengths in one array: sliced, taken out and put in without a loop over them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from bot.retrieval.postings import Ints


def starts_of(lengths: Ints) -> Ints:
    """Where each row begins, and after them where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True)
class Ragged:
    """Row i is values[starts[i]:starts[i + 1]]."""

    starts: Ints
    values: npt.NDArray[Any]

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def without(self, rows: Sequence[int]) -> Self:
        """These rows are gone."""
        if not rows:
            return self
        kept = np.ones(len(self.starts) - 1, np.bool_)
        kept[rows] = False
        return type(self)(starts_of(self.lengths[kept]), self.values[np.repeat(kept, self.lengths)])

    def merged(self, at: Ints, more: Self) -> Self:
        """Row i of `more` comes before row at[i] of these; `at` ascends."""
        if not len(at):
            return self
        lengths = np.insert(self.lengths, at, more.lengths)
        values = np.insert(self.values, np.repeat(self.starts[at], more.lengths), more.values)
        return type(self)(starts_of(lengths), values)


class Paths(Ragged, Sequence[str]):
    """Paths, each ended by a NUL, decoded when they are asked for."""

    @classmethod
    def of(cls, paths: Sequence[str]) -> Self:
        """These, in this order."""
        encoded = [path.encode("utf-8", "surrogateescape") + b"\0" for path in paths]
        lengths = np.array([len(path) for path in encoded], np.int64)
        return cls(starts_of(lengths), np.frombuffer(b"".join(encoded), np.uint8))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...

    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        if isinstance(row, slice):
            return [self[number] for number in range(*row.indices(len(self)))]
        first, last = int(self.starts[row]), int(self.starts[row + 1])
        if first == last:
            raise IndexError(row)
        return self.values[first : last - 1].tobytes().decode("utf-8", "surrogateescape")

    def all(self) -> list[str]:
        """Every one: much faster than one by one."""
        return self.values.tobytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
