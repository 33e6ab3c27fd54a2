"""Reads a published text as GitHub and as other bots would, and says what in it is active."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.prompting.invisible import strip_invisible


def dangers(text: str, hosts: frozenset[str] = frozenset({"github.com"})) -> list[str]:
    """Everything in this Markdown that would do something."""
    return [*_of_tokens(text, hosts), *_of_lines(text)]


def _of_tokens(text: str, hosts: frozenset[str]) -> Iterator[str]:
    for token in _flat(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)):
        if token.type in {"html_block", "html_inline", "image"}:
            yield f"{token.type}: {token.content}"
        if token.type == "link_open":
            yield from _of_link(str(token.attrs["href"]), hosts)
        if token.type == "text":
            yield from _of_text(token.content)


def _flat(tokens: list[Token]) -> Iterator[Token]:
    in_autolink = False
    for token in tokens:
        if token.type == "link_open":
            in_autolink = token.markup == "autolink"
        if token.type == "link_close":
            in_autolink = False
        if not (in_autolink and token.type == "text"):
            yield token
        yield from _flat(token.children or [])


def _of_link(href: str, hosts: frozenset[str]) -> Iterator[str]:
    place = re.match(r"https://([^/?#]*)", href)
    if place is None:
        if re.match(r"[a-z][a-z0-9+.-]*:|//", href, re.IGNORECASE):
            yield f"link: {href}"
    elif place.group(1) not in hosts:
        yield f"link: {href}"


def _of_text(text: str) -> Iterator[str]:
    for name, pattern in {
        "mention": r"(?<![A-Za-z0-9])@[A-Za-z0-9]",
        "reference": r"#\d|\bGH-\d",
        "address": r"https?://\S|\bwww\.\S",
    }.items():
        if re.search(pattern, text, re.IGNORECASE):
            yield f"{name}: {text}"


def _of_lines(text: str) -> Iterator[str]:
    if strip_invisible(text)[0] != text:
        yield "invisible characters"
    if re.search(r"<!-+\s*pullwright", text, re.IGNORECASE):
        yield "a marker of ours"
    for line in text.split("\n"):
        if re.match(r"/[A-Za-z][\w-]*(\s|$)|bors |@dependabot|[A-Za-z][A-Za-z0-9-]*-by:", line, re.IGNORECASE):
            yield f"line: {line}"
