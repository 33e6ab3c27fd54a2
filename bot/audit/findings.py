"""What a check finds: how bad it is, where, what it rests on, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from bot.providers.organisation.port import Read


class Severity(IntEnum):
    """The exit code of an audit whose worst finding this is. What could not be read weighs more than a small fault that was."""

    LOW = 3
    UNKNOWN = 4
    MEDIUM = 5
    HIGH = 6


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One line of the report. `check` is the id in specs/security.md §8."""

    check: str
    severity: Severity
    target: str
    evidence: str
    fix: str


def unknown(check: str, target: str, why: str, fix: str = "") -> Finding:
    """The check could not see this target: neither clean nor not."""
    return Finding(check, Severity.UNKNOWN, target, f"could not be read: {why}", fix or fix_of(why))


def unread(check: str, target: str, *reads: Read[object]) -> Iterator[Finding]:
    """One finding for each read that is not whole."""
    for read in reads:
        if read.fault:
            yield unknown(check, target, read.fault)


def fix_of(why: str) -> str:
    """What to do about something that could not be read."""
    if why.startswith(("403", "404")):
        return "Give the audit's token the right to read it (docs/operating.md lists the rights), or look yourself."
    if "may change the ruleset" in why:
        return "Look at its bypass list yourself: a token that is told of it could also change it."
    if "limits" in why:
        return "Run the audit again later."
    return "Look yourself, or run the audit again."
