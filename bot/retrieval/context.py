"""Fills a token budget with what a planner or coder should see first. Pure: the same files and task give the same bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bot.retrieval.lexical import Ranked, rank
from bot.retrieval.outline import outline

BYTES_PER_TOKEN = 3
_OUTLINED = 40
_MAP_SHARE = 0.35
LARGEST_TEXT = 400_000


def is_text(data: bytes) -> bool:
    """True for bytes that read as text and are small enough to be looked at."""
    return len(data) <= LARGEST_TEXT and b"\0" not in data[:8000]


@dataclass(frozen=True, slots=True)
class Context:
    """The text for the prompt and the files it shows outlines of, best first."""

    text: str
    ranked: tuple[Ranked, ...]


def build(paths: tuple[str, ...], texts: Mapping[str, str], query: str, tokens: int) -> Context:
    """A map of the directories, then outlines of the files that match the task best, within about `tokens` tokens."""
    ranked = rank(query, texts)
    room = tokens * BYTES_PER_TOKEN
    overview = _directories(paths, int(room * _MAP_SHARE))
    room -= len(overview.encode())
    parts = [overview, ""] if overview else []
    for item in ranked[:_OUTLINED]:
        block = _block(item.path, texts[item.path])
        size = len(block.encode()) + 1
        if size > room:
            block = f"{item.path} ({texts[item.path].count(chr(10)) + 1} lines)"
            size = len(block.encode()) + 1
            if size > room:
                break
        room -= size
        parts.append(block)
    return Context("\n".join(parts).strip(), ranked)


def _block(path: str, text: str) -> str:
    lines = outline(path, text)
    head = f"{path} ({text.count(chr(10)) + 1} lines)"
    return "\n".join([head, *(f"  {line}" for line in lines)])


def _directories(paths: tuple[str, ...], room: int) -> str:
    """Every file when they fit, else directories with their number of files, the shallow ones first."""
    listing = "\n".join(sorted(paths))
    if len(listing.encode()) <= room:
        return listing
    counts: Counter[str] = Counter()
    for path in paths:
        parts = path.split("/")[:-1]
        for depth in range(len(parts) + 1):
            counts["/".join(parts[:depth]) + "/" if depth else "./"] += 1
    lines, left = [], room
    for directory, count in sorted(counts.items(), key=lambda item: (item[0].count("/"), item[0])):
        line = f"{directory} {count} files"
        left -= len(line.encode()) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(sorted(lines))


def estimated_tokens(text: str) -> int:
    """By the estimator's ruler of bytes over three."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)
