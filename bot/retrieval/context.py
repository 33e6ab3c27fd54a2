"""Fills a token budget with what a planner or coder should see first: a map, outlines of near files, the parts that matter.

The same files and task give the same bytes, in every process and after every rebuild of the index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.custody.raw import quoted
from bot.retrieval import signals
from bot.retrieval.catalogue import Floats
from bot.retrieval.chunks import Chunks
from bot.retrieval.definition import Definition
from bot.retrieval.extract import decoded
from bot.retrieval.overview import BYTES_PER_TOKEN, directories, size_of
from bot.retrieval.rank import Candidate, Ranked, candidates, explained
from bot.retrieval.view import View

MAP_SHARE = 0.05
OUTLINE_SHARE = 0.12
SMALLEST_MAP = 3000
"""Bytes of the map in a small context, where a twentieth would show nothing; at most a fifth of it."""
PART_FILES = 16
"""Files of which parts are shown; their text is read."""
OUTLINED = 30
MOST_OUTLINE_LINES = 40
SHARPNESS = 0.8
"""How fast a file's chance falls with its score; from the public rows."""
STEEPNESS = 3
"""A passage half as good as its file's best is worth an eighth of it: the best parts of several files come before the rest of one."""
PRIOR = 0.05
"""What a passage without any of the task's words is worth, of the file's best."""
_LINE_COST = 5
_OUTLINED_KINDS = frozenset(
    {
        "class",
        "function",
        "method",
        "interface",
        "struct",
        "enum",
        "type",
        "impl",
        "module",
        "heading",
        "definition",
        "macro",
    }
)


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """Lines of a file, 1-based and inclusive."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Context:
    """The text for the prompt, the parts of files it shows whole, and the files near the task, best first."""

    text: str
    parts: tuple[Part, ...]
    ranked: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a context will be made of, before any file is read: `wanted` are the items to read, best first."""

    view: View
    query: signals.Query
    found: tuple[Candidate, ...]
    wanted: tuple[int, ...]


def plan(view: View, text: str, meaning: Floats | None = None) -> Plan:
    """Rank, and say which files have to be read. `meaning`: each item's nearness by its summary, if known."""
    query = signals.query_of(text)
    found = tuple(candidates(view, query, meaning))
    return Plan(view, query, found, tuple(candidate.item for candidate in found[:PART_FILES]))


def compose(made: Plan, contents: Mapping[int, bytes], tokens: int) -> Context:
    """At most `tokens` tokens of three bytes. `contents` has the bytes of the wanted items that could be read."""
    room = tokens * BYTES_PER_TOKEN
    view = made.view
    overview = directories(view.paths.all(), max(int(room * MAP_SHARE), min(SMALLEST_MAP, room // 5)))
    outlines = view.outlines(candidate.item for candidate in made.found[:OUTLINED])
    texts = {item: decoded(data) for item, data in contents.items()}
    lines = {item: text.split("\n") for item, text in texts.items() if text is not None}
    spent = size_of(overview)
    chosen = _chosen(made, lines, room - spent - int(room * OUTLINE_SHARE))
    shown = [_part_block(made, item, chosen[item], lines[item]) for item in made.wanted if chosen.get(item)]
    spent += sum(size_of(block) + 2 for block in shown)
    listed = _outline_blocks(made, outlines, room - spent - 120)
    sections = [("Files", [overview]), ("Outlines of near files", listed), ("Parts of near files", shown)]
    text = "\n\n".join(f"## {title}\n" + "\n\n".join(blocks) for title, blocks in sections if any(blocks))
    parts = tuple(
        Part(view.items[item].path, first, last) for item in made.wanted for first, last in chosen.get(item, ())
    )
    ranked = tuple(explained(view, made.query, candidate) for candidate in made.found)
    return Context(text, parts, ranked)


Span = tuple[int, int]


def _chosen(made: Plan, lines: Mapping[int, Sequence[str]], room: int) -> dict[int, list[Span]]:
    """Passages worth the most for their bytes, until the room is full; neighbours are joined."""
    items = [candidate for candidate in made.found[:PART_FILES] if candidate.item in lines]
    if not items:
        return {}
    held = made.view.passages(candidate.item for candidate in items)
    best = items[0].score
    offers: list[tuple[float, int, int, int, int, int]] = []
    for place, candidate in enumerate(items):
        chance = math.exp(SHARPNESS * (candidate.score - best))
        passages = held[candidate.item]
        top = max(float(candidate.passages.max(initial=0.0)), 1e-9)
        for number, (first, last) in enumerate(_spans(passages)):
            cost = sum(len(line) + _LINE_COST for line in lines[candidate.item][first - 1 : last])
            worth = chance * (PRIOR + (float(candidate.passages[number]) / top) ** STEEPNESS) / (cost + 200) ** 0.5
            offers.append((-worth, place, first, last, candidate.item, cost))
    offers.sort()
    chosen: dict[int, list[Span]] = {}
    for _, _, first, last, item, cost in offers:
        needed = cost + (0 if item in chosen else size_of(quoted(made.view.items[item].path)) + 30)
        if needed <= room:
            room -= needed
            chosen.setdefault(item, []).append((first, last))
    return {item: _joined(spans) for item, spans in chosen.items()}


def _spans(passages: Chunks) -> list[Span]:
    return list(zip(passages.first.tolist(), passages.last.tolist(), strict=True))


def _joined(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def _part_block(made: Plan, item: int, spans: Sequence[Span], lines: Sequence[str]) -> str:
    shown = [f"### {quoted(made.view.items[item].path)} ({len(lines)} lines)"]
    for number, (first, last) in enumerate(spans):
        if number or first > 1:
            shown.append("…")
        shown += [f"{at} {lines[at - 1].rstrip()}" for at in range(first, min(last, len(lines)) + 1)]
    return "\n".join(shown)


def _outline_blocks(made: Plan, outlines: Mapping[int, Sequence[Definition]], room: int) -> list[str]:
    blocks: list[str] = []
    for candidate in made.found[:OUTLINED]:
        item = made.view.items[candidate.item]
        head = f"{quoted(item.path)} ({item.lines} lines)"
        block = "\n".join([head, *(_outline_line(one) for one in _main(outlines[candidate.item]))])
        if size_of(block) + 2 > room:
            block = head
        if size_of(block) + 2 > room:
            break
        room -= size_of(block) + 2
        blocks.append(block)
    return blocks


def _main(definitions: Sequence[Definition]) -> list[Definition]:
    """The definitions that fit an outline: all when few, else the outer ones."""
    kept = [one for one in definitions if one.kind in _OUTLINED_KINDS]
    if len(kept) > MOST_OUTLINE_LINES:
        kept = [one for one in kept if not one.inside]
    return kept[:MOST_OUTLINE_LINES]


def _outline_line(one: Definition) -> str:
    depth = one.inside.count(".") + 1 if one.inside else 0
    return f"{'  ' * (depth + 1)}{one.first}: {one.signature[:110]}"
