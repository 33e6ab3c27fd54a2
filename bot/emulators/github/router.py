"""Paths to routes. Works on the raw path, so `%2F` in a label stays one segment; `{name*}` spans slashes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Found:
    key: str
    values: dict[str, str]


class Router:
    """The first template that fits wins; templates with fixed words go before those that span slashes."""

    def __init__(self, keys: Iterable[str]) -> None:
        ordered = sorted(keys, key=_generality)
        self._routes = [(key, key.split(" ", 1)[0], _pattern(key.split(" ", 1)[1])) for key in ordered]

    def find(self, method: str, raw_path: str) -> Found | None:
        for key, verb, pattern in self._routes:
            if verb == method and (match := pattern.fullmatch(raw_path)):
                return Found(key, {name: unquote(value) for name, value in match.groupdict().items()})
        return None


def _generality(key: str) -> tuple[bool, bool, int]:
    """Spanning templates last, among them those with a fixed tail first; then the fewer holes the earlier."""
    path = key.split(" ", 1)[1]
    return ("*}" in path, path.endswith("*}"), path.count("{"))


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\*?\})", template)
    return re.compile("".join(_piece(part) for part in parts))


def _piece(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    name = part.strip("{}").rstrip("*")
    return f"(?P<{name}>.+)" if part.endswith("*}") else f"(?P<{name}>[^/]+)"
