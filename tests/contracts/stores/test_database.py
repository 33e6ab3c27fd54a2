"""What both databases must do when they are slow, full, shared or gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from bot.domain.errors import Transient
from bot.providers.llm.port import Ledger
from bot.providers.store.port import Approvals, Deliveries, Tasks
from bot.providers.store.schema import APPROVALS
from bot.providers.store.sql import Store, open_store, sqlite_url
from tests.contracts.stores.builders import started


def test_the_store_fits_the_ports(store: Store):
    deliveries: Deliveries = store.deliveries
    tasks: Tasks = store.tasks
    approvals: Approvals = store.approvals
    ledger: Ledger = store.ledger
    assert all((deliveries, tasks, approvals, ledger))


class TestDatabase:
    async def test_everything_is_there_after_a_restart(self, url: str):
        first = open_store(url)
        task = await started(first)
        first.close()
        second = open_store(url)
        assert await second.tasks.get(task) is not None
        second.close()

    async def test_a_failed_write_leaves_nothing(self, store: Store):
        def work(connection: Any) -> None:
            connection.execute(APPROVALS.insert().values(task="t", approval="{}", chain="c"))
            raise RuntimeError("crash")

        with pytest.raises(RuntimeError, match="crash"):
            await store.database.write(work)
        assert await store.approvals.broken_at() is None

    async def test_of_many_writes_at_once_each_stands_or_falls_alone(self, store: Store):
        def work(number: int) -> Any:
            def add(connection: Any) -> int:
                connection.execute(APPROVALS.insert().values(task="t", approval=f"{number}", chain=f"{number}"))
                if number % 3 == 0:
                    raise ValueError(number)
                return number

            return store.database.write(add)

        outcomes = await asyncio.gather(*map(work, range(30)), return_exceptions=True)
        assert [isinstance(outcome, ValueError) for outcome in outcomes] == [number % 3 == 0 for number in range(30)]
        rows = await store.database.read(lambda c: c.execute(APPROVALS.select()).all())
        assert sorted(int(row.approval) for row in rows) == [number for number in range(30) if number % 3]

    async def test_what_is_told_done_is_kept_and_what_is_told_failed_is_not(self, store: Store):
        def work(number: int) -> Any:
            def add(connection: Any) -> int:
                connection.execute(APPROVALS.insert().values(task="t", approval=f"{number}", chain=f"{number}"))
                if number == 7:
                    raise OperationalError("INSERT", {}, OSError("disk is full"))
                return number

            return store.database.write(add)

        outcomes = await asyncio.gather(*map(work, range(20)), return_exceptions=True)
        assert isinstance(outcomes[7], Transient)
        rows = await store.database.read(lambda c: c.execute(APPROVALS.select()).all())
        assert sorted(int(row.approval) for row in rows) == [each for each in outcomes if isinstance(each, int)]

    async def test_a_database_that_cannot_serve_is_transient(self, store: Store):
        def work(_: Any) -> None:
            raise OperationalError("INSERT", {}, OSError("disk is full"))

        with pytest.raises(Transient):
            await store.database.write(work)

    def test_an_unreachable_file_is_transient(self, tmp_path: Path):
        with pytest.raises(Transient):
            open_store(sqlite_url(tmp_path / "missing" / "store.db"))

    def test_memory_is_refused(self):
        with pytest.raises(ValueError, match="needs a file"):
            open_store("sqlite://")
