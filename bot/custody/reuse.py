"""Under which name the files of a set-up sandbox are kept, so that only what may share them finds them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.change import TreeEntry
from bot.domain.ids import RepositoryId
from bot.policy.setup import setup_files

MANY_FILES = 500
"""From here on copying what is kept is quicker than filling a sandbox again, also when nothing is set up."""

WEEK_SECONDS = 7 * 86_400
"""After it a set-up runs again: what it installs without naming a version, and the template, may have moved on."""


@dataclass(frozen=True, slots=True)
class SetUp:
    """What the result depends on besides the files. `owner` tells installations apart that share an account."""

    repository: RepositoryId
    owner: str
    template: str
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def prefix(setup: SetUp) -> str:
    """How the names of everything kept for a repository and template begin. Two repositories never share one."""
    whose = "\0".join((setup.owner, str(int(setup.repository)), setup.template))
    return f"pullwright-{hashlib.sha256(whose.encode()).hexdigest()[:24]}-"


def snapshot_name(setup: SetUp, entries: Sequence[TreeEntry], now: float) -> str | None:
    """The name for a tree with these entries; None when nothing is worth keeping."""
    if not setup.commands and len(entries) < MANY_FILES:
        return None
    parts = [str(int(now // WEEK_SECONDS)), *setup.commands]
    if setup.commands:
        wanted = setup_files(setup.commands, (entry.path for entry in entries), setup.files)
        counted = (entry for entry in entries if wanted is None or entry.path in wanted)
        parts += [f"{entry.mode.value} {entry.blob} {entry.path}" for entry in counted]
    said = "\0".join(parts).encode("utf-8", "surrogateescape")
    return prefix(setup) + hashlib.sha256(said).hexdigest()[:24]
