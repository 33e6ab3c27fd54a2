"""Reads single fields of a payload without trusting its shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.ids import CommitId, is_full_object_id

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9._-]{1,100}")
_LARGEST_ID = 2**63 - 1
LONGEST_TEXT = 262_144
"""GitHub's own limit for a body is below this; whatever is longer is cut."""


class Unreadable(Exception):  # noqa: N818 - an answer, turned into an ignored event in `extract.py`
    """A field that an event needs is missing or of the wrong kind; `path` names it."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(path)


@dataclass(frozen=True, slots=True)
class Fields:
    """A place in a payload. Reading what is not there, or not of the kind, raises Unreadable with its path."""

    value: object
    path: str = ""

    def at(self, key: str) -> Fields:
        """The object under this key."""
        found = self.get(key)
        if not isinstance(found, Mapping):
            raise Unreadable(self._path(key))
        return Fields(found, self._path(key))

    def has(self, key: str) -> bool:
        """True when there is an object under this key."""
        return isinstance(self.get(key), Mapping)

    def get(self, key: str) -> object:
        """Whatever stands under this key, or None."""
        return self.value.get(key) if isinstance(self.value, Mapping) else None

    def text(self, key: str) -> str:
        found = self.get(key)
        if not isinstance(found, str):
            raise Unreadable(self._path(key))
        return found[:LONGEST_TEXT]

    def text_or_empty(self, key: str) -> str:
        """GitHub writes null for an empty body."""
        return "" if self.get(key) is None else self.text(key)

    def number(self, key: str) -> int:
        """A positive whole number that a database can hold."""
        found = self.get(key)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 < found <= _LARGEST_ID:
            raise Unreadable(self._path(key))
        return found

    def commit(self, key: str) -> CommitId:
        found = self.text(key)
        if not is_full_object_id(found):
            raise Unreadable(self._path(key))
        return CommitId(found)

    def full_name(self, key: str) -> str:
        found = self.text(key)
        if _NAME.fullmatch(found) is None:
            raise Unreadable(self._path(key))
        return found

    def _path(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key
