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

PARSE_SECONDS = 3.0
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
_COMMENT = re.compile(rb"^\s*(?:/\*\*?|\*/|\*|///?!?|#+|--)\s?")
_WHOLE_NAMES = frozenset({"scoped_identifier", "qualified_identifier", "generic_type"})


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
    nodes = [(node.start_byte, -node.end_byte, kind, node) for kind, group in captured.items() for node in group]
    nodes.sort(key=lambda item: item[:3])
    return _nested(nodes[:MOST_DEFINITIONS], text, tools)


def _watched(parser: Parser, source: bytes) -> Tree:
    stop = time.monotonic() + PARSE_SECONDS
    return parser.parse(
        lambda offset, _point: source[offset : offset + _STEP],
        progress_callback=lambda _offset, _error: time.monotonic() > stop,
    )


def _nested(nodes: list[tuple[int, int, str, Node]], text: Text, tools: Tools) -> tuple[Definition, ...]:
    found: list[Definition] = []
    outer: list[tuple[int, str]] = []
    wrapped: dict[int, int] = {}
    previous = (-1, 0)
    source, child, line_at = text.source, tools.child, text.line_at
    for start, negative_end, kind, node in nodes:
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
        if kind == "variable" and found and found[-1].kind == "function" and found[-1].name == name:
            continue
        first, last = line_at(start), line_at(-negative_end)
        if kind in _BARE:
            found.append(Definition(name, kind, first + 1, last + 1, "", "", ".".join([label for _, label in outer])))
            continue
        body = child(node, "body")
        value = body or child(node, "value") or child(node, "right")
        end = -negative_end if value is None else value.start_byte
        found.append(
            Definition(
                name,
                kind,
                (line_at(wrapped[negative_end]) if negative_end in wrapped else first) + 1,
                last + 1,
                _signature(source[start : min(end, start + 400)]),
                _doc(body, text, first),
                ".".join([label for _, label in outer]) if outer else "",
            )
        )
        outer.append((-negative_end, name))
    return tuple(found)


def _name(node: Node, source: bytes, tools: Tools) -> str:
    """Follows the fields that lead to the identifier; C wraps it in declarators."""
    current = node
    for _ in range(8):
        if not current.child_count or current.type in _WHOLE_NAMES:
            break
        following = tools.named(current)
        if following is None:
            break
        current = following
    written = source[current.start_byte : min(current.end_byte, current.start_byte + 120)].decode("utf-8", "replace")
    return written if written.isidentifier() else written.split("<")[0].split("(")[0].strip()


def _signature(written: bytes) -> str:
    return " ".join(written.decode("utf-8", "ignore").split()).rstrip("{=:").rstrip()[:160]


def _doc(body: Node | None, text: Text, first: int) -> str:
    """First line of the docstring below, or of the comment right above."""
    if body is not None and body.type == "block":
        begin = body.start_byte
        opening = text.source[begin : begin + 3].lstrip(b"rRuUbB")[:1]
        if opening and opening in b"\"'":
            at = text.line_at(begin)
            written = text.source[begin : text.end_of(at)].lstrip(b"rRuUbB").strip().strip(b"\"'").strip()
            return (written or text.line(at + 1).strip()).decode("utf-8", "replace")[:120]
    above = first - 1
    while above >= 0 and first - above < _LONGEST_DOC_COMMENT and _COMMENT.match(text.line(above)):
        above -= 1
    for number in range(above + 1, first):
        written = _COMMENT.sub(b"", text.line(number)).strip().removesuffix(b"*/").strip()
        if written:
            return written.decode("utf-8", "replace")[:120]
    return ""
