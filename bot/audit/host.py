"""A9: versions below the fleet's floor; A15: whether this machine's sandboxes hold, and where they may send. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from bot.audit.facts import Snapshot
from bot.audit.findings import Finding, Severity, unknown

_PAIR = re.compile(r"(\D*)(\d*)")
_VERSION = re.compile(r"(?:\d+:)?[A-Za-z0-9][A-Za-z0-9.+~:-]*")


def check_versions(snapshot: Snapshot) -> Iterator[Finding]:
    """A9: distribution versions, because a back-ported fix does not change what a program says of itself (specs/security.md §2.4)."""
    if snapshot.host is None:
        return
    for name, floor in sorted(snapshot.operator.floors.items()):
        read = snapshot.host.versions.get(name)
        if read is None or read.value is None:
            yield unknown(
                "A9", name, read.fault if read else "nobody looked", "Install it, or take it out of the floors."
            )
        elif not _VERSION.fullmatch(floor) or not _VERSION.fullmatch(read.value):
            yield unknown("A9", name, f"{floor!r} or {read.value!r} is no version", "Correct the floor.")
        elif older(read.value, floor):
            yield Finding(
                "A9", Severity.MEDIUM, name, f"is {read.value}, the floor is {floor}", "Upgrade it on this machine."
            )


def check_sandboxes(snapshot: Snapshot) -> Iterator[Finding]:
    """A15: the probe of local sandboxes, and hosts of the egress list that take uploads."""
    host = snapshot.host
    if host is None:
        return
    if host.sandbox.fault:
        yield unknown("A15", "sandboxes of this machine", host.sandbox.fault)
    if host.sandbox.value:
        yield Finding(
            "A15",
            Severity.HIGH,
            "sandboxes of this machine",
            host.sandbox.value,
            "`pullwright doctor` says what is missing.",
        )
    if host.shortfall:
        yield Finding(
            "A15", Severity.LOW, "sandboxes of this machine", host.shortfall, "docs/operating.md, “Weaker isolation”."
        )
    if host.uploads.fault:
        yield unknown(
            "A15", "egress list", host.uploads.fault, "Correct PULLWRIGHT_EGRESS and PULLWRIGHT_SETUP_EGRESS."
        )
    for entry in host.uploads.value:
        evidence = f"anybody may leave data at {entry}, and sandboxes reach it"
        yield Finding("A15", Severity.MEDIUM, "egress list", evidence, "Allow a read-only mirror instead.")


def older(version: str, floor: str) -> bool:
    """Whether a version comes before another, as Debian orders them: epoch, upstream, revision; `~` before everything."""
    return _key(version) < _key(floor)


def _key(version: str) -> tuple[int, _Part, _Part]:
    epoch, colon, rest = version.partition(":")
    upstream, dash, revision = (rest if colon else version).rpartition("-")
    return int(epoch) if colon else 0, _Part(upstream if dash else revision), _Part(revision if dash else "")


@dataclass(frozen=True, slots=True)
class _Part:
    """Upstream version or revision: by turns what is no number, letter by letter, and a number by its value."""

    text: str

    def __lt__(self, other: _Part) -> bool:
        pairs = zip_longest(_PAIR.findall(self.text), _PAIR.findall(other.text), fillvalue=("", ""))
        mine, theirs = zip(*((_order(one), _order(two)) for one, two in pairs), strict=True)
        return mine < theirs


def _order(pair: tuple[str, str]) -> tuple[tuple[int, ...], int]:
    """`~` before the end, the end before letters, letters before the rest."""
    letters = (-1 if one == "~" else ord(one) if one.isalpha() else ord(one) + 256 for one in pair[0])
    return (*letters, 0), int(pair[1] or 0)
