"""The durable engine carries an installation of the App to a workflow of its own for each repository."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bot.domain.ids import DeliveryId
from bot.providers.store.port import Delivery
from bot.providers.store.sql import open_store, sqlite_url
from bot.workflow.engine import Engine, EngineSettings
from bot.workflow.services import Services
from tests.unit.stages.intake.builders import payload
from tests.unit.stages.intake.forges import Forges, OutOfReach

DELIVERY = Delivery(
    DeliveryId("d-1"),
    "installation",
    json.dumps(payload("created", repositories=[{"id": 3}, {"id": 4}], repository=None)).encode(),
    "2026-11-29T10:00:00+00:00",
)


@pytest.mark.parametrize("paid", [False, True])
async def test_each_repository_of_an_installation_is_onboarded_once_and_then_summarised_where_that_is_paid_for(
    tmp_path: Path, paid: bool
):
    store = open_store(sqlite_url(tmp_path / "store.db"))
    await store.deliveries.accept(DELIVERY)
    forges = OutOfReach()
    known = SimpleNamespace(
        home=tmp_path,
        deliveries=store.deliveries,
        tasks=store.tasks,
        forges=forges,
        label="agent",
        ledger=store.ledger,
        git_protocols="http",
        summaries=object() if paid else None,
    )
    settings = EngineSettings(f"sqlite:///{tmp_path / 'engine.db'}", "test", polling_seconds=0.05)
    engine = Engine(cast(Services, known), settings, Forges())
    await asyncio.to_thread(engine.launch)
    try:
        for _ in range(150):
            await engine.sweep()
            if len(forges.opened) == (4 if paid else 2):
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)
    finally:
        await asyncio.to_thread(engine.close)
        store.close()
    assert sorted(forges.opened) == sorted([(9, 3), (9, 4)] * (2 if paid else 1))
