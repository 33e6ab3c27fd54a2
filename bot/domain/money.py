"""Money is integer micro-dollars: sums are exact and a ledger row compares equal after a round trip."""

from __future__ import annotations

from typing import NewType

MicroUsd = NewType("MicroUsd", int)

ZERO = MicroUsd(0)
MICROS_PER_DOLLAR = 1_000_000


def from_dollars(dollars: float | str) -> MicroUsd:
    """Dollars as people write them ("0.50") in micro-dollars, rounded to the nearest one."""
    return MicroUsd(round(float(dollars) * MICROS_PER_DOLLAR))


def dollars(amount: MicroUsd) -> float:
    """The amount in dollars, for JSON reports."""
    return round(amount / MICROS_PER_DOLLAR, 6)


def show(amount: MicroUsd) -> str:
    """The amount as people read it: "$0.0737"; amounts of a dollar and more with cents only."""
    value = amount / MICROS_PER_DOLLAR
    return f"${value:.2f}" if value >= 1 else f"${value:.4f}"
