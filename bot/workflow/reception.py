"""The desk behind the door: stores what comes, so that it can be acknowledged, and gives a workflow to what something follows from.

Deliveries come in bursts, and most lead to nothing (somebody talks, somebody pushes elsewhere). A workflow for each would take the
time in which GitHub waits for its answers, so the desk looks first. What a crash leaves here is stored and unfinished: the sweep
finds it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from bot.domain.action import Action, Nothing
from bot.domain.errors import Transient
from bot.domain.ids import DeliveryId
from bot.providers.forge.port import ForgeGone, ForgeRefused, Forges
from bot.providers.store.port import Delivery
from bot.stages.intake.decide import IntakeSettings
from bot.stages.intake.run import glance
from bot.workflow.services import Services

log = structlog.get_logger()


_BLIND_SECONDS = 30.0
"""For so long nothing is looked at after GitHub did not say who we are: the workflows wait for it in their own time."""


class Reception:
    """Belongs to the event loop of the door, and so does `forges`: workflows have another loop and connections of their own.

    `queue` hands a delivery to a workflow; doing so twice is harmless.
    """

    def __init__(self, services: Services, forges: Forges, queue: Callable[[DeliveryId], Awaitable[None]]) -> None:
        self._services = services
        self._forges = forges
        self._queue = queue
        self._blind_until = 0.0
        self._line: asyncio.Queue[DeliveryId] = asyncio.Queue()
        self.waiting: set[DeliveryId] = set()
        """What is stored and not looked at yet."""

    async def accept(self, delivery: Delivery) -> bool:
        """True once it is stored; False for one that is here already."""
        fresh = await self._services.deliveries.accept(delivery)
        if fresh:
            self.waiting.add(delivery.id)
            self._line.put_nowait(delivery.id)
        return fresh

    async def work(self) -> None:
        """Look at what waits, one after another. A fault ends it; whoever runs it begins it anew, and the sweep finds what it left."""
        while True:
            delivery = await self._line.get()
            try:
                await self._look_at(delivery)
            finally:
                self.waiting.discard(delivery)

    async def _look_at(self, identifier: DeliveryId) -> None:
        action = await self._glance(identifier)
        if isinstance(action, Nothing):
            await self._services.deliveries.finish(identifier, f"nothing: {action.reason}")
        else:
            await self._queue(identifier)

    async def _glance(self, identifier: DeliveryId) -> Action | None:
        services = self._services
        delivery = await services.deliveries.get(identifier)
        if delivery is None or time.monotonic() < self._blind_until:
            return None
        settings = IntakeSettings(label=services.label)
        try:
            return await glance(delivery, forges=self._forges, tasks=services.tasks, settings=settings)
        except (Transient, ForgeGone, ForgeRefused) as fault:
            log.warning("deliveries go to workflows unseen for a while", reason=str(fault)[:200])
            self._blind_until = time.monotonic() + _BLIND_SECONDS
            return None
