"""Enough of the GraphQL language to run the documents that clients of the App send."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r'[\s,]+|#[^\n]*|(\.\.\.|[{}()\[\]:$!=@|]|"(?:\\.|[^"\\])*"|-?\d+(?:\.\d+)?|\w+)')


class SyntaxRefused(Exception):  # noqa: N818 - it is an answer to the client, not an error of ours
    """The document does not parse."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    alias: str
    arguments: Mapping[str, Any]
    selection: tuple[Field, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Document:
    kind: str
    fields: tuple[Field, ...]


def parse(source: str, variables: Mapping[str, Any]) -> Document:
    """One operation, with its variables filled in. Inline fragments are flattened; named fragments are refused."""
    parser = _Parser(_tokens(source), variables)
    return parser.document()


def _tokens(source: str) -> list[str]:
    found: list[str] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise SyntaxRefused(f"Parse error on {source[position]!r}")
        if match.group(1):
            found.append(match.group(1))
        position = match.end()
    return found


class _Parser:
    def __init__(self, tokens: list[str], variables: Mapping[str, Any]) -> None:
        self._tokens = tokens
        self._at = 0
        self._variables = variables

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, wanted: str | None = None) -> str:
        token = self._peek()
        if not token or (wanted is not None and token != wanted):
            raise SyntaxRefused(f"Parse error: expected {wanted or 'more'}, got {token or 'the end'}")
        self._at += 1
        return token

    def document(self) -> Document:
        kind = "query"
        if self._peek() in {"query", "mutation"}:
            kind = self._take()
            while self._peek() not in {"{", "("}:
                self._take()
            if self._peek() == "(":
                self._skip_parentheses()
        fields = self._selection()
        if self._peek():
            raise SyntaxRefused("Parse error: only one operation is served here")
        return Document(kind, fields)

    def _skip_parentheses(self) -> None:
        depth = 0
        while True:
            token = self._take()
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth == 0:
                return

    def _selection(self) -> tuple[Field, ...]:
        self._take("{")
        found: list[Field] = []
        while self._peek() != "}":
            if self._peek() == "...":
                found += self._fragment()
            else:
                found.append(self._field())
        self._take("}")
        if not found:
            raise SyntaxRefused("Parse error: empty selection")
        return tuple(found)

    def _fragment(self) -> tuple[Field, ...]:
        self._take("...")
        if self._peek() == "on":
            self._take()
            self._take()
        return self._selection()

    def _field(self) -> Field:
        name = alias = self._take()
        if self._peek() == ":":
            self._take()
            name = self._take()
        arguments = self._arguments() if self._peek() == "(" else {}
        selection = self._selection() if self._peek() == "{" else ()
        return Field(name, alias, arguments, selection)

    def _arguments(self) -> dict[str, Any]:
        return self._pairs("(", ")")

    def _pairs(self, opening: str, closing: str) -> dict[str, Any]:
        self._take(opening)
        found: dict[str, Any] = {}
        while self._peek() != closing:
            name = self._take()
            self._take(":")
            found[name] = self._value()
        self._take(closing)
        return found

    def _value(self) -> Any:
        token = self._peek()
        if token == "{":
            return self._pairs("{", "}")
        if token == "[":
            return self._list()
        self._take()
        if token == "$":
            return self._variables.get(self._take())
        if token in {"true", "false", "null"} or token[0] in '"-0123456789':
            return _literal(token)
        return token

    def _list(self) -> list[Any]:
        self._take("[")
        found = []
        while self._peek() != "]":
            found.append(self._value())
        self._take("]")
        return found


def _literal(token: str) -> Any:
    try:
        return json.loads(token)
    except ValueError:
        raise SyntaxRefused(f"Parse error on {token[:100]}") from None
