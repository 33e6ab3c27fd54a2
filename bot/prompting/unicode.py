"""Half characters: paths whose bytes are no UTF-8, and `\\udXXX` escapes in what a model writes, cannot be sent or stored as text."""

from __future__ import annotations

import json
import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """The text with a replacement character in place of each half one; equal texts stay equal."""
    return _HALF.sub("\ufffd", text)


def whole_json(text: str) -> Any:
    """The value of a JSON text from outside. Raises ValueError when it is none, or holds half characters."""
    value = json.loads(text)
    if _HALF.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it holds half of a character (a lone surrogate)")
    return value
