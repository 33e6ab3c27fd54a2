"""Reads Markdown as GitHub does, in bounded time: blocks first, the inside of a block only where somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST_INLINE = 5_000
"""Longer paragraphs are taken as plain text: the inline rules need quadratic time on hostile ones."""


@dataclass(frozen=True, slots=True)
class Document:
    """The blocks of a text, and its link definitions."""

    tokens: tuple[Token, ...]
    env: dict[str, Any] = field(default_factory=dict)

    def inside(self, block: Token) -> tuple[Token, ...]:
        """The inline tokens of an `inline` block; one text token when it is too long to look into."""
        if len(block.content) > LONGEST_INLINE:
            return (Token("text", "", 0, content=block.content),)
        (inline,) = _MARKDOWN.parseInline(block.content, self.env)
        return tuple(inline.children or ())


def read_blocks(text: str) -> Document:
    """The blocks of a text with plain line ends; `inline` tokens keep their source."""
    env: dict[str, Any] = {}
    tokens: list[Token] = []
    _MARKDOWN.block.parse(text, _MARKDOWN, env, tokens)
    return Document(tuple(tokens), env)


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # Every destination is read as a link here, so that those nobody may follow can be taken out.
    markdown.validateLink = lambda url: True  # type: ignore[method-assign] # noqa: ARG005 - the parser's form
    return markdown


_MARKDOWN = _markdown()
