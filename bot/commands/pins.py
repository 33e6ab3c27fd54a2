"""Pinned plugins, actions and skills of an operator: put on disk from the one commit that was named, and checked there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.custody import pins
from bot.custody.faults import LineFault
from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream, local_url
from bot.domain.errors import Transient, UserError
from bot.domain.ids import CommitId, RepositoryId
from bot.settings import Settings

_HINTS = {
    "pin_not_whole": "Pin the whole commit id, 40 characters: a shorter one, a tag or a branch can be made to mean something else.",
    "pin_unreachable": "A fork network serves commits of strangers by id. Pin one that a branch or tag of this repository has.",
    "ref_named_like_commit": "Somebody passes a branch or tag for a commit there. Do not use this upstream before that is explained.",
    "pin_tampered": "The files are not the pinned ones. Remove the directory and place it again.",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """What stands in the directory: the pinned commit's very tree."""

    repository: str
    commit: str
    tree: str
    directory: str


async def place(settings: Settings, repository: str, commit: str, directory: Path) -> Placed:
    """Put the pinned files into a directory that is empty or not there yet. Raises UserError."""
    if not _vacant(directory):
        raise UserError(f"{directory} is not an empty directory.", "Name one that does not exist yet.")
    pin = pin_of(settings, repository, commit)
    try:
        tree = await pins.place(mirror_of(settings.home, repository), pin, directory)
    except (LineFault, Transient) as fault:
        raise _told(fault) from fault
    return Placed(repository, commit, tree, str(directory))


async def check(settings: Settings, repository: str, commit: str, directory: Path) -> Placed:
    """The same directory later: all of its files, hidden ones included, are still those of the commit. Raises UserError."""
    try:
        tree = await pins.resolve(mirror_of(settings.home, repository), pin_of(settings, repository, commit))
        pins.check(directory, tree)
    except (LineFault, Transient) as fault:
        raise _told(fault) from fault
    return Placed(repository, commit, tree, str(directory))


def told(placed: Placed, *, as_json: bool) -> str:
    """For people, or for programs."""
    return json.dumps(asdict(placed)) if as_json else f"{placed.directory} holds {placed.commit}, tree {placed.tree}"


def _vacant(directory: Path) -> bool:
    return not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))


def pin_of(settings: Settings, repository: str, commit: str) -> pins.Pin:
    """The pin of an https address or a local clone. Raises UserError for anything else."""
    if repository.startswith("https://"):
        return pins.Pin(Upstream(repository, proxy=settings.proxy(repository)), CommitId(commit))
    path = Path(repository)
    if "://" in repository or repository.startswith("-") or not path.is_dir():
        raise UserError(f"{repository} is neither an https address nor a local repository.")
    return pins.Pin(Upstream(local_url(path), protocols="file"), CommitId(commit))


def mirror_of(home: Path, repository: str) -> Mirror:
    """Where the commits of a pinned repository are kept."""
    number = int(hashlib.sha256(repository.encode()).hexdigest()[:12], 16)
    return Mirror(home / "pins", RepositoryId(number))


def _told(fault: LineFault | Transient) -> UserError:
    if isinstance(fault, Transient):
        return UserError(f"The repository does not answer: {fault}", "Try again.")
    return UserError(f"The pin does not hold: {fault}", _HINTS.get(fault.rule, ""))
