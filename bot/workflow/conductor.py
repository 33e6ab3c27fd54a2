"""The pipeline's hands on DBOS: segments as child workflows, what is told as steps of the task's own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import structlog
from dbos import error as dbos_error

from bot.domain.plan import Plan
from bot.domain.task import Ending, Stage, TaskSpec
from bot.workflow import review, segments, showing, telling
from bot.workflow.building import Progress
from bot.workflow.context import TaskContext
from bot.workflow.journal import DbosJournal, TaskEnded, patiently
from bot.workflow.records import (
    Adopted,
    AdoptOrder,
    Coded,
    CodeOrder,
    Envelope,
    Examined,
    ExamineOrder,
    Landed,
    LandOrder,
    Prepared,
    Published,
    PublishOrder,
    ReviewState,
    Verified,
    VerifyOrder,
)
from bot.workflow.values import Values

if TYPE_CHECKING:
    from bot.workflow.engine import Engine

log = structlog.get_logger()

Order = TypeVar("Order")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class SegmentKind(Generic[Order, Value]):
    """A part of the pipeline that runs as one child workflow: its name, what it takes, what it gives, what runs."""

    name: str
    takes: type[Order]
    gives: type[Value]
    run: Callable[[TaskContext, Order], Awaitable[Value]]


async def _prepare(context: TaskContext, _: None) -> Prepared:
    return await segments.prepare(context)


PREPARE = SegmentKind("prepare", type(None), Prepared, _prepare)
PLAN = SegmentKind("plan", Prepared, Plan, segments.plan)
CODE = SegmentKind("code", CodeOrder, Coded, segments.code)
VERIFY = SegmentKind("verify", VerifyOrder, Verified, segments.verify)
PUBLISH = SegmentKind("publish", PublishOrder, Published, review.publish)
EXAMINE = SegmentKind("examine", ExamineOrder, Examined, review.examine)
ADOPT = SegmentKind("adopt", AdoptOrder, Adopted, review.adopt)
LAND = SegmentKind("land", LandOrder, Landed, review.land)

SEGMENTS: dict[str, SegmentKind[Any, Any]] = {
    kind.name: kind for kind in (PREPARE, PLAN, CODE, VERIFY, PUBLISH, EXAMINE, ADOPT, LAND)
}


class DbosConductor:
    """The pipeline's hands (see `task.Conductor`)."""

    def __init__(self, engine: Engine, spec: TaskSpec) -> None:
        self._engine = engine
        self._spec = spec
        self._tells = 0
        self._progress = Progress()
        self._context = TaskContext(engine.services, spec, engine.journal(spec))

    async def _segment(self, key: str, kind: SegmentKind[Order, Value], order: Order) -> Value:
        return await self._engine.segment(self._spec, key, kind, order)

    async def prepare(self) -> Prepared:
        return await self._segment("prepare", PREPARE, None)

    async def plan(self, prepared: Prepared) -> Plan:
        return await self._segment("plan", PLAN, prepared)

    async def code(self, order: CodeOrder) -> Coded:
        return await self._segment(order.key, CODE, order)

    async def verify(self, key: str, order: VerifyOrder) -> Verified:
        return await self._segment(key, VERIFY, order)

    async def publish(self, key: str, order: PublishOrder) -> Published:
        return await self._segment(key, PUBLISH, order)

    async def examine(self, key: str, order: ExamineOrder) -> Examined:
        return await self._segment(key, EXAMINE, order)

    async def adopt(self, key: str, order: AdoptOrder) -> Adopted:
        return await self._segment(key, ADOPT, order)

    async def land(self, key: str, order: LandOrder) -> Landed:
        return await self._segment(key, LAND, order)

    async def tell(self, stage: Stage, progress: Progress) -> None:
        self._tells += 1
        self._progress = progress
        await self._context.journal.step(
            f"tell:{self._tells}:{stage.value}", lambda: telling.tell(self._context, stage, progress), bool
        )

    async def report_gate(self, key: str, state: ReviewState, examined: Examined, note: str) -> None:
        await self._context.journal.step(
            f"gate:{key}", lambda: showing.report_gate(self._context, state, examined, note), bool
        )

    async def receive(self) -> Envelope | None:
        return await self._engine.receive()

    async def end(self, ending: Ending) -> None:
        """Write the ending down and on GitHub. Not guarded: a stopped task says so too."""
        journal = DbosJournal(Values(self._engine.services.home / "values"))
        context = TaskContext(self._engine.services, self._spec, journal)

        async def told() -> bool:
            return await telling.end(context, ending, self._progress)

        try:
            await journal.step("end", told, bool)
        except TaskEnded as end:
            log.warning("ending not told", task=self._spec.id, reason=end.ending.reason)
        except dbos_error.DBOSUnexpectedStepError:
            # Replayed, it failed before the place it had come to: a step is recorded there already.
            await patiently("end", told)
