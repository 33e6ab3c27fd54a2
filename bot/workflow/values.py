"""Values of the domain as portable JSON and back (D17). Large ones go to a file named by their content; the row keeps its name."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")
INLINE_BYTES = 64_000
_SPILLED = "pullwright:spilled"


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}
"""Building one is slow; there are as many as there are kinds of records."""


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


class Values:
    """Packs and unpacks. `directory` holds the large values, made with the first; what is in one is never changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def pack(self, kind: type[T], value: T) -> Any:
        """JSON-able form of the value."""
        portable = _adapter(kind).dump_python(value, mode="json")
        text = json.dumps(portable, separators=(",", ":")).encode("ascii")
        if len(text) <= INLINE_BYTES:
            return portable
        name = hashlib.sha256(text).hexdigest()
        path = self._directory / f"{name}.json"
        try:
            os.utime(path)  # named again: `forget` goes by this
        except FileNotFoundError:
            self._directory.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        return {_SPILLED: name}

    def forget(self, before: float) -> int:
        """Remove values that were last named before this time (seconds since 1970); how many."""
        old = [path for path in self._directory.glob("*.json") if path.stat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def unpack(self, kind: type[T], packed: Any) -> T:
        """The value again, checked against its type. Raises ValueError when a stored value is damaged."""
        if isinstance(packed, dict) and _SPILLED in packed:
            text = (self._directory / f"{packed[_SPILLED]}.json").read_bytes()
            if hashlib.sha256(text).hexdigest() != packed[_SPILLED]:
                raise ValueError("a stored value is damaged")
            packed = json.loads(text)
        value: T = _adapter(kind).validate_python(packed)
        return value


def write_whole(path: Path, data: bytes) -> None:
    """So that the file is there with all of it, also after a crash, or not at all."""
    fresh = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
