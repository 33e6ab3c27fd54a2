"""Whether an event of a workflow runs it on a branch of the bot: GitHub's branch filters. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def reached_by_bot(triggers: Mapping[str, Any], prefix: str, default: str) -> str | None:
    """The first event by which a push to `prefix…`, or a pull request from there into the default branch, runs it.

    Filters by path are not counted: what a task changes is not known beforehand. `pull_request_target` is not among them: it runs what the
    default branch says, unless it checks out the head, which is a finding of its own.
    """
    if "create" in triggers:
        return "create"
    if "push" in triggers and _pushed(_mapping(triggers["push"]), f"{prefix}1-x"):
        return "push"
    if "pull_request" in triggers and _lets(_mapping(triggers["pull_request"]), default):
        return "pull_request"
    return None


def _pushed(filters: Mapping[str, Any], branch: str) -> bool:
    tags_alone = {"tags", "tags-ignore"} & filters.keys() and not {"branches", "branches-ignore"} & filters.keys()
    return not tags_alone and _lets(filters, branch)


def _lets(filters: Mapping[str, Any], branch: str) -> bool:
    if "branches" in filters:
        return _last_match(_texts(filters["branches"]), branch)
    return not _last_match(_texts(filters.get("branches-ignore")), branch)


def _last_match(patterns: list[str], branch: str) -> bool:
    """The last pattern that fits decides; one that begins with `!` takes out."""
    result = False
    for pattern in patterns:
        if _fits(pattern.removeprefix("!"), branch):
            result = not pattern.startswith("!")
    return result


def _fits(pattern: str, branch: str) -> bool:
    """`?` and `+` repeat what stands before them, `[…]` is a range; anything that cannot be read fits, to be on the safe side."""
    parts = re.split(r"(\*\*|\*|\[[^\]]*\]|[?+])", pattern)
    kept = {"?", "+"}
    text = "".join(
        part if part in kept or part.startswith("[") else {"**": ".*", "*": "[^/]*"}.get(part, re.escape(part))
        for part in parts
    )
    try:
        return re.fullmatch(text, branch) is not None
    except re.error:
        return True


def _mapping(told: Any) -> Mapping[str, Any]:
    return told if isinstance(told, dict) else {}


def _texts(told: Any) -> list[str]:
    if isinstance(told, str):
        return [told]
    return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []
