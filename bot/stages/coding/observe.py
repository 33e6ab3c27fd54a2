"""What a tool's output looks like when the model first sees it. Cut here, before it is first sent, never later (design D7)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from bot.custody.raw import quoted
from bot.custody.searching import Hit
from bot.retrieval.browse import Matches
from bot.retrieval.definition import Definition

BYTES_PER_TOKEN = 3
"""The estimator's ruler (specs/anthropic.md §5); billing never uses it."""

DEFAULT_TOKENS = 500

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]")


def tokens(text: str) -> int:
    """Estimated tokens of a text."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def plain(text: str) -> str:
    """Text without terminal escapes and control characters; line ends are newlines."""
    return _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def cut(text: str, limit: int = DEFAULT_TOKENS) -> str:
    """At most about `limit` tokens: the first third and the last two thirds, whole lines, with a mark of what is missing."""
    if tokens(text) <= limit:
        return text
    room = limit * BYTES_PER_TOKEN
    lines = text.split("\n")
    head = _take(lines, room // 3)
    tail = _take(lines[len(head) :][::-1], room - room // 3)[::-1]
    missing = len(lines) - len(head) - len(tail)
    if missing <= 0 or not (head or tail):
        data, half = text.encode("utf-8", "replace"), room // 2
        return f"{data[:half].decode('utf-8', 'ignore')}\n[… cut …]\n{data[-half:].decode('utf-8', 'ignore')}"
    return "\n".join([*head, f"[… {missing} lines cut …]", *tail])


def _take(lines: list[str], room: int) -> list[str]:
    taken: list[str] = []
    for line in lines:
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        taken.append(line)
    return taken


_RETURN = "\r"
READ_LINES = 60
READ_MOST = 400
READ_TOKENS = 4_000


def numbered(path: str, text: str, first: int, last: int | None) -> str:
    """Lines `first` to `last` (1-based, inclusive) with their numbers; says how many there are and how to read on.

    Without `last`: what fits into the default size, at most 60 lines and at least one.
    """
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        return f"{quoted(path)} is empty."
    if first > len(lines):
        return f"{quoted(path)} has {len(lines)} lines; there is no line {first}."
    if last is not None and last < first:
        return f"last={last} comes before first={first}; {quoted(path)} has {len(lines)} lines."
    end = min(last or first + READ_LINES - 1, first + READ_MOST - 1, len(lines))
    asked = [f"{number}\t{plain(lines[number - 1].removesuffix(_RETURN))}" for number in range(first, end + 1)]
    most = READ_TOKENS * BYTES_PER_TOKEN
    shown = _take(asked, most if last is not None else DEFAULT_TOKENS * BYTES_PER_TOKEN) or _take(asked[:1], most)
    if not shown:
        return f"{quoted(path)}: line {first} alone is over {READ_TOKENS} tokens long. Use run with cut -c to look at a part."
    reached = first + len(shown) - 1
    rest = f" Read on with first={reached + 1}." if reached < len(lines) else ""
    return "\n".join([f"{quoted(path)}, lines {first}–{reached} of {len(lines)}.{rest}", *shown])


SEARCH_LINES = 40
SEARCH_WIDTH = 160


def matches(pattern: str, output: str, code: int) -> str:
    """The answer of `search` from grep's output: at most 40 lines, each cut; then how many there are, by file."""
    if code > 1:
        return f"The search failed: {cut(plain(output), 100)}"
    lines = [plain(line)[:SEARCH_WIDTH] for line in output.split("\n") if line]
    if not lines:
        return f"Nothing matches {pattern!r}."
    answer = lines[:SEARCH_LINES]
    if len(lines) > SEARCH_LINES:
        counts: dict[str, int] = {}
        for line in lines[SEARCH_LINES:]:
            counts[line.split(":", 1)[0]] = counts.get(line.split(":", 1)[0], 0) + 1
        more = ", ".join(f"{path} ({count})" for path, count in list(counts.items())[:10])
        answer.append(f"[{len(lines) - SEARCH_LINES} more lines, in {more}]")
    return "\n".join(answer)


def ranked(pattern: str, found: Matches, limit: int = DEFAULT_TOKENS) -> str:
    """The answer of `search`: lines by file, best files first, definitions first in each; then what is left, by file.

    Without a match: the files nearest to the words. At most about `limit` tokens.
    """
    if not found.hits:
        near = [f"{quoted(one.path)} ({'; '.join(one.why[:2])})" for one in found.nearest]
        told = "\n".join([f"Nothing matches {pattern!r}.", *(["Nearest files by its words:"] if near else []), *near])
        return cut(plain(told), limit)
    counts = Counter(hit.path for hit in found.hits)
    room = limit * BYTES_PER_TOKEN - 150
    shown: list[str] = [f"{len(found.hits)} lines in {len(counts)} files:"]
    taken = 0
    path = ""
    for hit in found.hits:
        lines = [] if hit.path == path else [quoted(hit.path)]
        lines.append(_hit_line(hit, defining=(hit.path, hit.line) in found.defining))
        room -= sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
        if room < 0 and taken:
            break
        shown += lines
        path = hit.path
        taken += 1
    left = Counter(hit.path for hit in found.hits[taken:])
    if left:
        named = ", ".join(f"{quoted(name)} ({count})" for name, count in list(left.items())[:4])
        more = f" and {len(left) - 4} more files" if len(left) > 4 else ""
        shown.append(f"[{sum(left.values())} more lines, in {named[:300]}{more}]")
    return "\n".join(shown)


def _hit_line(hit: Hit, *, defining: bool) -> str:
    return f"  {hit.line}: {plain(hit.text).strip()[:SEARCH_WIDTH]}{'  <- defined here' if defining else ''}"


OUTLINE_FROM = 200
"""A file with more lines is shown as an outline when no lines are asked for."""
_OUTLINED = frozenset({"variable", "field", "constant"})


def outlined(path: str, text: str, definitions: Sequence[Definition], limit: int = DEFAULT_TOKENS) -> str:
    """The answer of `read` for a large file of which no lines were asked for: what is defined where. Empty when it has no outline."""
    lines = text.removesuffix("\n").count("\n") + 1
    if lines <= OUTLINE_FROM:
        return ""
    kept = [one for one in definitions if one.kind not in _OUTLINED]
    entries = [_entry(one) for one in kept]
    if tokens("\n".join(entries)) > limit:
        kept = [one for one in kept if not one.inside]
        entries = [_entry(one) for one in kept]
    if not entries:
        return ""
    head = f"{quoted(path)} has {lines} lines. Its outline; read the lines you need with first and last."
    return cut(plain("\n".join([head, *entries])), limit)


def _entry(one: Definition) -> str:
    depth = one.inside.count(".") + 1 if one.inside else 0
    return f"{'  ' * depth}{one.first}-{one.last}: {one.signature[:100]}"
