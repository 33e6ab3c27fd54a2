"""Approvals: as recorded, or not at all."""

from __future__ import annotations

import asyncio

from sqlalchemy import delete, update

from bot.domain.ids import (
    TaskId,
)
from bot.providers.store.schema import APPROVALS
from bot.providers.store.sql import Store
from tests.contracts.stores.builders import approval, together


class TestApprovals:
    async def test_the_last_approval_comes_back_whole(self, store: Store):
        task = TaskId("task:1:5:1")
        assert await store.approvals.last(task) is None
        await store.approvals.record(task, approval())
        await store.approvals.record(task, approval("b" * 64))
        await store.approvals.record(TaskId("task:1:6:1"), approval("c" * 64))
        assert await store.approvals.last(task) == approval("b" * 64)

    async def test_all_of_a_task_come_back_in_their_order(self, store: Store):
        task = TaskId("task:1:5:1")
        for digest in ("a", "b"):
            await store.approvals.record(task, approval(digest * 64))
        await store.approvals.record(TaskId("task:1:6:1"), approval("c" * 64))
        assert await store.approvals.of(task) == (approval("a" * 64), approval("b" * 64))

    async def test_recording_again_after_a_crash_adds_no_row(self, store: Store):
        task = TaskId("task:1:5:1")
        for digest in ("a", "a", "b", "a"):
            await store.approvals.record(task, approval(digest * 64))
        assert await store.approvals.last(task) == approval("a" * 64)
        count = await store.database.read(lambda c: len(c.execute(APPROVALS.select()).all()))
        assert count == 3

    async def test_the_log_shows_a_changed_or_missing_row(self, store: Store):
        for number in range(6):
            await store.approvals.record(TaskId("t"), approval(f"{number}" * 64))
        assert await store.approvals.broken_at() is None
        changed = update(APPROVALS).where(APPROVALS.c.seq == 5).values(task="u")
        await store.database.write(lambda c: c.execute(changed))
        assert await store.approvals.broken_at() == 5
        await store.database.write(lambda c: c.execute(delete(APPROVALS).where(APPROVALS.c.seq == 2)))
        assert await store.approvals.broken_at() == 3

    async def test_writers_at_once_keep_one_chain(self, store: Store):
        together(8, lambda n: asyncio.run(store.approvals.record(TaskId(f"t{n}"), approval(f"{n}" * 64))))
        assert await store.approvals.broken_at() is None
