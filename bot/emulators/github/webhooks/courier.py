"""Signed deliveries: sent once, logged, sent again only when asked."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx

from bot.emulators.github.clock import Clock
from bot.emulators.github.faults import Fault, Faults
from bot.emulators.github.identifiers import Identifiers
from bot.emulators.github.records import App

_LARGEST = 25 * 1024 * 1024
HOLD = "hold:"
"""As webhook address: deliveries are logged for a test to carry, and not sent."""


@dataclass(slots=True, eq=False)
class Delivery:
    id: int
    guid: str
    event: str
    action: str | None
    body: bytes
    installation_id: int | None
    repository_id: int | None
    delivered_at: datetime
    redelivery: bool = False
    duration: float = 0.0
    status: str = "pending"
    status_code: int = 0
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str = ""
    url: str = ""


class Courier:
    """Sends every delivery in a task of its own: order is likely but not promised, as with the real service."""

    def __init__(self, clock: Clock, ids: Identifiers, faults: Faults, app: App, timeout_seconds: float) -> None:
        self._clock = clock
        self._ids = ids
        self._faults = faults
        self._app = app
        self._timeout = timeout_seconds
        self._client: httpx.AsyncClient | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[Delivery] = []
        self.log: list[Delivery] = []

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*list(self._tasks), return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def settle(self) -> None:
        """Wait until nothing is on its way."""
        while self._tasks:
            await asyncio.gather(*list(self._tasks))

    def send(self, event: str, payload: Mapping[str, Any]) -> None:
        """Queue one event under a fresh guid; nothing is sent while the App has no webhook address."""
        if self._app.webhook_url is None:
            return
        body = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        if len(body) > _LARGEST:
            return
        action = payload.get("action")
        delivery = Delivery(
            id=self._ids.number("D"),
            guid=str(uuid.uuid4()),
            event=event,
            action=action,
            body=body,
            installation_id=(payload.get("installation") or {}).get("id"),
            repository_id=(payload.get("repository") or {}).get("id"),
            delivered_at=self._clock.now(),
        )
        self._dispatch(delivery, self._faults.for_delivery(f"{event}.{action}" if action else event))

    def again(self, old: Delivery) -> Delivery:
        """Redeliver: a new id, the same guid, the same bytes."""
        delivery = Delivery(
            id=self._ids.number("D"),
            guid=old.guid,
            event=old.event,
            action=old.action,
            body=old.body,
            installation_id=old.installation_id,
            repository_id=old.repository_id,
            delivered_at=self._clock.now(),
            redelivery=True,
        )
        self._start(delivery)
        return delivery

    def _dispatch(self, delivery: Delivery, faults: list[Fault]) -> None:
        kinds = {fault.kind for fault in faults}
        if "reorder" in kinds:
            self._held.append(delivery)
            return
        if "drop" in kinds:
            delivery.status, delivery.status_code = "failed to connect to host", 0
            self.log.append(delivery)
            return
        self._start(delivery, delay=sum(fault.seconds for fault in faults if fault.kind == "delay"))
        if "duplicate" in kinds:
            self._start(delivery)
        held, self._held = self._held, []
        for earlier in held:
            self._start(earlier, delay=0.05)

    def _start(self, delivery: Delivery, delay: float = 0.0) -> None:
        if delivery not in self.log:
            self.log.append(delivery)
        if self._app.webhook_url == HOLD:
            return
        task = asyncio.get_running_loop().create_task(self._deliver(delivery, delay))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, delivery: Delivery, delay: float) -> None:
        if delay:
            await asyncio.sleep(delay)
        delivery.url = self._app.webhook_url or ""
        delivery.request_headers = self._headers(delivery)
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False, follow_redirects=False, verify=False)  # noqa: S501 - loopback
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._client.post(
                    delivery.url, content=delivery.body, headers=delivery.request_headers, timeout=self._timeout
                )
        except TimeoutError:
            delivery.status, delivery.status_code = "timed out", 504
        except httpx.TimeoutException:
            delivery.status, delivery.status_code = "timed out", 504
        except (httpx.HTTPError, httpx.InvalidURL):
            delivery.status, delivery.status_code = "failed to connect to host", 502
        else:
            ok = response.is_success
            delivery.status = "OK" if ok else f"Invalid HTTP Response: {response.status_code}"
            delivery.status_code = response.status_code
            delivery.response_headers = dict(response.headers)
            delivery.response_body = response.text[:10_000]
        delivery.duration = round(time.monotonic() - began, 3)

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        secret = self._app.webhook_secret.encode()
        return {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/0a1b2c3",
            "X-GitHub-Delivery": delivery.guid,
            "X-GitHub-Event": delivery.event,
            "X-GitHub-Hook-ID": str(self._app.hook_id),
            "X-GitHub-Hook-Installation-Target-ID": str(self._app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature": f"sha1={hmac.new(secret, delivery.body, hashlib.sha1).hexdigest()}",
            "X-Hub-Signature-256": f"sha256={hmac.new(secret, delivery.body, hashlib.sha256).hexdigest()}",
        }
