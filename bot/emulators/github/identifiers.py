"""Numeric ids and the opaque node ids that go with them."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator

_FIRST = {
    "U": 9_100_000,
    "R": 810_200_300,
    "I": 2_910_400_500,
    "IC": 3_110_600_700,
    "LA": 7_710_800_100,
    "PR": 2_510_900_200,
    "PRR": 3_310_300_400,
    "PRRC": 2_210_500_600,
    "CR": 48_110_700_800,
    "CS": 45_310_800_900,
    "SC": 37_110_100_200,
    "REA": 310_200_300,
    "D": 190_300_400_500,
    "MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9u": 71_300_400,
}


class Identifiers:
    """One counter per kind; ids of different kinds never meet by accident."""

    def __init__(self) -> None:
        self._counters: dict[str, Iterator[int]] = {}

    def number(self, kind: str) -> int:
        return next(self._counters.setdefault(kind, itertools.count(_FIRST.get(kind, 1_000_000), 7)))

    def new(self, kind: str) -> tuple[int, str]:
        """A fresh id and its node id."""
        number = self.number(kind)
        return number, node_id(kind, number)


def node_id(kind: str, number: int) -> str:
    packed = base64.urlsafe_b64encode(f"{kind}{number:012d}".encode()).decode().rstrip("=")
    return f"{kind}_kw{packed}"
