"""DBOS: configuration, registration, queues, recovery. Workflows are closures over one bundle of services; there are no globals."""

from __future__ import annotations

import logging
import sqlite3
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import structlog
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error

from bot.domain.figures import QueueFigures
from bot.domain.ids import DeliveryId, TaskId
from bot.domain.task import Ending, TaskSpec
from bot.providers.forge.port import Forges
from bot.providers.store.port import Delivery
from bot.workflow import intake, missed, retention, task, texts
from bot.workflow.arrivals import Arrivals
from bot.workflow.conductor import SEGMENTS, DbosConductor, SegmentKind
from bot.workflow.context import TaskContext
from bot.workflow.journal import ENDED, DbosJournal, TaskEnded
from bot.workflow.queues import Queues
from bot.workflow.reception import Reception
from bot.workflow.records import Envelope
from bot.workflow.retention import Forgotten
from bot.workflow.services import Services
from bot.workflow.values import Values

Order = TypeVar("Order")
Value = TypeVar("Value")

APPLICATION_VERSION = "pullwright-1"
"""Bumped only on purpose: tasks started under another version stay where they are (specs/durable.md §1.h)."""

REVIEW_SECONDS = 30 * 86_400
_LOOKS_FOR_AN_END = 3
"""A task that waits for its segment asks so much more often whether it has ended than an idle queue is looked at."""

INBOX = "inbox"
_ROUTE_ATTEMPTS = 3
_ROUTE_ENDED = frozenset({"SUCCESS", "ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", "CANCELLED"})

log = structlog.get_logger()


