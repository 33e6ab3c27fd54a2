"""From one text to another as an editor goes: exact passages, each of which occurs once at its moment."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """Replace the one occurrence of `old` by `new`; `first` and `last` are the lines around it before the edit."""

    old: str
    new: str
    first: int
    last: int


def passages(before: str, after: str) -> Iterator[Passage]:
    """Edits that lead from `before` to `after`, top down; each fits the text that the ones before it left."""
    current = before
    while current != after:
        passage = _first(current, after)
        yield passage
        current = current.replace(passage.old, passage.new, 1)


def _first(current: str, after: str) -> Passage:
    old, new = current.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    _, start, end, other_start, other_end = next(code for code in matcher.get_opcodes() if code[0] != "equal")
    above, below = 0, 0
    while start == end or current.count("".join(old[start:end])) != 1:
        if _equal_above(old, new, start, other_start):
            start, other_start, above = start - 1, other_start - 1, above + 1
        elif _equal_below(old, new, end, other_end):
            end, other_end, below = end + 1, other_end + 1, below + 1
        else:
            raise AssertionError("no passage around the change occurs only once")
    return Passage("".join(old[start:end]), "".join(new[other_start:other_end]), start + 1, end)


def _equal_above(old: list[str], new: list[str], start: int, other: int) -> bool:
    return start > 0 and other > 0 and old[start - 1] == new[other - 1]


def _equal_below(old: list[str], new: list[str], end: int, other: int) -> bool:
    return end < len(old) and other < len(new) and old[end] == new[other]
