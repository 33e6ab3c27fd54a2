"""A web application on a store of its own, and GitHub as its caller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from bot.domain.errors import Transient
from bot.domain.money import MicroUsd
from bot.providers.store.port import Delivery, TaskRecord
from bot.stages.intake.signature import signature
from bot.web.app import WebSettings, build
from tests.unit.stages.intake.builders import issue, payload

SECRET = "a secret for tests"
OLD = "the secret before"
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
    """Tasks and what they cost, as the page reads them."""

    records: tuple[TaskRecord, ...] = ()
    costs: dict[str, MicroUsd] = field(default_factory=dict)
    down: bool = False

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
    given: dict[str, Any] = {"secrets": (SECRET, OLD), "tasks": shelf, "ledger": shelf} | changes
    transport = httpx.ASGITransport(build(receiver, WebSettings(**given)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://pullwright.test") as client:
        yield World(client, receiver, shelf)