def _route_id(delivery: DeliveryId, attempt: int) -> str:
    return f"gh:{delivery}:{attempt}" if attempt else f"gh:{delivery}"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Where the engine keeps its rows and how much it does at once. `polling_seconds` is how soon queued work starts."""

    database_url: str
    executor_id: str
    polling_seconds: float = 0.2
    tasks_at_once: int = 4
    tasks_per_repository: int = 2


class Engine:
    """Launch once per process; accepts deliveries and carries tasks to their end."""

    def __init__(self, services: Services, settings: EngineSettings, desk: Forges) -> None:
        """`desk` is GitHub as the door's event loop asks it; `services.forges` belongs to the loop of the workflows."""
        self._services = services
        self._settings = settings
        self._values = Values(services.home / "values")
        self._queues = Queues()
        self._arrivals = Arrivals(services, self._values, self._queues)
        self._reception = Reception(services, desk, self._queue_delivery)

    # life

    def launch(self) -> None:
        """Start the engine: register workflows, recover what a crash left, listen to the queues."""
        _use_wal(self._settings.database_url)
        config: DBOSConfig = {
            "name": "pullwright",
            "system_database_url": self._settings.database_url,
            "application_version": APPLICATION_VERSION,
            "executor_id": self._settings.executor_id,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": self._settings.polling_seconds,
        }
        DBOS(config=config)
        self._register()
        self._arrivals.register()
        DBOS.launch()
        polling = self._settings.polling_seconds
        queues = {
            "intake": DBOS.register_queue("intake", global_concurrency=20, polling_interval_sec=polling),
            "work": DBOS.register_queue(
                "work",
                worker_concurrency=self._settings.tasks_at_once,
                partition_concurrency=self._settings.tasks_per_repository,
                polling_interval_sec=polling,
            ),
        }
        self._queues.open(queues | self._arrivals.queues(polling))

    def close(self) -> None:
        """Stop; what runs stays recoverable, so that it is cut off is nothing to warn of."""
        logging.getLogger("dbos").setLevel(logging.ERROR)
        DBOS.destroy(workflow_completion_timeout_sec=0, destroy_registry=True)

    # receiving

    async def accept(self, delivery: Delivery) -> bool:
        """Store the delivery, to be looked at soon. False for one that is here already."""
        return await self._reception.accept(delivery)

    async def attend(self) -> None:
        """Look at what was accepted, until a fault: begin it anew then."""
        await self._reception.work()

    async def sweep(self) -> int:
        """Queue every delivery that was stored and never finished (a crash between the two)."""
        stored = await self._services.deliveries.unfinished()
        waiting = [delivery for delivery in stored if delivery not in self._reception.waiting]
        for delivery in waiting:
            await self._queue_again(delivery)
        return len(waiting)

    async def recover_missed(self) -> int:
        """Ask GitHub for the deliveries that met nobody while nothing served; how many."""
        return await missed.recover(self._services.hook_log, self._services.deliveries)

    async def forget(self, before: datetime) -> Forgotten:
        """Forget what was over before then. Raises Transient when a database does not answer."""
        return await retention.forget(before, self._services.deliveries, self._values)

    async def queues(self) -> tuple[QueueFigures, ...]:
        """What waits and works in the queues now. Raises Transient when the engine's database does not answer."""
        return await self._queues.figures(time.time())

    async def _queue_delivery(self, delivery: DeliveryId, attempt: int = 0) -> None:
        queue = await self._queues.named("intake")
        with SetWorkflowID(_route_id(delivery, attempt)):
            await queue.enqueue_async(self._route, str(delivery))

    async def _queue_again(self, delivery: DeliveryId) -> None:
        """A workflow that ended without finishing its delivery is not run again under its name: the next one gets another.

        Whatever the ended one has done is found done: tasks, messages and answers carry the delivery's own mark.
        """
        for attempt in range(_ROUTE_ATTEMPTS):
            status = await DBOS.get_workflow_status_async(_route_id(delivery, attempt))
            if status is None:
                await self._queue_delivery(delivery, attempt)
                return
            if status.status not in _ROUTE_ENDED:
                return
        log.error("delivery given up", delivery=delivery, attempts=_ROUTE_ATTEMPTS)
        await self._services.deliveries.finish(delivery, f"given up after {_ROUTE_ATTEMPTS} attempts; the log says why")

    # workflows

    def _register(self) -> None:
        @DBOS.workflow(name="route")
        async def route(delivery: str) -> str:
            journal = DbosJournal(self._values)
            post = intake.Post(
                start=self._start_task,
                send=self._send,
                onboard=self._arrivals.onboard,
                summarise=self._arrivals.summarise,
            )
            try:
                return await intake.route(DeliveryId(delivery), services=self._services, journal=journal, post=post)
            except TaskEnded as end:
                log.warning("delivery not carried out", delivery=delivery, reason=end.ending.reason)
                return f"failed: {end.ending.reason}"

        @DBOS.workflow(name="task", max_recovery_attempts=None)
        async def task_workflow(packed: Any) -> str:
            spec = self._values.unpack(TaskSpec, packed)
            conductor = DbosConductor(self, spec)
            try:
                ending = await task.run(conductor)
            except dbos_error.DBOSException:
                raise
            except Exception:  # a fault of the pipeline itself must not leave the issue blocked for good
                log.exception("pipeline failed", task=spec.id)
                ending = texts.unexpected()
            await conductor.end(ending)
            return ending.stage.value

        @DBOS.workflow(name="segment", max_recovery_attempts=None)
        async def segment(packed: Any, name: str, order: Any) -> Any:
            return await self._run_segment(self._values.unpack(TaskSpec, packed), name, order)

        self._route = route
        self._task = task_workflow
        self._segment = segment

    async def _start_task(self, spec: TaskSpec) -> None:
        """At once and without a queue, which would be looked at several times a second for good: a task mostly waits."""
        with SetWorkflowID(spec.id):
            await DBOS.start_workflow_async(self._task, self._values.pack(TaskSpec, spec))

    async def _send(self, task_id: TaskId, envelope: Envelope) -> None:
        packed = self._values.pack(Envelope, envelope)
        await DBOS.send_async(task_id, packed, topic=INBOX, idempotency_key=envelope.delivery)

    def journal(self, spec: TaskSpec) -> DbosJournal:
        """A journal that refuses further acts once the task was stopped."""

        async def guard() -> None:
            record = await self._services.tasks.get(spec.id)
            if record is not None and record.ending is not None:
                raise TaskEnded(record.ending)

        return DbosJournal(self._values, guard)

    async def _run_segment(self, spec: TaskSpec, name: str, order: Any) -> Any:
        """The one boundary for faults of ours inside a task: logged in full, ended with a neutral sentence."""
        kind = SEGMENTS[name]
        context = TaskContext(self._services, spec, self.journal(spec))
        try:
            value = await kind.run(context, self._values.unpack(kind.takes, order))
            return self._values.pack(kind.gives, value)
        except TaskEnded as end:
            return {ENDED: self._values.pack(Ending, end.ending)}
        except dbos_error.DBOSException:
            raise
        except Exception:
            log.exception("segment failed", task=spec.id, segment=name)
            return {ENDED: self._values.pack(Ending, texts.unexpected())}

    async def segment(self, spec: TaskSpec, key: str, kind: SegmentKind[Order, Value], order: Order) -> Value:
        """Run a segment as a child on the limited queue, partitioned by repository; its value, or TaskEnded."""
        packed = self._values.pack(TaskSpec, spec)
        partition = str(spec.subject.repository.id)
        queue = await self._queues.named("work")
        with SetWorkflowID(f"{spec.id}:{key}"), SetEnqueueOptions(queue_partition_key=partition):
            handle = await queue.enqueue_async(self._segment, packed, kind.name, self._values.pack(kind.takes, order))
        often = self._settings.polling_seconds / _LOOKS_FOR_AN_END
        outcome = await handle.get_result(polling_interval_sec=often)
        if isinstance(outcome, dict) and ENDED in outcome:
            raise TaskEnded(self._values.unpack(Ending, outcome[ENDED]))
        return self._values.unpack(kind.gives, outcome)

    @property
    def services(self) -> Services:
        return self._services

    async def receive(self) -> Envelope | None:
        packed = await DBOS.recv_async(INBOX, timeout_seconds=REVIEW_SECONDS)
        return None if packed is None else self._values.unpack(Envelope, packed)


def _use_wal(url: str) -> None:
    """SQLite: write-ahead log, set once in the file before the engine opens it (specs/durable.md §1.a)."""
    prefix = "sqlite:///"
    if url.startswith(prefix):
        path = Path(url.removeprefix(prefix))
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode=WAL").close()
        finally:
            connection.close()
