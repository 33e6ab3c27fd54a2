"""Requests for work: who asked when, so that loops are seen; and what was spent since."""

from __future__ import annotations

from sqlalchemy import Connection, func, insert, select

from bot.domain.ids import RepositoryId, UserId
from bot.domain.money import MicroUsd
from bot.domain.spending import Tally
from bot.domain.task import Stage, TaskSpec
from bot.providers.store.codec import Codec
from bot.providers.store.database import Database, Taken
from bot.providers.store.schema import LEDGER, LEDGER_TIMES, REQUESTS, TASKS

HOUR, DAY = 3_600, 86_400
_SPEC = Codec(TaskSpec)
_SPENDING = (
    Stage.QUEUED,
    Stage.PREPARING,
    Stage.PLANNING,
    Stage.CODING,
    Stage.VERIFYING,
    Stage.PUBLISHING,
    Stage.REVISING,
)
"""Where a task may go on spending without anybody asking again."""


class SqlRequests:
    """The `Requests` port on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, key: str, *, user: UserId, repository: RepositoryId, at: int) -> None:
        """Record a request for work that is taken up. The same key again changes nothing."""
        values = {"key": key, "user_id": user, "repository_id": repository, "at": at}
        try:
            await self._database.write(lambda connection: connection.execute(insert(REQUESTS).values(**values)))
        except Taken:
            return

    async def tally(self, user: UserId, repository: RepositoryId, *, at: int, but: str = "") -> Tally:
        """What was asked for and spent until this moment; the request `but` itself is not counted."""
        return await self._database.read(lambda connection: _tally(connection, user, repository, at, but))


def _tally(connection: Connection, user: UserId, repository: RepositoryId, at: int, but: str) -> Tally:
    asked = select(func.count()).select_from(REQUESTS).where(REQUESTS.c.key != but)
    by_user = asked.where(REQUESTS.c.user_id == user, REQUESTS.c.at > at - HOUR)
    here = asked.where(REQUESTS.c.repository_id == repository, REQUESTS.c.at > at - DAY)
    charged = func.coalesce(func.sum(func.coalesce(LEDGER.c.cost, LEDGER.c.reserved)), 0)
    today = (
        select(charged)
        .join(LEDGER_TIMES, LEDGER_TIMES.c.ledger_seq == LEDGER.c.seq)
        .where(LEDGER_TIMES.c.at > at - DAY)
    )
    return Tally(
        by_user_hour=int(connection.execute(by_user).scalar_one()),
        in_repository_day=int(connection.execute(here).scalar_one()),
        spent_day=MicroUsd(int(connection.execute(today).scalar_one())),
        set_aside=_set_aside(connection),
    )


def _set_aside(connection: Connection) -> MicroUsd:
    """What the tasks that work now may still spend of their budgets."""
    stages = [stage.value for stage in _SPENDING]
    working = connection.execute(
        select(TASKS.c.id, TASKS.c.spec).where(TASKS.c.ending.is_(None), TASKS.c.stage.in_(stages))
    )
    budgets = {row.id: _SPEC.decode(row.spec).budget for row in working}
    total = func.sum(func.coalesce(LEDGER.c.cost, LEDGER.c.reserved))
    rows = connection.execute(
        select(LEDGER.c.task, total.label("total")).where(LEDGER.c.task.in_(list(budgets))).group_by(LEDGER.c.task)
    )
    spent = {row.task: int(row.total) for row in rows}
    return MicroUsd(sum(max(0, budget - spent.get(task, 0)) for task, budget in budgets.items()))
