"""The two API versions. Shapes (and webhooks, which have no version) carry the older form; the newer one took fields away."""

from __future__ import annotations

from typing import Any

OLD_VERSION = "2022-11-28"
NEW_VERSION = "2026-03-10"
_GONE = frozenset({"assignee", "has_downloads", "merge_commit_sha"})


def as_of(version: str, told: Any) -> Any:
    """An answer in this version. A webhook's payload inside an answer stays as it was sent."""
    if version == OLD_VERSION:
        return told
    if isinstance(told, list):
        return [as_of(version, item) for item in told]
    if isinstance(told, dict):
        return {
            key: value if key == "payload" else as_of(version, value) for key, value in told.items() if key not in _GONE
        }
    return told
