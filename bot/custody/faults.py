"""What can be wrong with something that crosses the line. Each names its rule; nothing of the thing is used."""

from __future__ import annotations

from bot.domain.errors import CustodyError


class LineFault(CustodyError):  # noqa: N818 - faults of the line, by name
    """A broken rule: `rule` is stable, `path` the file it is about (may be empty), `detail` says what was seen."""

    def __init__(self, rule: str, path: str = "", detail: str = "") -> None:
        self.rule = rule
        self.path = path
        self.detail = detail
        where = f" {path!a}" if path else ""
        super().__init__(f"{rule}{where}{': ' if detail else ''}{detail}")


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
