"""What `/metrics` tells can be read by Prometheus, is whole or not there, and names nobody."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from syrupy.assertion import SnapshotAssertion

from bot.domain.errors import Transient
from bot.domain.figures import ModelFigures, QueueFigures, StoreFigures
from bot.domain.money import MicroUsd
from bot.domain.task import Stage
from tests.unit.web.callers import World, web

MODEL = ModelFigures(
    "claude-x", answered=12, failed=2, unheard=1, under_way=3, spent=MicroUsd(1_250_001), day=MicroUsd(73_700)
)
FIGURES = StoreFigures(
    waiting=2,
    waiting_since="2026-11-30T11:58:30.500+00:00",
    tasks=dict.fromkeys(Stage, 0) | {Stage.CODING: 3, Stage.READY: 1, Stage.LANDED: 40},
    models=(MODEL, replace(MODEL, model='odd"model\n')),
    summaries=MicroUsd(330_000),
)
QUEUES = (QueueFigures("work", waiting=4, running=4, oldest=61.5), QueueFigures("intake", 0, 0, 0.0))


def values(answer: httpx.Response) -> Mapping[tuple[str, str], float]:
    """Samples by name and the value of their labels, as Prometheus' own parser reads them."""
    return {
        (sample.name.removeprefix("pullwright_"), "/".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def scraped(world: World) -> Mapping[tuple[str, str], float]:
    answer = await world.client.get("/metrics")
    assert answer.status_code == 200
    return values(answer)


async def test_the_whole_page(snapshot: SnapshotAssertion):
    async with web() as world:
        world.shelf.figures, world.shelf.engine, world.shelf.sandboxes = FIGURES, QUEUES, 5
        answer = await world.client.get("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert answer.text == snapshot


async def test_the_figures_are_those_of_the_store_the_engine_and_the_sandboxes():
    async with web() as world:
        world.shelf.figures, world.shelf.engine, world.shelf.sandboxes = FIGURES, QUEUES, 5
        told = await scraped(world)
    assert told["deliveries_waiting", ""] == 2
    assert told["deliveries_oldest_waiting_seconds", ""] == 89.5
    assert (told["tasks", "coding"], told["tasks", "ready"], told["tasks", "queued"]) == (3, 1, 0)
    assert (told["tasks_ended_total", "landed"], told["tasks_ended_total", "over_budget"]) == (40, 0)
    assert ("tasks", "landed") not in told
    assert told["spent_dollars_total", "claude-x"] == 1.250001
    assert told["spent_last_day_dollars", 'odd"model\n'] == 0.0737
    assert told["model_calls_total", "claude-x/failed"] == 2
    assert told["model_calls_under_way", "claude-x"] == 3
    assert told["summaries_spent_dollars_total", ""] == 0.33
    assert (told["queue_waiting", "work"], told["queue_oldest_wait_seconds", "work"]) == (4, 61.5)
    assert told["sandboxes_live", ""] == 5


async def test_deliveries_are_counted_by_what_became_of_them():
    async with web() as world:
        await world.deliver()
        await world.deliver()
        await world.deliver({"zen": "Design for failure."}, "ping")
        await world.deliver({}, "star")
        await world.deliver(headers={"x-hub-signature-256": None})
        await world.deliver(headers={"x-hub-signature-256": "sha256=" + "0" * 64})
        await world.deliver(headers={"content-encoding": "gzip"})
        await world.deliver(headers={"content-type": "text/plain"})
        await world.deliver(headers={"x-github-delivery": "a b"})
        await world.deliver(b'{"a": 1, "a": 2}')
        world.receiver.fault = Transient("full")
        await world.deliver()
        told = await scraped(world)
    counted = {label: number for (name, label), number in told.items() if name.startswith("deliveries_") and number}
    assert counted == {
        "accepted": 1,
        "duplicate": 1,
        "pong": 1,
        "ignored": 1,
        "unsigned": 1,
        "signature": 1,
        "encoding": 1,
        "content_type": 1,
        "nameless": 1,
        "body": 1,
        "not_stored": 1,
    }


async def test_a_store_that_fails_gives_no_half_answer():
    async with web() as world:
        world.shelf.down = True
        answer = await world.client.get("/metrics")
        assert (answer.status_code, answer.text) == (503, "The store does not answer now.\n")


async def test_without_the_sandbox_service_their_number_is_not_told():
    async with web() as world:
        world.shelf.sandboxes = None
        told = await scraped(world)
    assert told["sandboxes_answer", ""] == 0
    assert ("sandboxes_live", "") not in told


@pytest.mark.parametrize(("password", "status"), [(b"any:hush", 200), (b"any:hus", 401), (None, 401)])
async def test_the_password_of_the_dashboard_keeps_strangers_out(password: bytes | None, status: int):
    async with web(password="hush") as world:
        headers = {} if password is None else {"authorization": "Basic " + base64.b64encode(password).decode()}
        assert (await world.client.get("/metrics", headers=headers)).status_code == status


async def test_without_sources_there_is_no_such_page():
    async with web(metrics=None) as world:
        assert (await world.client.get("/metrics")).status_code == 404
