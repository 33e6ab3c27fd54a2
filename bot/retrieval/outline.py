"""Definitions of one file from its syntax tree: what is captured by the language's query, nested, with signature and doc line."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from tree_sitter import Node, Parser, Tree

from bot.retrieval.definition import Definition
from bot.retrieval.imports import words_at
from bot.retrieval.languages import SHALLOW, WRAPPER, Tools, tools_for

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
_MOST_LOOKS = 200
"""Places of a file that are looked at one by one: each is found among its node's siblings."""
_BEFORE_DEFINITION = (b":", b";", b"async", b"\\")
_MARK = rb"\s*(?:/\*\*?|\*/|\*|///?!?|#+|--)\s?"
_COMMENT = re.compile(b"^" + _MARK)
_MARKS = (b"/*", b"*/", b"*", b"//", b"#", b"--")


_Captured = tuple[int, int, str, int, Node]
"""Where a node begins, less where it ends, its kind, its number among those of the kind; in this order the outer come first."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text as UTF-8, and where its lines end."""

    source: bytes
    ends: Sequence[int]

    @classmethod
    def of(cls, source: bytes) -> Self:
        """A file's text."""
        return cls(source, np.flatnonzero(np.frombuffer(source, np.uint8) == ord("\n")).tolist())

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


def tree_of(source: bytes, language: str) -> Tree | None:
    """The syntax tree; None when parsing takes too long. The language must have a grammar."""
    parser = tools_for(language).parser
    try:
        return parser.parse(source) if len(source) <= QUICK else _watched(parser, source)
    except ValueError:  # the callback said stop
        parser.reset()
        return None


def definitions_of(tree: Tree, text: Text, language: str) -> tuple[Definition, ...]:
    """Definitions in the order of the text, of its syntax tree."""
    tools = tools_for(language)
    nodes = _captured(tree.root_node, tools, tools.deepest if not tools.opening else SHALLOW)
    if tools.opening:
        nodes += _deeper(tree.root_node, text.source, tools, nodes)
    nodes.sort()
    return _nested(nodes[:MOST_DEFINITIONS], text, tools)


def _captured(top: Node, tools: Tools, deepest: int) -> list[_Captured]:
    cursor = tools.cursor
    cursor.set_max_start_depth(deepest)
    return [
        (node.start_byte, -node.end_byte, kind, number, node)
        for kind, group in cursor.captures(top).items()
        for number, node in enumerate(group)  # tells equals apart: nodes have no order
    ]


def _deeper(root: Node, source: bytes, tools: Tools, found: list[_Captured]) -> list[_Captured]:
    """What the query finds below the shallow levels: inside those nodes where a word stands that no definition found begins with."""
    begun = {start for start, *_ in found}
    places = [at for at in words_at(source, *tools.opening) if at not in begun and _may_begin(source, at)]
    if not places:
        return []
    known = {one[:3] for one in found}
    if len(places) > _MOST_LOOKS:
        return [one for one in _captured(root, tools, tools.deepest) if one[:3] not in known]
    more: list[_Captured] = []
    done = 0
    for at in places:
        below = _containing(root, at) if at >= done else None
        if below is not None:
            done = below.end_byte
            more += [one for one in _captured(below, tools, tools.deepest - SHALLOW) if one[:3] not in known]
    return more


def _may_begin(source: bytes, at: int) -> bool:
    """Whether a definition may begin there: nothing stands before it on its line, or what may stand before one."""
    before = source[source.rfind(b"\n", 0, at) + 1 : at].rstrip()
    return not before or before.endswith(_BEFORE_DEFINITION)


def _containing(root: Node, at: int) -> Node | None:
    """The node SHALLOW levels down that holds this byte."""
    cursor = root.walk()
    for _ in range(SHALLOW):
        if cursor.goto_first_child_for_byte(at) is None:
            return None
    node = cursor.node
    return node if node is not None and node.start_byte <= at < node.end_byte else None


def _watched(parser: Parser, source: bytes) -> Tree:
    stop = time.process_time() + PARSE_SECONDS
    return parser.parse(
        lambda offset, _point: source[offset : offset + _STEP],
        progress_callback=lambda _offset, _error: time.process_time() > stop,
    )


def _nested(nodes: list[_Captured], text: Text, tools: Tools) -> tuple[Definition, ...]:
    found: list[Definition] = []
    outer: list[tuple[int, str]] = []
    """Where each definition around this one ends, and the dotted names up to it."""
    wrapped: dict[int, int] = {}
    previous = (-1, 0)
    source, ends = text.source, text.ends
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
        first = bisect_left(ends, start)
        last = bisect_left(ends, -negative_end, first)
        if kind in _BARE:
            if kind != "variable" or not found or found[-1].kind != "function" or found[-1].name != name:
                found.append(_made(Definition, (name, kind, first + 1, last + 1, "", "", inside)))
            continue
        body = tools.body(node)
        value = body or tools.value(node)
        end = -negative_end if value is None else value.start_byte
        found.append(
            _made(
                Definition,
                (
                    name,
                    kind,
                    (bisect_left(ends, wrapped[negative_end]) if negative_end in wrapped else first) + 1,
                    last + 1,
                    _signature(source[start : min(end, start + 400)]),
                    (_docstring(end, text) if body is not None and body.kind_id == tools.block else "")
                    or _comment_above(first, text),
                    inside,
                ),
            )
        )
        outer.append((-negative_end, f"{inside}.{name}" if inside else name))
    return tuple(found)


_made = tuple.__new__
"""Of a named tuple's values, without a call of Python's for each."""


def _name(node: Node, source: bytes, tools: Tools) -> str:
    """Follows the fields that lead to the identifier; C wraps it in declarators."""
    current, named, whole = node, tools.named, tools.whole_names
    for _ in range(8):
        following = named(current)
        if following is None:
            break
        current = following
        if not current.child_count or current.kind_id in whole:
            break
    start = current.start_byte
    written = source[start : min(current.end_byte, start + 120)].decode("utf-8", "replace")
    return written if written.isidentifier() else written.split("<")[0].split("(")[0].strip()


def _signature(written: bytes) -> str:
    return " ".join(written.decode("utf-8", "ignore").split()).rstrip("{=:").rstrip()[:160]


def _docstring(begin: int, text: Text) -> str:
    """First line of the string that begins there; nothing where none does."""
    source = text.source
    opening = source[begin : begin + 3].lstrip(b"rRuUbB")[:1]
    if not opening or opening not in b"\"'":
        return ""
    at = text.line_at(begin)
    written = source[begin : text.end_of(at)].lstrip(b"rRuUbB").strip().strip(b"\"'").strip()
    return (written or text.line(at + 1).strip()).decode("utf-8", "replace")[:120]


def _comment_above(first: int, text: Text) -> str:
    """First line of the comment right above this line."""
    source, ends = text.source, text.ends
    above = first - 1
    while above >= 0 and first - above < _LONGEST_DOC_COMMENT:
        if not source[ends[above - 1] + 1 if above else 0 : ends[above]].lstrip().startswith(_MARKS):
            break
        above -= 1
    for number in range(above + 1, first):
        written = _COMMENT.sub(b"", text.line(number)).strip().removesuffix(b"*/").strip()
        if written:
            return written.decode("utf-8", "replace")[:120]
    return ""
