"""Requests: what was asked for, by whom, when."""

from __future__ import annotations

import time

from bot.domain.ids import (
    RepositoryId,
    UserId,
)
from bot.domain.money import MicroUsd
from bot.domain.spending import Settled, Usage
from bot.domain.task import Ending, Stage
from bot.providers.store.sql import Store
from tests.contracts.stores.builders import BUDGET, attempt, started

HOUR, DAY = 3_600, 86_400
NOW = int(time.time()) + 60
"""A minute from now: whatever a test does is behind it."""


class TestRequests:
    async def test_what_one_person_asked_for_in_an_hour_and_all_in_a_day(self, store: Store):
        ana, bob, here = UserId(1), UserId(2), RepositoryId(1)
        for key, user, where, ago in (
            ("a", ana, here, 10),
            ("b", ana, RepositoryId(2), HOUR - 1),
            ("c", ana, here, HOUR + 1),
            ("d", bob, here, DAY - 1),
            ("e", bob, here, DAY + 1),
        ):
            await store.requests.note(key, user=user, repository=where, at=NOW - ago)
        tally = await store.requests.tally(ana, here, at=NOW)
        assert (tally.by_user_hour, tally.in_repository_day) == (2, 3)
        assert (await store.requests.tally(ana, here, at=NOW, but="a")).by_user_hour == 1

    async def test_the_same_request_counts_once(self, store: Store):
        for at in (NOW - 5, NOW - 4):
            await store.requests.note("a", user=UserId(1), repository=RepositoryId(1), at=at)
        assert (await store.requests.tally(UserId(1), RepositoryId(1), at=NOW)).by_user_hour == 1

    async def test_money_of_a_day_is_what_was_spent_and_what_working_tasks_may_still_spend(self, store: Store):
        task = await started(store)
        await store.ledger.open(attempt(1, 300, task=task), budget=BUDGET)
        await store.ledger.settle(attempt(1, 300, task=task), Settled(Usage(), MicroUsd(120), "ok"))
        await store.ledger.open(attempt(2, 50, task=task), budget=BUDGET)
        tally = await store.requests.tally(UserId(1), RepositoryId(1), at=NOW)
        assert (tally.spent_day, tally.set_aside) == (170, BUDGET - 170)
        await store.tasks.move(task, Stage.IN_REVIEW)
        assert (await store.requests.tally(UserId(1), RepositoryId(1), at=NOW)).set_aside == 0
        assert (await store.requests.tally(UserId(1), RepositoryId(1), at=NOW + 2 * DAY)).spent_day == 0

    async def test_tasks_that_live_are_found_until_they_end(self, store: Store):
        first, second = await started(store), await started(store, trigger="comment:2", number=6)
        assert [record.spec.id for record in await store.tasks.living()] == [first, second]
        await store.tasks.end(first, Ending(Stage.CANCELLED, "x"))
        assert [record.spec.id for record in await store.tasks.living()] == [second]
