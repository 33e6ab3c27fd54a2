"""The ledger: every attempt, reserved before it is made."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.domain.money import ZERO, MicroUsd
from bot.domain.spending import LedgerTotals, Settled, Usage
from bot.providers.store.sql import Store
from tests.contracts.stores.builders import BUDGET, attempt, together


class TestLedger:
    async def test_what_is_reserved_counts_until_it_is_settled(self, store: Store):
        assert await store.ledger.open(attempt(1, 300), budget=BUDGET)
        assert (await store.ledger.totals("t")).spent == 300
        usage = Usage(input=10, write_5m=4, read=100, output=20, thinking=5)
        await store.ledger.settle(attempt(1, 300), Settled(usage, MicroUsd(120), "ok", "req_1"))
        assert await store.ledger.open(attempt(2, 50), budget=BUDGET)
        assert await store.ledger.totals("t") == LedgerTotals(MicroUsd(170), usage, 2, unknown=MicroUsd(50))
        assert await store.ledger.attempts("t", "plan:1") == 2
        assert await store.ledger.attempts("t", "plan:2") == 0

    async def test_a_reservation_never_crosses_the_budget(self, store: Store):
        assert await store.ledger.open(attempt(1, 60), budget=MicroUsd(100))
        assert not await store.ledger.open(attempt(2, 41), budget=MicroUsd(100))
        assert await store.ledger.open(attempt(2, 40), budget=MicroUsd(100))
        assert await store.ledger.attempts("t", "plan:1") == 2

    @pytest.mark.parametrize("reserved", [0, 1])
    async def test_a_budget_of_zero_allows_nothing(self, store: Store, reserved: int):
        assert not await store.ledger.open(attempt(1, reserved), budget=ZERO)

    async def test_many_at_once_stay_within_the_budget(self, store: Store):
        opened = together(
            10, lambda n: asyncio.run(store.ledger.open(attempt(1, 30, key=f"k{n}"), budget=MicroUsd(100)))
        )
        assert sum(opened) == 3
        assert (await store.ledger.totals("t")).spent == 90

    async def test_settling_alike_again_changes_nothing_and_otherwise_is_an_error(self, store: Store):
        await store.ledger.open(attempt(), budget=BUDGET)
        settled = Settled(Usage(output=3), MicroUsd(7), "ok")
        await store.ledger.settle(attempt(), settled)
        await store.ledger.settle(attempt(), settled)
        with pytest.raises(ValueError, match="settled otherwise"):
            await store.ledger.settle(attempt(), replace(settled, cost=MicroUsd(1)))
        with pytest.raises(LookupError):
            await store.ledger.settle(attempt(2), settled)

    async def test_an_attempt_is_opened_once_and_reserves_no_less_than_nothing(self, store: Store):
        await store.ledger.open(attempt(), budget=BUDGET)
        with pytest.raises(ValueError, match="opened before"):
            await store.ledger.open(attempt(), budget=BUDGET)
        with pytest.raises(ValueError, match="negative"):
            await store.ledger.open(attempt(2, -1), budget=BUDGET)

    async def test_rows_and_sums_for_reports(self, store: Store):
        await store.ledger.open(attempt(1, 100), budget=BUDGET)
        await store.ledger.open(attempt(1, 40, task="u"), budget=BUDGET)
        settled = Settled(Usage(output=3), MicroUsd(7), "overloaded_error", cache_miss="tools_changed")
        await store.ledger.settle(attempt(1, 100), settled)
        (row,) = await store.ledger.rows("t")
        assert (row.attempt, row.settled) == (attempt(1, 100), settled)
        assert row.at is not None
        assert await store.ledger.tasks("", 10) == ("t", "u")
        assert await store.ledger.tasks("u", 10) == ("u",)
        assert await store.ledger.tasks("%", 10) == ()
        assert await store.ledger.spent(("t", "u", "v")) == {"t": 7, "u": 40}
        assert await store.ledger.totals("v") == LedgerTotals(ZERO)
