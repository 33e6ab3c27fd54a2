"""Domain values as JSON text and back. A stored value is checked against its type when it is read."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


class Codec(Generic[T]):
    """Writes and reads values of one kind."""

    def __init__(self, kind: type[T]) -> None:
        self._adapter: TypeAdapter[T] = TypeAdapter(kind)

    def encode(self, value: T) -> str:
        """The value as JSON text, the same text for equal values."""
        return self._adapter.dump_json(value).decode()

    def decode(self, text: str) -> T:
        """The value of this JSON text. Raises ValueError when it is not one of this kind."""
        return self._adapter.validate_json(text)
