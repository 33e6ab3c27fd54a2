"""Stored deliveries and the durable engine: one that a workflow failed with gets another, a bounded number of times."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bot.domain.ids import DeliveryId
from bot.providers.store.port import Delivery
from bot.providers.store.sql import Store, open_store, sqlite_url
from bot.workflow.engine import Engine, EngineSettings
from bot.workflow.services import Services
from tests.unit.stages.intake.builders import comment, issue, payload
from tests.unit.stages.intake.forges import Forges

DELIVERY = Delivery(
    DeliveryId("d-1"),
    "issue_comment",
    json.dumps(payload("created", issue=issue(), comment=comment("I agree."))).encode(),
    "2026-11-29T10:00:00+00:00",
)


@dataclass
class Breaking(Forges):
    """Fails with a fault that nobody expects, as often as it is told to."""

    faults: int = 0
    asked_for_us: int = field(default=0)

    async def app_id(self) -> int:
        self.asked_for_us += 1
        if self.asked_for_us <= self.faults:
            raise RuntimeError("a bug")
        return await super().app_id()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(sqlite_url(tmp_path / "store.db"))
    yield opened
    opened.close()


async def swept(store: Store, home: Path, faults: int) -> tuple[str, int]:
    """What became of the delivery after as many sweeps as it takes, and how often a decision was begun."""
    await store.deliveries.accept(DELIVERY)
    forges = Breaking(faults=faults)
    known = SimpleNamespace(
        home=home, deliveries=store.deliveries, tasks=store.tasks, forges=forges, label="agent", ledger=store.ledger
    )
    settings = EngineSettings(f"sqlite:///{home / 'engine.db'}", "test", polling_seconds=0.05)
    engine = Engine(cast(Services, known), settings, Forges())
    await asyncio.to_thread(engine.launch)
    try:
        for _ in range(100):
            if not await engine.sweep():
                break
            await asyncio.sleep(0.1)
    finally:
        await asyncio.to_thread(engine.close)
    with sqlite3.connect(home / "store.db") as connection:
        (note,) = connection.execute("SELECT note FROM deliveries").fetchone()
    return note, forges.asked_for_us


@pytest.mark.parametrize("faults", [0, 1, 2])
async def test_a_delivery_that_a_workflow_failed_with_gets_another(faults: int, store: Store, tmp_path: Path):
    assert await swept(store, tmp_path, faults) == ("nothing: no command", faults + 1)


async def test_a_delivery_that_always_fails_is_given_up_and_that_is_noted(store: Store, tmp_path: Path):
    note, asked = await swept(store, tmp_path, 99)
    assert note == "given up after 3 attempts; the log says why"
    assert asked == 3
