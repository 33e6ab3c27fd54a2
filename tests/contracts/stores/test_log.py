"""The log as an audit reads it, on both databases; it creates nothing and refuses a database that is not the product's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bot.domain.errors import Transient
from bot.domain.ids import DeliveryId, UserId
from bot.domain.task import Ending, Stage
from bot.providers.store.log import SqlLog
from bot.providers.store.port import ApprovedTask
from bot.providers.store.sql import Store
from tests.contracts.stores.builders import ANA, approval, delivery, started


@pytest.fixture
def log(url: str) -> Iterator[SqlLog]:
    opened = SqlLog(url)
    yield opened
    opened.close()


async def test_approvals_come_with_their_tasks_in_order(store: Store, log: SqlLog):
    first, second = await started(store), await started(store, trigger="comment:2", number=6)
    other = replace(approval(), reviewer=replace(ANA, id=UserId(8)))
    await store.approvals.record(second, approval())
    await store.approvals.record(first, other)
    await store.tasks.end(second, Ending(Stage.LANDED, "landed"))
    rows = await log.approvals()
    assert [(row.task, row.approval, row.landed) for row in rows] == [(second, approval(), True), (first, other, False)]
    assert isinstance(rows[0], ApprovedTask)
    assert (rows[0].requester, rows[0].repository) == (ANA, "acme/shop")
    assert await log.broken_at() is None


async def test_tasks_that_landed_without_an_approval(store: Store, log: SqlLog):
    first, second = await started(store), await started(store, trigger="comment:2", number=6)
    await store.approvals.record(first, approval())
    for task in (first, second):
        await store.tasks.end(task, Ending(Stage.LANDED, "landed"))
    assert await log.landed_without() == (second,)


async def test_when_deliveries_were_received(store: Store, log: SqlLog):
    for number, moment in enumerate(("2026-01-02T00:00:00+00:00", "2026-01-01T00:00:00+00:00")):
        sent = delivery(f"d-{number}", b"%d" % number)
        await store.deliveries.accept(replace(sent, id=DeliveryId(f"d-{number}"), received_at=moment))
    assert await log.received() == ("2026-01-02T00:00:00+00:00", "2026-01-01T00:00:00+00:00")


async def test_a_database_without_the_products_tables_is_none(log: SqlLog):
    for read in (log.approvals, log.broken_at, log.landed_without, log.received):
        with pytest.raises(Transient):
            await read()
