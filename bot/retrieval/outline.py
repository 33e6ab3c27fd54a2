"""Definitions of one file from its syntax tree: what is captured by the language's query, nested, with signature and doc line."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tree_sitter import Node, Parser, QueryCursor, Tree

from bot.retrieval.definition import Definition
from bot.retrieval.languages import WRAPPER, Tools, tools_for

PARSE_SECONDS = 15.0
"""Of processor time, so that a busy machine reads what a quiet one reads. The worst megabyte that was tried takes 7."""
QUICK = 100_000
"""Bytes up to which a parse is not watched: it takes a few hundredths of a second."""
_STEP = 1 << 16
DEEPEST_BRACKETS = 600
"""Queries take quadratic time on deep trees."""
_BARE = frozenset({"variable", "field", "constant"})
"""Kinds of which the name is enough: outlines do not list them, and nothing is defined inside."""
MOST_DEFINITIONS = 3000
_LONGEST_DOC_COMMENT = 30
_OPEN, _CLOSE = b"([{", b")]}"
_ALL_BUT_BRACKETS = bytes(code for code in range(256) if code not in _OPEN + _CLOSE)
_STEP_OF = np.array([(code in _OPEN) - (code in _CLOSE) for code in range(256)], np.int64)
_MARK = rb"\s*(?:/\*\*?|\*/|\*|///?!?|#+|--)\s?"
_COMMENT = re.compile(b"^" + _MARK)
_IS_COMMENT = re.compile(_MARK).match


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text as UTF-8, and where its lines end."""

    source: bytes
    ends: Sequence[int]

    def line_at(self, offset: int) -> int:
        """The 0-based line of a byte."""
        return bisect_left(self.ends, offset)

    def line(self, number: int) -> bytes:
        """A 0-based line; nothing beyond the end."""
        return (
            self.source[self.ends[number - 1] + 1 if number else 0 : self.end_of(number)]
            if number <= len(self.ends)
            else b""
        )

    def end_of(self, number: int) -> int:
        """Where a 0-based line ends."""
        return self.ends[number] if number < len(self.ends) else len(self.source)


def nested_too_deep(source: bytes) -> bool:
    """Whether brackets are nested beyond what a query takes in reasonable time."""
    brackets = source.translate(None, _ALL_BUT_BRACKETS)
    if len(brackets) <= DEEPEST_BRACKETS:
        return False
    level = np.cumsum(_STEP_OF[np.frombuffer(brackets, np.uint8)])
    lowest = np.minimum(np.minimum.accumulate(level), 0)
    return int((level - lowest).max()) > DEEPEST_BRACKETS


def definitions_of(text: Text, language: str) -> tuple[Definition, ...] | None:
    """Definitions in the order of the text; None when parsing takes too long. The language must have a grammar."""
    tools = tools_for(language)
    source = text.source
    try:
        tree = tools.parser.parse(source) if len(source) <= QUICK else _watched(tools.parser, source)
    except ValueError:  # the callback said stop
        tools.parser.reset()
        return None
    cursor = QueryCursor(tools.query)
    cursor.set_max_start_depth(tools.deepest)
    captured = cursor.captures(tree.root_node)
    nodes = [
        (node.start_byte, -node.end_byte, kind, number, node)
        for kind, group in captured.items()
        for number, node in enumerate(group)  # tells equals apart: nodes have no order
    ]
    nodes.sort()
    return _nested(nodes[:MOST_DEFINITIONS], text, tools)


def _watched(parser: Parser, source: bytes) -> Tree:
    stop = time.process_time() + PARSE_SECONDS
    return parser.parse(
        lambda offset, _point: source[offset : offset + _STEP],
        progress_callback=lambda _offset, _error: time.process_time() > stop,
    )


def _nested(nodes: list[tuple[int, int, str, int, Node]], text: Text, tools: Tools) -> tuple[Definition, ...]:
    found: list[Definition] = []
    outer: list[tuple[int, str]] = []
    """Where each definition around this one ends, and the dotted names up to it."""
    wrapped: dict[int, int] = {}
    previous = (-1, 0)
    source, ends, child = text.source, text.ends, tools.child
    for start, negative_end, kind, _, node in nodes:
        if kind == WRAPPER:
            wrapped.setdefault(negative_end, start)
            continue
        if (start, negative_end) == previous:
            continue
        name = _name(node, source, tools)
        if not name:
            continue
        previous = (start, negative_end)
        while outer and outer[-1][0] <= start:
            outer.pop()
        inside = outer[-1][1] if outer else ""
        first, last = bisect_left(ends, start), bisect_left(ends, -negative_end)
        if kind in _BARE:
            if kind != "variable" or not found or found[-1].kind != "function" or found[-1].name != name:
                found.append(Definition(name, kind, first + 1, last + 1, "", "", inside))
            continue
        body = child(node, "body")
        value = body or child(node, "value") or child(node, "right")
        end = -negative_end if value is None else value.start_byte
        found.append(
            Definition(
                name,
                kind,
                (bisect_left(ends, wrapped[negative_end]) if negative_end in wrapped else first) + 1,
                last + 1,
                _signature(source[start : min(end, start + 400)]),
                _doc(body, text, first, tools),
                inside,
            )
        )
        outer.append((-negative_end, f"{inside}.{name}" if inside else name))
    return tuple(found)


def _name(node: Node, source: bytes, tools: Tools) -> str:
    """Follows the fields that lead to the identifier; C wraps it in declarators."""
    current, named, whole = node, tools.named, tools.whole_names
    for _ in range(8):
        if not current.child_count or current.kind_id in whole:
            break
        following = named(current)
        if following is None:
            break
        current = following
    start = current.start_byte
    written = source[start : min(current.end_byte, start + 120)].decode("utf-8", "replace")
    return written if written.isidentifier() else written.split("<")[0].split("(")[0].strip()


def _signature(written: bytes) -> str:
    return " ".join(written.decode("utf-8", "ignore").split()).rstrip("{=:").rstrip()[:160]


def _doc(body: Node | None, text: Text, first: int, tools: Tools) -> str:
    """First line of the docstring below, or of the comment right above."""
    source, ends = text.source, text.ends
    if body is not None and body.kind_id == tools.block:
        begin = body.start_byte
        opening = source[begin : begin + 3].lstrip(b"rRuUbB")[:1]
        if opening and opening in b"\"'":
            at = text.line_at(begin)
            written = source[begin : text.end_of(at)].lstrip(b"rRuUbB").strip().strip(b"\"'").strip()
            return (written or text.line(at + 1).strip()).decode("utf-8", "replace")[:120]
    above = first - 1
    while above >= 0 and first - above < _LONGEST_DOC_COMMENT:
        if not _IS_COMMENT(source, ends[above - 1] + 1 if above else 0, ends[above]):
            break
        above -= 1
    for number in range(above + 1, first):
        written = _COMMENT.sub(b"", text.line(number)).strip().removesuffix(b"*/").strip()
        if written:
            return written.decode("utf-8", "replace")[:120]
    return ""
