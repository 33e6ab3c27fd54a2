"""Names the product gives: branch, commit title. Never taken from the model or used unfiltered from an issue."""

from __future__ import annotations

import re
import unicodedata

from bot.domain.ids import TaskId
from bot.prompting import publishable_line

BRANCH_PREFIX = "agent/"
TITLE_LENGTH = 120
_READ = 1000
_MARKS = re.compile(r"[@#]+(?=\w)")


def branch(number: int, title: str, task: TaskId) -> str:
    """`agent/<issue>-<slug>-<generation>`: ASCII, valid for git and GitHub, one per task."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "task"
    generation = re.sub(r"[^0-9]", "", task.rsplit(":", 1)[-1]) or "0"
    return f"{BRANCH_PREFIX}{number}-{slug}-{generation}"


def artefacts_branch(number: int, task: TaskId) -> str:
    """`agent/artefacts-<issue>-<generation>`: an orphan branch for what the task shows, one per task."""
    generation = re.sub(r"[^0-9]", "", task.rsplit(":", 1)[-1]) or "0"
    return f"{BRANCH_PREFIX}artefacts-{number}-{generation}"


def title(issue_title: str) -> str:
    """A one-line title from the issue's, without what GitHub, CI or a reader could take for a command, and without secrets.

    It becomes the first line of commits, where Markdown guards nothing: mentions and references lose their mark.
    """
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in issue_title)
    calm = re.sub(r"(?m)^[\s/]+", "", _MARKS.sub("", plain))
    line = _MARKS.sub("", publishable_line(calm, _READ).replace("`", "'"))
    return (line[: TITLE_LENGTH - 1] + "…" if len(line) > TITLE_LENGTH else line) or "Change"
