"""Characters that people do not see and programs obey: zero-width, direction controls, tag characters, terminal escapes."""

from __future__ import annotations

import re

_ZERO_WIDTH = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a"
)
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e0fff"
_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"

KINDS = {
    "terminal escapes": re.compile(
        r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
    ),
    "tag characters": re.compile(f"[{_TAGS}]"),
    "direction controls": re.compile(f"[{_DIRECTION}]"),
    "invisible characters": re.compile(f"[{_ZERO_WIDTH}]"),
    "control characters": re.compile(f"[{_CONTROL}]"),
    "broken characters": re.compile("[\ud800-\udfff]"),
}
"""What `strip_invisible` removes, by the name it reports; in the order in which it removes."""

_BREAKS = re.compile("\r\n?|[\u0085\u2028\u2029]")


def strip_invisible(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as people see it, with plain line ends, and the kinds of what was taken out."""
    clean, removed = _BREAKS.sub("\n", text), []
    for kind, pattern in KINDS.items():
        clean, count = pattern.subn("", clean)
        if count:
            removed.append(kind)
    return clean, tuple(removed)


def hides_something(text: str) -> bool:
    """True when `strip_invisible` would take something out."""
    return any(pattern.search(text) for pattern in KINDS.values())
