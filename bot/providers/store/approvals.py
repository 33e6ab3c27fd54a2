"""Approvals: append-only, each row chained to the one before."""

from __future__ import annotations

import hashlib

from sqlalchemy import Connection, insert, select

from bot.domain.ids import TaskId
from bot.domain.pull import Approval
from bot.providers.store.codec import Codec
from bot.providers.store.database import Database
from bot.providers.store.schema import APPROVALS

_APPROVAL = Codec(Approval)

_START = "0" * 64


def link(before: str, task: str, approval: str) -> str:
    """The chain value of a row: a hash of its length-prefixed fields and of the chain before it."""
    fields = (field.encode() for field in (before, task, approval))
    return hashlib.sha256(b"".join(b"%d:%b" % (len(field), field) for field in fields)).hexdigest()


class SqlApprovals:
    """The `Approvals` port on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, task: TaskId, approval: Approval) -> None:
        """Append it. Recording the task's last approval again (a replayed step) adds nothing."""
        text = _APPROVAL.encode(approval)

        def work(connection: Connection) -> None:
            if _last(connection, task) == text:
                return
            newest = select(APPROVALS.c.chain).order_by(APPROVALS.c.seq.desc()).limit(1)
            before = connection.execute(newest).scalar_one_or_none() or _START
            connection.execute(insert(APPROVALS).values(task=task, approval=text, chain=link(before, task, text)))

        await self._database.write(work, queue="approvals")

    async def last(self, task: TaskId) -> Approval | None:
        """The newest approval of this task."""
        text = await self._database.read(lambda connection: _last(connection, task))
        return None if text is None else _APPROVAL.decode(text)

    async def of(self, task: TaskId) -> tuple[Approval, ...]:
        """Every approval of this task, in their order."""
        query = select(APPROVALS.c.approval).where(APPROVALS.c.task == task).order_by(APPROVALS.c.seq)
        texts = await self._database.read(lambda connection: connection.scalars(query).all())
        return tuple(_APPROVAL.decode(text) for text in texts)

    async def broken_at(self) -> int | None:
        """The first row whose chain does not follow from the rows before it; None when the log is whole."""
        everything = select(APPROVALS).order_by(APPROVALS.c.seq)
        rows = await self._database.read(lambda connection: connection.execute(everything).all())
        before = _START
        for row in rows:
            if row.chain != link(before, row.task, row.approval):
                return int(row.seq)
            before = row.chain
        return None


def _last(connection: Connection, task: TaskId) -> str | None:
    newest = select(APPROVALS.c.approval).where(APPROVALS.c.task == task).order_by(APPROVALS.c.seq.desc()).limit(1)
    return connection.execute(newest).scalar_one_or_none()
