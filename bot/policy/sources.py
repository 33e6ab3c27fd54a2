"""Cedar text → statements with their lines, and what is wrong with them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import cedarpy

_TOKEN = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|;|\S', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """One policy file."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One policy: where it begins, what it does, and its annotations."""

    file: str
    line: int
    effect: str
    name: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class PolicyFault:
    """Why the rules do not hold. While there is one, everything is denied."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.message}"


def split(text: str) -> Iterator[tuple[int, str]]:
    """Each statement of a Cedar text with the line on which its first word stands."""
    start: int | None = None
    for token in _TOKEN.finditer(text):
        if token[0].startswith("//"):
            continue
        start = token.start() if start is None else start
        if token[0] == ";":
            yield text.count("\n", 0, start) + 1, text[start : token.end()]
            start = None
    if start is not None:
        yield text.count("\n", 0, start) + 1, text[start:]


def read_statements(source: Source) -> tuple[Statement, ...] | PolicyFault:
    """The policies of a file in order. Templates are refused: nothing here links them."""
    found = []
    for line, part in split(source.text):
        try:
            parsed = json.loads(cedarpy.policies_to_json_str(part))
        except ValueError as error:
            return PolicyFault(source.name, line, f"{error}")
        policies = list(parsed["staticPolicies"].values())
        if parsed["templates"] or len(policies) != 1:
            return PolicyFault(source.name, line, "a template or no policy stands here")
        notes = policies[0].get("annotations", {})
        found.append(
            Statement(source.name, line, policies[0]["effect"], notes.get("id") or "", notes.get("reason") or "")
        )
    return tuple(found)


def check_named(statements: tuple[Statement, ...]) -> PolicyFault | None:
    """The operator's rules carry a unique `@id` and a `@reason`."""
    seen: set[str] = set()
    for statement in statements:
        if not statement.name or not statement.reason:
            return PolicyFault(statement.file, statement.line, "a rule needs an @id and a @reason")
        if statement.name in seen:
            return PolicyFault(statement.file, statement.line, f'the @id "{statement.name}" stands here twice')
        seen.add(statement.name)
    return None


def check_only_forbids(statements: tuple[Statement, ...]) -> PolicyFault | None:
    """A repository's own rules can tighten, never loosen."""
    for statement in statements:
        if statement.effect != "forbid":
            return PolicyFault(statement.file, statement.line, "a repository's own policy may hold only `forbid`")
    return None


def check_schema(source: Source, statements: tuple[Statement, ...], schema: str) -> PolicyFault | None:
    """Every rule fits the schema."""
    try:
        result = cedarpy.validate_policies(source.text, schema)
    except ValueError as error:
        return PolicyFault("schema.cedarschema", None, f"{error}")
    if result.validation_passed:
        return None
    first = result.errors[0] if result.errors else None
    number = re.fullmatch(r"policy(\d+)", first.policy_id) if first else None
    index = int(number[1]) if number else len(statements)
    line = statements[index].line if index < len(statements) else None
    file = source.name if first and first.policy_id else "schema.cedarschema"
    return PolicyFault(file, line, first.error if first else "does not fit the schema")
