"""The workflows and queues of onboarding: one repository is indexed at a time, and none waits for the summaries of another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from dbos import DBOS, Queue, SetEnqueueOptions, SetWorkflowID

from bot.domain.ids import DeliveryId
from bot.providers.journal.port import Journal
from bot.workflow.journal import DbosJournal, TaskEnded
from bot.workflow.onboarding import Arrival, onboard, summarised
from bot.workflow.queues import Queues
from bot.workflow.services import Services
from bot.workflow.values import Values

log = structlog.get_logger()

_SUMMARISED_AT_ONCE = 10
"""Repositories whose batches are waited for, each by one run at a time, which asks twice a minute."""


class Arrivals:
    """Register workflows before the engine is launched, queues after."""

    def __init__(self, services: Services, values: Values, queues: Queues) -> None:
        self._services = services
        self._values = values
        self._queues = queues

    def register(self) -> None:
        """The workflows."""

        @DBOS.workflow(name="onboard")
        async def onboarding(packed: Any) -> str:
            arrival = self._values.unpack(Arrival, packed)
            note = await self._run("onboarded", onboard, arrival)
            await self.summarise(str(DBOS.workflow_id), arrival)
            return note

        @DBOS.workflow(name="summarise")
        async def summaries(packed: Any) -> str:
            return await self._run("summarised", summarised, self._values.unpack(Arrival, packed))

        self._onboard = onboarding
        self._summarise = summaries

    def queues(self, polling: float) -> dict[str, Queue]:
        """Nobody waits for these queues, and every look at one costs processor time."""
        rarely = 10 * polling
        return {
            "onboarding": DBOS.register_queue("onboarding", global_concurrency=1, polling_interval_sec=rarely),
            "summaries": DBOS.register_queue(
                "summaries",
                worker_concurrency=_SUMMARISED_AT_ONCE,
                partition_concurrency=1,
                polling_interval_sec=rarely,
            ),
        }

    async def onboard(self, delivery: DeliveryId, arrival: Arrival) -> None:
        """Queue it; the same delivery queues it once."""
        queue = await self._queues.named("onboarding")
        with SetWorkflowID(f"onboard:{arrival.repository}:{delivery}"):
            await queue.enqueue_async(self._onboard, self._values.pack(Arrival, arrival))

    async def summarise(self, cause: str, arrival: Arrival) -> None:
        """Queue summaries of what has none, once for each cause; nothing where no money is set aside for them."""
        if self._services.summaries is None:
            return
        queue = await self._queues.named("summaries")
        alone = SetEnqueueOptions(queue_partition_key=str(arrival.repository))
        with SetWorkflowID(f"summarise:{arrival.repository}:{cause}"), alone:
            await queue.enqueue_async(self._summarise, self._values.pack(Arrival, arrival))

    async def _run(
        self, done: str, act: Callable[[Arrival, Services, Journal], Awaitable[str]], arrival: Arrival
    ) -> str:
        """Nothing hangs on it: what fails is said in the log, and the first task indexes for itself."""
        try:
            note = await act(arrival, self._services, DbosJournal(self._values))
        except TaskEnded as end:
            note = f"failed: {end.ending.reason}"
        log.info(done, repository=arrival.repository, note=note)
        return note
