"""JSON as the services read it."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def loads(raw: bytes) -> Any:
    """The document. Raises ValueError for what is none in Unicode: NaN, lone surrogates and endless nesting are Python's, not JSON's."""
    try:
        document = json.loads(raw, parse_constant=_no_number)
        if b"\\u" in raw:
            json.dumps(document, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return document


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
