"""Edits as pure functions over text: exact, unique, and with an answer that helps when they do not apply."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

LARGEST = 2_000_000


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text of the file, and what the model is told."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class NotEdited:
    """Why nothing was changed, with what to do."""

    answer: str


def apply(path: str, current: str | None, old: str, new: str) -> Edited | NotEdited:
    """Replace the one occurrence of `old` by `new`. `current` None means that the file does not exist."""
    if current is None:
        if old:
            return NotEdited(f"{path} does not exist. To create it, send an empty `old`.")
        return Edited(new, f"Created {path}, {new.count(chr(10)) + (not new.endswith(chr(10)))} lines.")
    if not old:
        if current.strip():
            return NotEdited(f"{path} exists already. Send the passage to replace as `old`.")
        return Edited(new, f"Wrote {path}.")
    if old == new:
        return NotEdited("`old` and `new` are the same; nothing to change.")
    count = current.count(old)
    if count == 0:
        return NotEdited(f"`old` does not occur in {path}.{_nearest(current, old)}")
    if count > 1:
        return NotEdited(f"`old` occurs {count} times in {path}. Add lines around it until it is unique.")
    start = current.index(old)
    line = current.count("\n", 0, start) + 1
    return Edited(current.replace(old, new, 1), f"Edited {path}, line {line}: {_size(old)} → {_size(new)}.")


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    return f"{lines} line{'s' if lines != 1 else ''}"


def _nearest(current: str, old: str) -> str:
    wanted = next((line for line in old.split("\n") if line.strip()), "")
    lines = current.split("\n")
    close = difflib.get_close_matches(wanted, lines[:5000], n=1, cutoff=0.75)
    if not close:
        return " Read the file and copy the passage exactly."
    number = lines.index(close[0]) + 1
    return f" The nearest line is {number}: {close[0].strip()[:120]!r}. Read around it and copy the passage exactly."
