"""Which hosts a sandbox asked for, and what it was answered."""

from __future__ import annotations

from dataclasses import dataclass, replace

MOST = 200
"""How many are kept of a task: who asks for more has nothing in mind that a person would read."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Asking `times` times for `target` (`host:port`, in the sandbox's own words) during `phase` of a task.

    `unlisted`: it was denied for no other reason than that the host is not on the operator's list.
    """

    target: str
    allowed: bool
    unlisted: bool = False
    reason: str = ""
    phase: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Attempts:
    """What was asked for in one part of a task."""

    all: tuple[Attempt, ...] = ()


def counted(*groups: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """Every attempt once, in the order in which they first came, with how often they came; at most MOST of them."""
    found: dict[Attempt, int] = {}
    for attempt in (each for group in groups for each in group):
        alike = replace(attempt, times=1)
        found[alike] = found.get(alike, 0) + attempt.times
    return tuple(replace(attempt, times=times) for attempt, times in list(found.items())[:MOST])
