"""A web application on a store of its own, and GitHub as its caller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from bot.domain.errors import Transient
from bot.domain.figures import QueueFigures, StoreFigures
from bot.domain.ids import RepositoryId
from bot.domain.money import ZERO, MicroUsd
from bot.domain.task import Stage
from bot.providers.store.port import Delivery, TaskRecord
from bot.providers.store.summaries import Account
from bot.stages.intake.signature import signature
from bot.web.app import WebSettings, build
from bot.web.metrics import Sources
from tests.unit.stages.intake.builders import issue, payload

SECRET = "a secret for tests"
OLD = "the secret before"
NONE = StoreFigures(0, None, dict.fromkeys(Stage, 0), (), ZERO)
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LABELLED = payload("labeled", issue=issue(), label={"name": "agent"})


@dataclass
class Receiver:
    """Keeps deliveries in memory; `fault` is raised instead when set."""

    kept: list[Delivery] = field(default_factory=list)
    fault: Exception | None = None

    async def accept(self, delivery: Delivery) -> bool:
        if self.fault is not None:
            raise self.fault
        fresh = all(delivery.id != each.id and delivery.body != each.body for each in self.kept)
        self.kept.append(delivery)
        return fresh


@dataclass
class Shelf:
    """Tasks, what they cost, and the figures of all, as the pages read them. `sandboxes` None: their service does not answer."""

    records: tuple[TaskRecord, ...] = ()
    costs: dict[str, MicroUsd] = field(default_factory=dict)
    down: bool = False
    figures: StoreFigures = NONE
    engine: tuple[QueueFigures, ...] = ()
    sandboxes: int | None = 0

    accounts: tuple[Account, ...] = ()
    names: dict[RepositoryId, str] = field(default_factory=dict)

    async def summary_accounts(self) -> tuple[Account, ...]:
        return self.accounts

    async def repository_names(self, repositories: tuple[RepositoryId, ...]) -> Mapping[RepositoryId, str]:
        return {number: name for number, name in self.names.items() if number in repositories}

    async def read(self) -> StoreFigures:
        if self.down:
            raise Transient("locked")
        return self.figures

    async def queues(self) -> tuple[QueueFigures, ...]:
        return self.engine

    async def live(self) -> int:
        if self.sandboxes is None:
            raise Transient("no answer")
        return self.sandboxes

    async def listing(self, limit: int = 100) -> tuple[TaskRecord, ...]:
        if self.down:
            raise Transient("locked")
        return self.records[:limit]

    async def spent(self, tasks: tuple[str, ...]) -> Mapping[str, MicroUsd]:
        return {task: cost for task, cost in self.costs.items() if task in tasks}


@dataclass
class World:
    """The application, what it was given, and a client that speaks to it."""

    client: httpx.AsyncClient
    receiver: Receiver
    shelf: Shelf

    async def deliver(
        self,
        body: bytes | Mapping[str, Any] = LABELLED,
        event: str | None = "issues",
        headers: Mapping[str, str | None] | None = None,
        content: Any = None,
    ) -> httpx.Response:
        """Send as GitHub sends; `headers` replace or, with None, remove."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent: dict[str, str | None] = {
            "content-type": "application/json",
            "x-github-event": event,
            "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            "x-hub-signature-256": signature(SECRET, raw),
            **(headers or {}),
        }
        given = {name: value for name, value in sent.items() if value is not None}
        return await self.client.post("/webhook", content=raw if content is None else content, headers=given)


@asynccontextmanager
async def web(**changes: Any) -> AsyncIterator[World]:
    """The application with these settings."""
    receiver, shelf = Receiver(), Shelf()
    sources = Sources(shelf, shelf, shelf, now=lambda: NOON)
    given: dict[str, Any] = {"secrets": (SECRET, OLD), "tasks": shelf, "ledger": shelf, "metrics": sources} | changes
    transport = httpx.ASGITransport(build(receiver, WebSettings(**given)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://pullwright.test") as client:
        yield World(client, receiver, shelf)
