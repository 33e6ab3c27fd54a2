"""What a crash left goes on while the engine still starts: launching recovers workflows before it has registered the queues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from sqlalchemy import create_engine, make_url, text

from bot.domain.ids import DeliveryId
from bot.providers.store.port import Deliveries, Delivery
from bot.providers.store.sql import Store, open_store, sqlite_url
from bot.workflow.engine import Engine, EngineSettings
from bot.workflow.services import Services
from tests import postgres
from tests.unit.stages.intake.builders import payload
from tests.unit.stages.intake.forges import Forges, OutOfReach

DELIVERY = Delivery(
    DeliveryId("d-1"),
    "installation",
    json.dumps(payload("created", repositories=[{"id": 3}], repository=None)).encode(),
    "2026-11-29T10:00:00+00:00",
)


@dataclass
class Reading:
    """The stored deliveries; says when a workflow reads one, and answers only if told to."""

    stored: Deliveries
    answers: bool = False
    asked: bool = False

    def __getattr__(self, name: str) -> object:
        return getattr(self.stored, name)

    async def get(self, delivery: DeliveryId) -> Delivery | None:
        self.asked = True
        if not self.answers:
            await asyncio.Event().wait()
        return await self.stored.get(delivery)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(sqlite_url(tmp_path / "store.db"))
    yield opened
    opened.close()


@pytest.fixture
def url() -> Iterator[str]:
    with postgres.server() as server, postgres.database(server) as opened:
        yield opened


async def aside(act: Callable[[], None]) -> None:
    """In a thread that no engine takes with it when it ends."""
    with ThreadPoolExecutor(1) as thread:
        await asyncio.get_running_loop().run_in_executor(thread, act)


async def holds(what: str, probe: Callable[[], bool]) -> None:
    for _ in range(300):
        if probe():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{what} never happened")


async def test_a_recovered_workflow_waits_for_the_queue_it_needs(store: Store, tmp_path: Path, url: str):
    def engine(deliveries: Reading, forges: Forges) -> Engine:
        known = SimpleNamespace(
            home=tmp_path,
            deliveries=deliveries,
            tasks=store.tasks,
            forges=forges,
            label="agent",
            ledger=store.ledger,
            git_protocols="http",
            summaries=None,
        )
        return Engine(cast(Services, known), EngineSettings(url, "test", polling_seconds=0.05), Forges())

    await store.deliveries.accept(DELIVERY)
    before, after, forges = Reading(store.deliveries), Reading(store.deliveries, answers=True), OutOfReach()
    dying = engine(before, Forges())
    await aside(dying.launch)
    try:
        await dying.sweep()
        await holds("the first look", lambda: before.asked)
    finally:
        await aside(dying.close)

    restarted, outside = engine(after, forges), create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    try:
        with outside.begin() as connection:
            connection.execute(text("LOCK TABLE dbos.queues IN EXCLUSIVE MODE"))  # nobody registers a queue now
            launching = asyncio.create_task(aside(restarted.launch))
            await holds("the look after the restart", lambda: after.asked)
            await asyncio.sleep(1)
            assert not launching.done()
        await launching
        await holds("the onboarding", lambda: forges.opened == [(9, 3)])
    finally:
        outside.dispose()
        await aside(restarted.close)
