"""The ledger: what each attempt may cost before it is sent, and what it did cost afterwards."""

from __future__ import annotations

import time
from dataclasses import astuple, dataclass, field

from sqlalchemy import ColumnElement, Connection, and_, func, insert, select, update

from bot.domain.money import MicroUsd
from bot.domain.spending import Attempt, LedgerTotals, Settled, Usage
from bot.providers.store.codec import Codec
from bot.providers.store.database import Database
from bot.providers.store.schema import LEDGER, LEDGER_TIMES

_ATTEMPT = Codec(Attempt)
_SETTLED = Codec(Settled)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One attempt and, when its fate is known, how it ended. `at`: when it was opened, in seconds since 1970, where that is known."""

    attempt: Attempt
    settled: Settled | None
    at: int | None = field(default=None, compare=False)


class SqlLedger:
    """The ledger that the language-model role declares, on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, attempt: Attempt, *, budget: MicroUsd) -> bool:
        """Atomically record the attempt if spent + reserved + this reservation stays within `budget`.

        False: nothing was recorded and the attempt must not be made. A budget of zero allows nothing.
        Raises ValueError for an attempt that was opened before, or a negative reservation.
        """
        if attempt.reserved < 0:
            raise ValueError("a reservation cannot be negative")
        return await self._database.write(lambda c: _open(c, attempt, budget), queue=f"ledger:{attempt.task}")

    async def settle(self, attempt: Attempt, settled: Settled) -> None:
        """Replace the reservation of this attempt (task, key, number) by what it really cost.

        Settling alike again changes nothing. Raises LookupError for an attempt never opened, ValueError for another settlement.
        """
        await self._database.write(lambda c: _settle(c, attempt, settled), queue=f"ledger:{attempt.task}")

    async def totals(self, task: str) -> LedgerTotals:
        """What the task has cost; an attempt of unknown fate counts in full."""
        rows = await self.rows(task)
        unknown = sum(row.attempt.reserved for row in rows if row.settled is None)
        spent = unknown + sum(row.settled.cost for row in rows if row.settled is not None)
        used = [astuple(row.settled.usage) for row in rows if row.settled is not None]
        usage = Usage(*(sum(kind) for kind in zip(*used, strict=True))) if used else Usage()
        return LedgerTotals(MicroUsd(spent), usage, len(rows), unknown=MicroUsd(unknown))

    async def attempts(self, task: str, key: str) -> int:
        """How many attempts of this call were ever opened."""
        opened = select(func.count()).select_from(LEDGER).where(LEDGER.c.task == task, LEDGER.c.key == key)
        return await self._database.read(lambda connection: connection.execute(opened).scalar_one())

    async def rows(self, task: str) -> tuple[LedgerRow, ...]:
        """Every attempt of the task in the order they were opened, for reports."""
        query = (
            select(LEDGER.c.attempt, LEDGER.c.settled, LEDGER_TIMES.c.at)
            .outerjoin(LEDGER_TIMES, LEDGER_TIMES.c.ledger_seq == LEDGER.c.seq)
            .where(LEDGER.c.task == task)
            .order_by(LEDGER.c.seq)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return tuple(
            LedgerRow(
                _ATTEMPT.decode(row.attempt), None if row.settled is None else _SETTLED.decode(row.settled), row.at
            )
            for row in rows
        )

    async def tasks(self, prefix: str, limit: int) -> tuple[str, ...]:
        """Tasks with attempts whose id begins so; those on a local clone have no other record."""
        begins = LEDGER.c.task.startswith(prefix, autoescape=True)
        query = select(LEDGER.c.task).where(begins).distinct().order_by(LEDGER.c.task).limit(limit)
        return tuple(await self._database.read(lambda connection: connection.scalars(query).all()))

    async def spent(self, tasks: tuple[str, ...]) -> dict[str, MicroUsd]:
        """What each of these tasks has cost, in one query, for listings."""
        total = func.sum(func.coalesce(LEDGER.c.cost, LEDGER.c.reserved))
        query = select(LEDGER.c.task, total.label("total")).where(LEDGER.c.task.in_(tasks)).group_by(LEDGER.c.task)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.task: MicroUsd(int(row.total)) for row in rows}


def _open(connection: Connection, attempt: Attempt, budget: MicroUsd) -> bool:
    charged = func.coalesce(func.sum(func.coalesce(LEDGER.c.cost, LEDGER.c.reserved)), 0)
    committed = connection.execute(select(charged).where(LEDGER.c.task == attempt.task)).scalar_one()
    if budget <= 0 or int(committed) + attempt.reserved > budget:
        return False
    if connection.execute(select(LEDGER.c.seq).where(_same(attempt))).first() is not None:
        raise ValueError(f"attempt {attempt.number} of {attempt.key} was opened before")
    made = connection.execute(
        insert(LEDGER).values(
            task=attempt.task,
            key=attempt.key,
            number=attempt.number,
            attempt=_ATTEMPT.encode(attempt),
            reserved=attempt.reserved,
        )
    )
    number = made.inserted_primary_key[0] if made.inserted_primary_key else None
    connection.execute(insert(LEDGER_TIMES).values(ledger_seq=number, at=int(time.time())))
    return True


def _settle(connection: Connection, attempt: Attempt, settled: Settled) -> None:
    text = _SETTLED.encode(settled)
    row = connection.execute(select(LEDGER.c.settled).where(_same(attempt))).first()
    if row is None:
        raise LookupError(f"attempt {attempt.number} of {attempt.key} was never opened")
    if row.settled == text:
        return
    if row.settled is not None:
        raise ValueError(f"attempt {attempt.number} of {attempt.key} was settled otherwise")
    connection.execute(update(LEDGER).where(_same(attempt)).values(settled=text, cost=settled.cost))


def _same(attempt: Attempt) -> ColumnElement[bool]:
    return and_(LEDGER.c.task == attempt.task, LEDGER.c.key == attempt.key, LEDGER.c.number == attempt.number)
