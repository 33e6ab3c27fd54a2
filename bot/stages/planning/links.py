"""Which other branches a request points at. Pure; what a link says is shown, never followed."""

from __future__ import annotations

import re

from bot.domain.ids import is_full_object_id

_SHOWN = 3


def other_branches(text: str, full_name: str, base: str) -> tuple[str, ...]:
    """Names in links to files of this repository that are neither the base nor a commit, in the order they stand there."""
    link = re.compile(rf"https?://[^/\s]+/{re.escape(full_name)}/(?:blob|tree)/([^\s)\]>\"'?#]+)", re.IGNORECASE)
    found = [rest for rest in link.findall(text) if not (rest == base or rest.startswith(f"{base}/"))]
    names = [rest.split("/", 1)[0] for rest in found]
    return tuple(dict.fromkeys(name for name in names if not is_full_object_id(name)))


def notice(branches: tuple[str, ...], base: str) -> str:
    """Where the work starts, when the request points elsewhere."""
    if not branches:
        return ""
    named = ", ".join(f"`{name.replace('`', chr(39))[:100]}`" for name in branches[:_SHOWN])
    return f"The request points at {named}; the work starts from `{base}`, the default branch. `/agent stop` if that is wrong."
