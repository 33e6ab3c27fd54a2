"""A ledger in memory, for tests of whatever spends."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.domain.money import MicroUsd
from bot.domain.spending import Attempt, LedgerTotals, Settled, Usage


@dataclass(slots=True)
class MemoryLedger:
    """Keeps the contract of the role's Ledger; `rows` are its attempts in the order they were opened."""

    rows: dict[tuple[str, str, int], tuple[Attempt, Settled | None]] = field(default_factory=dict)

    async def open(self, attempt: Attempt, *, budget: MicroUsd) -> bool:
        if budget <= 0 or self._spent(attempt.task) + attempt.reserved > budget:
            return False
        place = (attempt.task, attempt.key, attempt.number)
        assert place not in self.rows
        self.rows[place] = (attempt, None)
        return True

    async def settle(self, attempt: Attempt, settled: Settled) -> None:
        place = (attempt.task, attempt.key, attempt.number)
        assert self.rows[place][1] is None
        self.rows[place] = (attempt, settled)

    async def totals(self, task: str) -> LedgerTotals:
        return LedgerTotals(MicroUsd(self._spent(task)), Usage(), len(self.rows))

    async def attempts(self, task: str, key: str) -> int:
        return sum(1 for t, k, _ in self.rows if (t, k) == (task, key))

    def _spent(self, task: str) -> int:
        mine = [row for place, row in self.rows.items() if place[0] == task]
        return sum(attempt.reserved if settled is None else settled.cost for attempt, settled in mine)

    @property
    def outcomes(self) -> list[str]:
        return [settled.outcome if settled is not None else "open" for _, settled in self.rows.values()]

    @property
    def costs(self) -> list[int]:
        return [a.reserved if settled is None else settled.cost for a, settled in self.rows.values()]
