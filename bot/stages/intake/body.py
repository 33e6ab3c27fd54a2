"""A webhook's body as JSON, read strictly: what two readers could understand differently is a fault."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

DEEPEST = 64
_LONGEST_INTEGER = 20
_DIGITS = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))
_MANY_DIGITS = b"0" * _LONGEST_INTEGER
"""Without so many digits in a row no number is too long, and the reader need not ask about each."""
_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Halves of characters can only come as escapes: UTF-8 has none."""

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class BodyFault:
    """Why these bytes are no body of a webhook."""

    reason: str


class _Refused(ValueError):  # noqa: N818 - says what the reader does with the text
    """Raised by the hooks of the JSON reader, with the reason."""


def read_body(raw: bytes) -> JsonObject | BodyFault:
    """The JSON object in these bytes: UTF-8 without BOM, no duplicate key, no number without a value, at most 64 levels deep."""
    try:
        value: object = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer if _MANY_DIGITS in raw.translate(_DIGITS) else None,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError:
        return BodyFault("the body is not UTF-8")
    except RecursionError:
        return BodyFault("the body is nested too deeply")
    except _Refused as refused:
        return BodyFault(str(refused))
    except ValueError:
        return BodyFault("the body is not JSON")
    if not isinstance(value, dict):
        return BodyFault("the body is not an object")
    if _too_deep(value):
        return BodyFault("the body is nested too deeply")
    if _ESCAPED_HALF.search(raw) and not _is_whole(value):
        return BodyFault("a text of the body holds half a character")
    return value


def _object(pairs: list[tuple[str, object]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Refused("an object of the body has a key twice")
    return made


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise _Refused("a number of the body is too long")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("a number of the body is too large")
    return value


def _constant(text: str) -> float:
    raise _Refused(f"{text} is not a JSON number")


def _too_deep(top: JsonObject) -> bool:
    level: list[JsonObject | list[object]] = [top]
    for _ in range(DEEPEST):
        inside = (each for value in level for each in (value.values() if isinstance(value, dict) else value))
        level = [each for each in inside if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _is_whole(value: JsonObject) -> bool:
    """Whether every text in it can be written down."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
