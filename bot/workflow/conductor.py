"""The pipeline's hands on DBOS: segments as child workflows, what is told as steps of the task's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from dbos import error as dbos_error

from bot.domain.plan import Plan
from bot.domain.task import Ending, Stage, TaskSpec
from bot.workflow import showing, telling
from bot.workflow.building import Progress
from bot.workflow.context import TaskContext
from bot.workflow.journal import DbosJournal, TaskEnded
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


class DbosConductor:
    """The pipeline's hands (see `task.Conductor`)."""

    def __init__(self, engine: Engine, spec: TaskSpec) -> None:
        self._engine = engine
        self._spec = spec
        self._tells = 0
        self._progress = Progress()
        self._context = TaskContext(engine.services, spec, engine.journal(spec))

    async def _segment(self, key: str, name: str, order: Any) -> Any:
        return await self._engine.segment(self._spec, key, name, order)

    async def prepare(self) -> Prepared:
        prepared: Prepared = await self._segment("prepare", "prepare", None)
        return prepared

    async def plan(self, prepared: Prepared) -> Plan:
        plan: Plan = await self._segment("plan", "plan", prepared)
        return plan

    async def code(self, order: CodeOrder) -> Coded:
        coded: Coded = await self._segment(order.key, "code", order)
        return coded

    async def verify(self, key: str, order: VerifyOrder) -> Verified:
        verified: Verified = await self._segment(key, "verify", order)
        return verified

    async def publish(self, key: str, order: PublishOrder) -> Published:
        published: Published = await self._segment(key, "publish", order)
        return published

    async def examine(self, key: str, order: ExamineOrder) -> Examined:
        examined: Examined = await self._segment(key, "examine", order)
        return examined

    async def adopt(self, key: str, order: AdoptOrder) -> Adopted:
        adopted: Adopted = await self._segment(key, "adopt", order)
        return adopted

    async def land(self, key: str, order: LandOrder) -> Landed:
        landed: Landed = await self._segment(key, "land", order)
        return landed

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

        async def no_guard() -> None:
            return None

        journal = DbosJournal(Values(self._engine.services.home / "values"), no_guard)
        context = TaskContext(self._engine.services, self._spec, journal)
        try:
            await journal.step("end", lambda: telling.end(context, ending, self._progress), bool)
        except TaskEnded as end:
            log.warning("ending not told", task=self._spec.id, reason=end.ending.reason)
        except (
            dbos_error.DBOSUnexpectedStepError
        ):  # replayed, it failed before the place it had come to: no room for a step
            await telling.end(context, ending, self._progress)
