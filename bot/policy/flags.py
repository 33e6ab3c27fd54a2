"""What a flag is: a property of a change that people should know of before it lands (specs/security.md §3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    """What follows from a flag: it is shown, a reviewer has to name it, or the change is denied."""

    SHOWN = "shown"
    NAMED = "named"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Flag:
    """One property; `paths` are the files that have it, sorted, `why` one sentence."""

    name: str
    weight: Weight
    paths: tuple[str, ...]
    why: str


def merged(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """One flag for each name, with all its paths and the heaviest weight; the weightiest first."""
    found: dict[str, Flag] = {}
    for flag in flags:
        other = found.get(flag.name)
        if other is None:
            found[flag.name] = flag
        else:
            heavier = max(other, flag, key=lambda one: _ORDER[one.weight])
            paths = tuple(sorted({*flag.paths, *other.paths}))
            found[flag.name] = Flag(flag.name, heavier.weight, paths, heavier.why)
    return tuple(sorted(found.values(), key=lambda flag: (-_ORDER[flag.weight], flag.name)))


_ORDER = {Weight.SHOWN: 0, Weight.NAMED: 1, Weight.DENIED: 2}


def to_name(flags: Iterable[Flag]) -> tuple[str, ...]:
    """The flags that a reviewer has to name; `Snapshot.flags` holds these."""
    return tuple(flag.name for flag in flags if flag.weight is Weight.NAMED)


def denied(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """The flags that no reviewer can allow."""
    return tuple(flag for flag in flags if flag.weight is Weight.DENIED)
