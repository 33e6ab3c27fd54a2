"""What is long over is forgotten with all that belongs to it; what is under way keeps everything, and goes on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID, WorkflowHandleAsync

from bot.domain.ids import DeliveryId
from bot.providers.store.port import Delivery
from bot.providers.store.sql import Store
from bot.workflow.journal import DbosJournal
from bot.workflow.retention import Forgotten, forget
from bot.workflow.values import INLINE_BYTES, Values
from tests.contracts.stores.builders import configure

OVER, LIVE = "task:1:1:1", "task:1:2:1"
LATER = datetime.now(UTC) + timedelta(days=1)
EARLIER = datetime.now(UTC) - timedelta(days=1)


def large(text: str) -> Callable[[], Awaitable[str]]:
    """An act that gives more than a row takes."""

    async def act() -> str:
        return text * INLINE_BYTES

    return act


@asynccontextmanager
async def engine(url: str, values: Values) -> AsyncIterator[None]:
    """Two tasks, each started by a route: one is over, one waits for a message."""
    configure(url)

    @DBOS.workflow(name="segment")
    async def segment(name: str) -> None:
        await DbosJournal(values).step("work", large(name[-3]), str)

    @DBOS.workflow(name="task")
    async def task(name: str) -> int:
        with SetWorkflowID(f"{name}:prepare"):
            await (await DBOS.start_workflow_async(segment, name)).get_result(polling_interval_sec=0.05)
        if name == LIVE:
            await DBOS.recv_async("inbox", timeout_seconds=60)
        return len(await DbosJournal(values).step("again", large(name[-3]), str))

    @DBOS.workflow(name="route")
    async def route(name: str) -> None:
        with SetWorkflowID(name):
            await DBOS.start_workflow_async(task, name)

    await asyncio.to_thread(DBOS.launch)
    try:
        for name in (OVER, LIVE):
            with SetWorkflowID(f"gh:{name}"):
                await (await DBOS.start_workflow_async(route, name)).get_result(polling_interval_sec=0.05)
        yield
    finally:
        await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=0, destroy_registry=True)


async def left() -> set[str]:
    return {flow.workflow_id for flow in await DBOS.list_workflows_async(load_input=False, load_output=False)}


async def ended(name: str) -> Any:
    handle: WorkflowHandleAsync[Any] = await DBOS.retrieve_workflow_async(name)
    return await handle.get_result(polling_interval_sec=0.05)


async def test_only_what_is_over_goes_and_what_waits_goes_on(store: Store, url: str, tmp_path: Path):
    values = Values(tmp_path / "values")
    async with engine(url, values):
        await ended(OVER)
        await ended(f"{LIVE}:prepare")
        for path in (tmp_path / "values").iterdir():
            os.utime(path, (EARLIER.timestamp(), EARLIER.timestamp()))
        values.pack(str, "2" * INLINE_BYTES)  # the live task names its value once more
        assert await forget(EARLIER - timedelta(days=1), store.deliveries, values) == Forgotten(0, 0, 0)
        assert await forget(LATER, store.deliveries, values) == Forgotten(0, 3, 1)
        assert await left() == {LIVE, f"{LIVE}:prepare"}
        assert await forget(LATER, store.deliveries, values) == Forgotten(0, 0, 0)
        await DBOS.send_async(LIVE, "go on", topic="inbox")
        assert await ended(LIVE) == INLINE_BYTES
        assert await forget(LATER, store.deliveries, values) == Forgotten(0, 1, 1)
        assert await left() == set()


async def test_bodies_go_by_the_day_they_came(store: Store, url: str, tmp_path: Path):
    old = Delivery(DeliveryId("old"), "issues", b"1", "2026-10-01T00:00:00+00:00")
    for each in (old, *(replace(old, id=DeliveryId(f"d-{n}"), body=b"%d-" % n) for n in range(700))):
        await store.deliveries.accept(each)
        await store.deliveries.finish(each.id, "done")
    async with engine(url, Values(tmp_path / "values")):
        gone = await forget(datetime(2026, 10, 2, tzinfo=UTC), store.deliveries, Values(tmp_path / "values"))
    assert gone == Forgotten(701, 0, 0)
    assert await store.deliveries.get(old.id) is None
    assert not await store.deliveries.accept(old)
