"""The first tier of a context: where things are. Pure: the same paths give the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bot.custody.raw import quoted

BYTES_PER_TOKEN = 3
"""The estimator's ruler: real code has a little more than three bytes in a token."""


def overview(paths: Iterable[str], tokens: int) -> str:
    """Every path when they fit, else directories with their number of files, the shallow ones first."""
    return directories(sorted(paths), tokens * BYTES_PER_TOKEN)


def directories(paths: list[str], room: int) -> str:
    """As `overview`, with the room in bytes."""
    if size_of("\n".join(paths)) <= room and size_of(listing := "\n".join(map(quoted, paths))) <= room:
        return listing
    counts: Counter[str] = Counter()
    for path in paths:
        parts = path.split("/")[:-1]
        for depth in range(len(parts) + 1):
            counts["/".join(parts[:depth]) + "/" if depth else "./"] += 1
    lines, left = [], room
    for directory, count in sorted(counts.items(), key=lambda item: (item[0].count("/"), item[0])):
        line = f"{quoted(directory)} {count} {'file' if count == 1 else 'files'}"
        left -= size_of(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(sorted(lines))


def size_of(text: str) -> int:
    """Bytes that the text takes."""
    return len(text.encode("utf-8", "replace"))
