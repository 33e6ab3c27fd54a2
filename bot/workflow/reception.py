"""The desk behind the door: stores what comes, so that it can be acknowledged, and gives a workflow to what something follows from.

Deliveries come in bursts, and most lead to nothing (somebody talks, somebody pushes elsewhere). A workflow for each would take the
time in which GitHub waits for its answers, so the desk looks first: at several together, in a moment in which nothing comes, or
a few each second without one. What a crash leaves here is stored and unfinished: the sweep finds it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
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

_PAUSE, _PAUSES = 0.05, 20
"""A pause in which nothing comes is a lull, for all that waits; after so many without one, a few are looked at."""

_TOGETHER = 64
"""So many at most are looked at without a lull, and finished in one transaction."""

_APART = 1 / _TOGETHER
"""Seconds between looks without a lull: a run of them would keep every answer of that moment waiting."""

_HELD_BYTES = 8 * 1024 * 1024
"""Bodies kept at hand until they are looked at; those beyond are read from the store again."""


class _Held:
    """What waits, in its order, with as many of the bodies as there is room for."""

    def __init__(self) -> None:
        self._line: deque[DeliveryId] = deque()
        self._bodies: dict[DeliveryId, Delivery] = {}
        self._room = _HELD_BYTES
        self._some = asyncio.Event()

    def add(self, delivery: Delivery) -> None:
        if len(delivery.body) <= self._room:
            self._room -= len(delivery.body)
            self._bodies[delivery.id] = delivery
        self._line.append(delivery.id)
        self._some.set()

    def __len__(self) -> int:
        return len(self._line)

    async def some(self) -> None:
        """Returns when something waits."""
        await self._some.wait()

    def next(self) -> tuple[DeliveryId, Delivery | None] | None:
        """The one that waits longest, without its body when there was no room for it; None when nothing waits."""
        if not self._line:
            return None
        identifier = self._line.popleft()
        if not self._line:
            self._some.clear()
        delivery = self._bodies.pop(identifier, None)
        self._room += len(delivery.body) if delivery is not None else 0
        return identifier, delivery


class Reception:
    """Belongs to the event loop of the door, and so does `forges`: workflows have another loop and connections of their own.

    `queue` hands a delivery to a workflow; doing so twice is harmless.
    """

    def __init__(self, services: Services, forges: Forges, queue: Callable[[DeliveryId], Awaitable[None]]) -> None:
        self._services = services
        self._forges = forges
        self._queue = queue
        self._blind_until = 0.0
        self._storing = self._arrived = 0
        self._held = _Held()
        self.waiting: set[DeliveryId] = set()
        """What is stored and not looked at yet."""

    async def accept(self, delivery: Delivery) -> bool:
        """True once it is stored; False for one that is here already."""
        self._storing += 1
        self._arrived += 1
        try:
            fresh = await self._services.deliveries.accept(delivery)
        finally:
            self._storing -= 1
        if fresh:
            self.waiting.add(delivery.id)
            self._held.add(delivery)
        return fresh

    async def work(self) -> None:
        """Look at what waits, in its order. A fault ends it; whoever runs it begins it anew, and the sweep finds what it left."""
        while True:
            await self._held.some()
            if not await self._lull():
                await self._look_at_some(_APART)
                continue
            for _ in range(0, len(self._held), _TOGETHER):
                await self._look_at_some()

    async def _lull(self) -> bool:
        """Whether nothing came for a moment. Answers go first: each look would keep one waiting."""
        for _ in range(_PAUSES):
            before = self._arrived
            await asyncio.sleep(_PAUSE)
            if self._arrived == before and not self._storing:
                return True
        return False

    async def _look_at_some(self, apart: float = 0) -> None:
        """A fault costs only the delivery it came with: what was decided before is finished, what comes after goes on waiting."""
        looked: list[DeliveryId] = []
        notes: dict[DeliveryId, str] = {}
        try:
            while len(looked) < _TOGETHER and (one := self._held.next()) is not None:
                identifier, delivery = one
                looked.append(identifier)
                action = await self._glance(identifier, delivery)
                if isinstance(action, Nothing):
                    notes[identifier] = f"nothing: {action.reason}"
                else:
                    await self._queue(identifier)
                await asyncio.sleep(apart)
        finally:
            try:
                await self._services.deliveries.finish_all(notes)
            finally:
                self.waiting.difference_update(looked)

    async def _glance(self, identifier: DeliveryId, delivery: Delivery | None) -> Action | None:
        services = self._services
        if time.monotonic() < self._blind_until:
            return None
        delivery = delivery or await services.deliveries.get(identifier)
        if delivery is None:
            return None
        settings = IntakeSettings(label=services.label)
        try:
            return await glance(delivery, forges=self._forges, tasks=services.tasks, settings=settings)
        except (Transient, ForgeGone, ForgeRefused) as fault:
            log.warning("deliveries go to workflows unseen for a while", reason=str(fault)[:200])
            self._blind_until = time.monotonic() + _BLIND_SECONDS
            return None
