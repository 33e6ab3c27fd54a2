"""Typed reading of a request body; every misfit is refused with 422, as the service does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot.emulators import strict_json
from bot.emulators.github.errors import ApiError, invalid_request


class Body:
    """A JSON object that came with a request."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = values or {}

    @classmethod
    def parse(cls, raw: bytes) -> Body:
        if not raw.strip():
            return cls()
        try:
            values = strict_json.loads(raw)
        except ValueError:
            raise ApiError(400, "Problems parsing JSON") from None
        if not isinstance(values, dict):
            raise ApiError(400, "Body should be a JSON object")
        return cls(values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def has(self, name: str) -> bool:
        """Present and not null."""
        return self._values.get(name) is not None

    def raw(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str) -> str:
        """A required string."""
        if name not in self._values:
            raise invalid_request(f'"{name}" wasn\'t supplied.')
        value = self._values[name]
        if not isinstance(value, str):
            raise _misfit(name, value, "string")
        return value

    def optional_text(self, name: str, default: str | None = None) -> str | None:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise _misfit(name, value, "string")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise _misfit(name, value, "boolean")
        return value

    def integer(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise _misfit(name, value, "integer")
        return value

    def one_of(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str | None:
        value = self.optional_text(name, default)
        if value is not None and value not in allowed and name in self._values:
            raise invalid_request(f"For 'properties/{name}', {value} is not a member of {list(allowed)}.")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _misfit(name, value, "array")
        return tuple(value)

    def integers(self, name: str) -> tuple[int, ...]:
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
            raise _misfit(name, value, "array")
        return tuple(value)

    def objects(self, name: str) -> tuple[Body, ...]:
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise _misfit(name, value, "array")
        return tuple(Body(item) for item in value)

    def object(self, name: str) -> Body | None:
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _misfit(name, value, "object")
        return Body(value)

    def items(self) -> Mapping[str, Any]:
        return self._values


def _misfit(name: str, value: object, wanted: str) -> ApiError:
    article = "an" if wanted[0] in "aeiou" else "a"
    shown = "nil" if value is None else json.dumps(value)[:200]
    return invalid_request(f"For 'properties/{name}', {shown} is not {article} {wanted}.")
