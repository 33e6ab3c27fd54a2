"""What spending is made of: tokens by kind, attempts and how they ended. The ledger keeps these; nothing else does."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.domain.money import ZERO, MicroUsd


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by kind, as billed. `output` includes `thinking`."""

    input: int = 0
    write_5m: int = 0
    write_1h: int = 0
    read: int = 0
    output: int = 0
    thinking: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.write_5m + self.write_1h + self.read


@dataclass(frozen=True, slots=True)
class Attempt:
    """One HTTP attempt in the ledger. Opened with the worst case before it is sent; settled from usage afterwards.

    An attempt that was never settled is charged in full: its fate is unknown (design D5).
    """

    task: str
    key: str
    number: int
    model: str
    effort: str
    reserved: MicroUsd


@dataclass(frozen=True, slots=True)
class Settled:
    """How an attempt ended: `outcome` is "ok" or an error class; cost 0 where the service bills nothing."""

    usage: Usage
    cost: MicroUsd
    outcome: str
    request_id: str = ""
    cache_miss: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often work was asked for, and what it cost: by this person in an hour, in this repository and by all in a day."""

    by_user_hour: int = 0
    in_repository_day: int = 0
    spent_day: MicroUsd = ZERO
    set_aside: MicroUsd = ZERO
    """What tasks that work now may still spend."""


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """What a task has cost: settled costs plus the full reservation of attempts that were never settled (`unknown`)."""

    spent: MicroUsd
    unknown: MicroUsd = field(default=ZERO, kw_only=True)
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
