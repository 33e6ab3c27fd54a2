"""What can be wrong with something that crosses the line. Each names its rule; nothing of the thing is used."""

from __future__ import annotations

from collections.abc import Mapping

from bot.domain.errors import CustodyError

MEANINGS: Mapping[str, str] = {
    "dot_git": "A name that some system takes for `.git` never crosses.",
    "file_and_directory": "A file and a directory would have the same name.",
    "file_size": "The file is too large.",
    "hidden_character": "The name holds a character that nobody can see.",
    "inside_submodule": "Files of a submodule belong to its own repository.",
    "link_escapes": "The link leads out of the repository.",
    "link_read_by_git": "git reads this file, so it must not be a link.",
    "link_target": "A link's target has to be a relative path inside the repository.",
    "nested_repository": "A repository stands inside this one; only its files could be taken.",
    "object_format": "Its objects are named by SHA-256; only repositories with SHA-1 are served.",
    "path_collision": "Two names are one on systems that ignore case or accents.",
    "path_component": "The path has an empty part, `.` or `..`.",
    "path_count": "Too many files changed.",
    "path_length": "The path is too long or too deep.",
    "path_not_portable": "Windows cannot hold a file of this name.",
    "path_not_relative": "The path is not relative to the repository.",
    "path_not_utf8": "GitHub cannot be told of a file whose name is not UTF-8, so it can be neither added, changed nor removed.",
    "special_file": "Only files, directories and links can be kept; this is a pipe, socket or device.",
    "total_size": "The change is too large.",
}
"""What people and the model are told of a rule, where its name does not say enough."""


class LineFault(CustodyError):  # noqa: N818 - faults of the line, by name
    """A broken rule: `rule` is stable, `path` the file it is about (may be empty), `detail` says what was seen."""

    def __init__(self, rule: str, path: str = "", detail: str = "") -> None:
        self.rule = rule
        self.path = path
        self.detail = detail
        where = f" {path!a}" if path else ""
        super().__init__(f"{rule}{where}{': ' if detail else ''}{detail}")

    @property
    def seen(self) -> str:
        """What was seen, without the rule's name where words say it."""
        return self.detail or str(self)

    @property
    def meaning(self) -> str:
        """The path and the rule in words, for people and the model."""
        where = f"{self.path!a}: " if self.path else ""
        return where + MEANINGS.get(self.rule, f"{self.rule.replace('_', ' ')}. {self.detail}".strip())


class ForbiddenPath(LineFault):
    """A path, or what stands at it, is of a kind that never crosses."""


class OverLimit(LineFault):
    """Too large or too many."""


class DamagedResult(LineFault):
    """The result is cut, altered, stale or contradicts itself. Never read as "everything was deleted"."""


class TreeMismatch(LineFault):
    """Two sides computed different trees from what should be the same files."""


class UpstreamFault(LineFault):
    """The upstream repository does not hold what was asked for, or tries to pass one thing for another."""


def sha256_fault() -> UpstreamFault:
    """Ids of 64 digits: GitHub has no such repositories, and every id here is of 40."""
    return UpstreamFault("object_format", detail=MEANINGS["object_format"].rstrip("."))
