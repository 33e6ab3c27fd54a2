"""The whole of what is kept, as an audit reads it. Nothing is created here and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, select

from bot.domain.ids import TaskId
from bot.domain.pull import Approval
from bot.domain.task import Stage, TaskSpec
from bot.providers.store.approvals import SqlApprovals
from bot.providers.store.codec import Codec
from bot.providers.store.database import Database, answering
from bot.providers.store.port import ApprovedTask
from bot.providers.store.schema import APPROVALS, DELIVERIES, TASKS

T = TypeVar("T")
_WHAT = "the product's tables"
_APPROVAL, _SPEC = Codec(Approval), Codec(TaskSpec)


class SqlLog:
    """The `Log` port on a database that is there already."""

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def close(self) -> None:
        self._database.close()

    async def approvals(self) -> tuple[ApprovedTask, ...]:
        """Every approval with its task, oldest first. Raises ValueError for a row that is none."""
        joined = (
            select(APPROVALS.c.seq, APPROVALS.c.task, APPROVALS.c.approval, TASKS.c.spec, TASKS.c.stage)
            .join(TASKS, TASKS.c.id == APPROVALS.c.task)
            .order_by(APPROVALS.c.seq)
        )
        rows = await self._read(lambda connection: connection.execute(joined).all())
        found = []
        for row in rows:
            spec = _SPEC.decode(row.spec)
            found.append(
                ApprovedTask(
                    row.seq,
                    TaskId(row.task),
                    _APPROVAL.decode(row.approval),
                    spec.requester,
                    spec.subject.repository.full_name,
                    row.stage == Stage.LANDED,
                )
            )
        return tuple(found)

    async def broken_at(self) -> int | None:
        with answering(_WHAT):
            return await SqlApprovals(self._database).broken_at()

    async def landed_without(self) -> tuple[TaskId, ...]:
        """Tasks that landed without an approval in the log, oldest first."""
        approved = select(APPROVALS.c.task)
        bare = (
            select(TASKS.c.id).where(TASKS.c.stage == Stage.LANDED, TASKS.c.id.not_in(approved)).order_by(TASKS.c.seq)
        )
        rows = await self._read(lambda connection: connection.execute(bare).scalars().all())
        return tuple(TaskId(row) for row in rows)

    async def received(self) -> tuple[str, ...]:
        """When deliveries were received, in the order in which they were stored."""
        times = select(DELIVERIES.c.received_at).order_by(DELIVERIES.c.seq)
        return tuple(await self._read(lambda connection: connection.execute(times).scalars().all()))

    async def _read(self, work: Callable[[Connection], T]) -> T:
        with answering(_WHAT):
            return await self._database.read(work)
