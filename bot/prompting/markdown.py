"""Writes a parsed Markdown text anew from the parts it knows; what it does not know becomes plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from bot.prompting.blocks import Document
from bot.prompting.inert import TRAILER, Fate, Limits, code, fate, guard_code, guard_line, inert
from bot.prompting.secrets import mask_secrets

_MARKERS = {"em": "*", "strong": "**", "s": "~~"}
_LANGUAGE = re.compile(r"[A-Za-z0-9_+-]{1,20}")
_ACTIVE_LANGUAGES = frozenset({"mermaid", "math", "geojson", "topojson", "stl", "suggestion"})
"""Code blocks that GitHub runs or offers to apply instead of showing them."""

_UNSAFE_IN_LINK = re.compile(r"[<>\\\s]")

_Piece = tuple[str, str]
"""(kind, Markdown source): kind is "text", "break" or "mark"."""


class Writer:
    """Renders the blocks of one document. It counts links, so one writer serves one text."""

    def __init__(self, document: Document, limits: Limits) -> None:
        self._document = document
        self._limits = limits
        self._links = 0

    def blocks(self) -> Iterator[str]:
        """The top-level blocks as Markdown source, made one after another: a reader with enough may stop."""
        return filter(None, map(self._block, SyntaxTreeNode(self._document.tokens).children))

    def _children(self, node: SyntaxTreeNode) -> list[str]:
        return [text for text in map(self._block, node.children) if text]

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "paragraph":
                return self._paragraph(node.children[0])
            case "heading":
                title = self._line(node.children[0])
                return f"{'#' * int(node.tag[1])} {title}" if title else ""
            case "fence" | "code_block":
                return self._code(node.content, node.info.strip() if node.type == "fence" else "")
            case "html_block":
                return self._lines(_shown(node.content))
            case "blockquote":
                return _prefixed("\n\n".join(self._children(node)), "> ", "> ")
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "table":
                return self._table(node)
            case "hr":
                return "---"
            case other:
                raise ValueError(f"the reader gave a block of kind {other}")

    def _paragraph(self, inline: SyntaxTreeNode) -> str:
        return "\n".join(guard_line(line) for line in self._inline(inline, in_table=False) if line)

    def _line(self, inline: SyntaxTreeNode, *, in_table: bool = False) -> str:
        return " ".join(line for line in self._inline(inline, in_table=in_table) if line)

    def _lines(self, text: str) -> str:
        """Plain text, line by line."""
        lines = (line.strip() for line in text.split("\n") if not TRAILER.match(line))
        return "\n".join(guard_line(inert(line, self._limits, at_line_start=True)) for line in lines if line)

    def _code(self, content: str, info: str) -> str:
        text = mask_secrets(content.rstrip("\n"), self._limits.secrets)
        language = info.split(maxsplit=1)[0] if info else ""
        if not _LANGUAGE.fullmatch(language) or language.lower() in _ACTIVE_LANGUAGES:
            language = ""
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        lines = "\n".join(map(guard_code, text.split("\n")))
        return f"{fence}{language}\n{lines}\n{fence}"

    def _list(self, node: SyntaxTreeNode) -> str:
        number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        tight = all(child.hidden for item in node.children for child in item.children if child.type == "paragraph")
        items = []
        for item in node.children:
            marker = "- " if number is None else f"{number}. "
            text = ("\n" if tight else "\n\n").join(self._children(item))
            items.append(_prefixed(text, marker, " " * len(marker)))
            number = None if number is None else min(number + 1, 999_999_999)
        return ("\n" if tight else "\n\n").join(items)

    def _table(self, node: SyntaxTreeNode) -> str:
        rows = [
            [self._line(cell.children[0], in_table=True) if cell.children else "" for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        lines = [f"| {' | '.join(cells)} |" for cells in rows]
        return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])

    def _inline(self, inline: SyntaxTreeNode, *, in_table: bool) -> list[str]:
        """The lines of a block's inside. A secret that is whole only to the eye costs the block its markup."""
        tokens = _joined(_without_empty_marks(self._settled(self._document.inside(_token(inline)))))
        seen = visible(tokens)
        masked = mask_secrets(seen, self._limits.secrets)
        tokens = tokens if masked == seen else [_text(masked)]
        lines: list[list[_Piece]] = [[]]
        for token in tokens:
            at_start = not any(kind == "text" for kind, _ in lines[-1])
            for piece in self._piece(token, at_start=at_start, in_table=in_table):
                _append(lines, piece)
        return [_source(line) for line in lines if not TRAILER.match(_bare(line))]

    def _piece(self, token: Token, *, at_start: bool, in_table: bool) -> list[_Piece]:
        kind = token.type.removesuffix("_open").removesuffix("_close")
        if kind in _MARKERS:
            return [("mark", _MARKERS[kind])]
        match token.type:
            case "text":
                return self._text(token.content, at_start=at_start, in_table=in_table)
            case "softbreak" | "hardbreak":
                return [("break", "")]
            case "code_inline":
                return [("text", code(token.content, in_table=in_table))]
            case "link_open":
                return [("text", "[")]
            case "link_close":
                return [("text", f"](<{token.content}>)")]
            case other:
                raise ValueError(f"the reader gave a part of kind {other}")

    def _text(self, text: str, *, at_start: bool, in_table: bool) -> list[_Piece]:
        pieces: list[_Piece] = []
        for number, line in enumerate(text.split("\n")):
            if number:
                pieces.append(("break", ""))
            start = at_start or number > 0
            pieces.append(("text", inert(line, self._limits, at_line_start=start, in_table=in_table)))
        return pieces

    def _settled(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """Links that may be followed stay, with their destination on the closing token; others are their text and address."""
        closing: list[Token] = []
        for token in tokens:
            if token.type == "link_open" and token.markup != "autolink":
                closing = self._closing(str(token.attrs.get("href", "")))
                if closing and closing[0].type == "link_close":
                    yield token
            elif token.type == "link_close" and token.markup != "autolink":
                yield from closing
            elif (shown := _as_text(token)) is None:
                yield token
            elif shown:
                yield _text(shown)

    def _closing(self, href: str) -> list[Token]:
        """What stands at the end of a link to this address."""
        what, shown = fate(href, self._limits), mask_secrets(href, self._limits.secrets)
        self._links += what is Fate.FOLLOW
        if what is Fate.FOLLOW and shown == href and self._links <= self._limits.links:
            return [Token("link_close", "a", -1, content=_UNSAFE_IN_LINK.sub("", href))]
        if what is Fate.DROP or not href:
            return []
        return [_text(" ("), Token("code_inline", "code", 0, content=shown), _text(")")]


def _token(inline: SyntaxTreeNode) -> Token:
    if inline.token is None:
        raise ValueError("an inline node stands for one token")
    return inline.token


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _as_text(token: Token) -> str | None:
    """What the token shows when it is only text, or made to be; None when it is more."""
    match token.type:
        case "text":
            return token.content
        case "html_inline":
            return _shown(token.content)
        case "image":
            return f"(image removed: {token.content})"
        case "link_open" | "link_close" if token.markup == "autolink":
            return ""
        case _:
            return None


def _without_empty_marks(tokens: Iterable[Token]) -> list[Token]:
    """Emphasis of nothing goes, so that what stood around it is read as one."""
    kept: list[Token] = []
    for token in tokens:
        if token.nesting < 0 and kept and kept[-1].nesting > 0 and kept[-1].tag == token.tag != "a":
            kept.pop()
        else:
            kept.append(token)
    return kept


def _joined(tokens: Iterable[Token]) -> list[Token]:
    """Neighbouring texts as one: nothing hides in a seam."""
    joined: list[Token] = []
    for is_text, run in groupby(tokens, key=lambda token: token.type == "text"):
        neighbours = list(run)
        joined += [_text("".join(token.content for token in neighbours))] if is_text else neighbours
    return joined


def _shown(markup: str) -> str:
    """HTML as text, without its comments."""
    return re.sub(r"<!--.*?(?:-->|\Z)", "", markup, flags=re.DOTALL)


def visible(tokens: Sequence[Token]) -> str:
    """What the inside of a block says to the eye."""
    return "".join("\n" if token.type in {"softbreak", "hardbreak"} else token.content for token in tokens)


def _append(lines: list[list[_Piece]], piece: _Piece) -> None:
    """Adds a piece; code spans never touch, no link becomes an image."""
    kind, source = piece
    line = lines[-1]
    if kind == "break":
        lines.append([])
    elif kind != "text" or source:
        before = line[-1][1] if line else ""
        if source.startswith("`") and before.endswith("`"):
            line.append(("text", " "))
        if source.startswith("[") and before.endswith("!"):
            line[-1] = ("text", before[:-1] + "\\!")
        line.append(piece)


def _source(line: list[_Piece]) -> str:
    return "".join(source for _, source in line).strip()


def _bare(line: list[_Piece]) -> str:
    """What the line says, without marks: how git's trailer rules would read it."""
    return re.sub(r"[\\*`~]", "", "".join(source for kind, source in line if kind == "text"))


def _prefixed(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        f"{first if number == 0 else rest}{line}".rstrip() if line or number == 0 else rest.rstrip()
        for number, line in enumerate(lines)
    )
