"""Names the product gives: branch, commit title. Never taken from the model or used unfiltered from an issue."""

from __future__ import annotations

import re
import unicodedata

from bot.domain.ids import TaskId

BRANCH_PREFIX = "agent/"
TITLE_LENGTH = 120


def branch(number: int, title: str, task: TaskId) -> str:
    """`agent/<issue>-<slug>-<generation>`: ASCII, valid for git and GitHub, one per task."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "task"
    generation = re.sub(r"[^0-9]", "", task.rsplit(":", 1)[-1]) or "0"
    return f"{BRANCH_PREFIX}{number}-{slug}-{generation}"


def title(issue_title: str) -> str:
    """A one-line title from the issue's, without what GitHub or a reader could take for a command."""
    line = " ".join("".join(c if c.isprintable() else " " for c in issue_title).split())
    line = re.sub(r"[@#](?=\w)", "", line).lstrip("/").strip()
    return (line[: TITLE_LENGTH - 1] + "…" if len(line) > TITLE_LENGTH else line) or "Change"
