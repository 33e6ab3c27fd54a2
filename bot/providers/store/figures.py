"""Counts over the whole store, cheap enough to be asked every few seconds: what is old is added up once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, case, func, select

from bot.domain.figures import ModelFigures, StoreFigures
from bot.domain.money import MicroUsd
from bot.domain.task import Stage
from bot.providers.store.database import Database, text_in
from bot.providers.store.requests import DAY, HOUR
from bot.providers.store.schema import DELIVERIES, LEDGER, LEDGER_TIMES, SUMMARY_COSTS, TASKS


class _Fate(StrEnum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Sum:
    """So many attempts, and what they cost or may cost."""

    count: int = 0
    micros: int = 0

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum(self.count + other.count, self.micros + other.micros)


_Sums = Mapping[tuple[str, _Fate], _Sum]
_NOTHING = _Sum()


class SqlFigures:
    """Reads the figures. Attempts older than an hour do not change any more and are added up once for each process."""

    def __init__(self, database: Database, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now
        self._old: _Sums = {}
        self._until = 0

    async def read(self) -> StoreFigures:
        """All of them, as of one moment. Raises Transient when the store does not answer."""
        now = int(self._now())
        edge = max(self._until, now - HOUR)
        figures, old = await self._database.read(lambda connection: self._read(connection, edge, now))
        if edge >= self._until:  # of two that ask at the same time, the later one has more
            self._old, self._until = old, edge
        return figures

    def _read(self, connection: Connection, edge: int, now: int) -> tuple[StoreFigures, _Sums]:
        old = _added(self._old, _attempts(connection, self._until, edge))
        young = _attempts(connection, edge, None)
        day = _attempts(connection, now - DAY, None)
        waiting, since = _waiting(connection)
        models = sorted({model for model, _ in (*old, *young)})
        return StoreFigures(
            waiting=waiting,
            waiting_since=since,
            tasks=_stages(connection),
            models=tuple(_model(model, old, young, day) for model in models),
            summaries=MicroUsd(int(connection.scalar(select(func.coalesce(func.sum(SUMMARY_COSTS.c.micros), 0))) or 0)),
        ), old


def _model(model: str, old: _Sums, young: _Sums, day: _Sums) -> ModelFigures:
    whole = _added(old, {key: each for key, each in young.items() if key[1] is not _Fate.UNKNOWN})
    by_fate = {fate: whole.get((model, fate), _NOTHING) for fate in _Fate}
    return ModelFigures(
        model=model,
        answered=by_fate[_Fate.OK].count,
        failed=by_fate[_Fate.FAILED].count,
        unheard=by_fate[_Fate.UNKNOWN].count,
        under_way=young.get((model, _Fate.UNKNOWN), _NOTHING).count,
        spent=MicroUsd(sum(each.micros for each in by_fate.values())),
        day=MicroUsd(sum(day.get((model, fate), _NOTHING).micros for fate in _Fate)),
    )


def _added(some: _Sums, more: _Sums) -> _Sums:
    whole: dict[tuple[str, _Fate], _Sum] = defaultdict(_Sum, some)
    for key, each in more.items():
        whole[key] += each
    return dict(whole)


def _attempts(connection: Connection, first: int, last: int | None) -> _Sums:
    """Attempts that were opened from `first` until before `last`, by model and fate."""
    model = text_in(connection, LEDGER.c.attempt, "model")
    outcome = text_in(connection, LEDGER.c.settled, "outcome")
    fate: ColumnElement[str] = case(
        (LEDGER.c.settled.is_(None), _Fate.UNKNOWN.value), (outcome == "ok", _Fate.OK.value), else_=_Fate.FAILED.value
    )
    micros = func.sum(func.coalesce(LEDGER.c.cost, LEDGER.c.reserved))
    query = (
        select(model, fate, func.count(), micros)
        .join(LEDGER_TIMES, LEDGER_TIMES.c.ledger_seq == LEDGER.c.seq)
        .where(LEDGER_TIMES.c.at >= first)
        .group_by(model, fate)
    )
    if last is not None:
        query = query.where(LEDGER_TIMES.c.at < last)
    rows = connection.execute(query).all()
    return {(str(row[0]), _Fate(row[1])): _Sum(int(row[2]), int(row[3])) for row in rows}


def _waiting(connection: Connection) -> tuple[int, str | None]:
    unfinished = DELIVERIES.c.finished.is_(False)
    count = connection.scalar(select(func.count()).select_from(DELIVERIES).where(unfinished)) or 0
    first = select(DELIVERIES.c.received_at).where(unfinished).order_by(DELIVERIES.c.seq).limit(1)
    return int(count), connection.scalar(first)


def _stages(connection: Connection) -> Mapping[Stage, int]:
    """Every stage, also those where no task is."""
    rows = connection.execute(select(TASKS.c.stage, func.count()).group_by(TASKS.c.stage)).all()
    return dict.fromkeys(Stage, 0) | {Stage(row[0]): int(row[1]) for row in rows}
