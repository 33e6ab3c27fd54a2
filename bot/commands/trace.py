"""`pullwright trace`: one task's transcript, from what is stored of it anyway. Nothing is changed by looking, also while it works."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.commands.costs import CallCost, of_row
from bot.commands.naming import find, unknown
from bot.domain.errors import Transient
from bot.domain.ids import TaskId
from bot.domain.money import ZERO, MicroUsd, dollars
from bot.domain.pull import Approval
from bot.providers.store.deliveries import Noted
from bot.providers.store.ledger import LedgerRow
from bot.providers.store.port import TaskRecord
from bot.providers.store.sql import Store, reading
from bot.settings import Settings
from bot.workflow.history import Act, History, Segment, recorded

_BEFORE = timedelta(minutes=15)
"""A delivery may wait so long before its task is started."""

Mask = Callable[[str], str]
"""Makes a stored text fit for a terminal."""


@dataclass(frozen=True, slots=True)
class Call:
    """An attempt of a model call; `number` counts those of one call, `at` is in seconds since 1970."""

    number: int
    at: int | None
    cost: CallCost


@dataclass(frozen=True, slots=True)
class Trace:
    """All that is known of one task. `record` is None for one on a local clone, of which only the ledger is kept."""

    task: str
    record: TaskRecord | None
    calls: tuple[Call, ...] = ()
    approvals: tuple[Approval, ...] = ()
    deliveries: tuple[Noted, ...] = ()
    history: History | None = None
    earlier: tuple[str, ...] = ()
    """Other tasks of the same issue or pull request, newest first."""
    missing: str = ""
    """Why the engine's part is not there."""

    @property
    def spent(self) -> MicroUsd:
        return MicroUsd(sum(call.cost.micro_usd for call in self.calls))


async def newest(settings: Settings, limit: int) -> tuple[tuple[TaskRecord, MicroUsd], ...]:
    """The newest tasks and what each has cost."""
    if settings.untouched():
        return ()
    with reading(settings.database()) as store:
        if store is None:
            return ()
        records = await store.tasks.listing(limit)
        spent = await store.ledger.spent(tuple(record.spec.id for record in records))
        return tuple((record, spent.get(record.spec.id, ZERO)) for record in records)


async def trace(settings: Settings, name: str) -> Trace:
    """What is known of the task of this id, of which this is the unique beginning, or the newest of OWNER/REPO#NUMBER.

    Raises UserError that says what there is when it is none or several.
    """
    if settings.untouched():
        raise unknown(name, ())
    with reading(settings.database()) as store:
        if store is None:
            raise unknown(name, ())
        task, record, earlier = await find(store, name)
        rows = await store.ledger.rows(task)
        history, missing = await _history(settings, TaskId(task)) if record is not None else (None, _LOCAL)
        return Trace(
            task=task,
            record=record,
            calls=tuple(_call(task, row) for row in rows),
            approvals=await store.approvals.of(TaskId(task)),
            deliveries=await _deliveries(store, TaskId(task), history),
            history=history,
            earlier=earlier,
            missing=missing,
        )


_LOCAL = "It ran on a local clone: only its model calls are kept."


def _call(task: str, row: LedgerRow) -> Call:
    return Call(row.attempt.number, row.at, of_row(task, row))


async def _history(settings: Settings, task: TaskId) -> tuple[History | None, str]:
    values = settings.home / "values"
    try:
        history = await asyncio.to_thread(recorded, settings.engine_database(), values, task)
    except Transient as fault:
        return None, f"{str(fault)[:1].upper()}{str(fault)[1:]}."
    return (
        history,
        "" if history is not None else "The engine has no record of it: it did not begin yet, or was deleted.",
    )


async def _deliveries(store: Store, task: TaskId, history: History | None) -> tuple[Noted, ...]:
    if history is None:
        return ()
    since = datetime.fromtimestamp(history.began / 1000, UTC) - _BEFORE
    until = datetime.fromtimestamp(history.ended / 1000, UTC) if history.ended is not None else datetime.now(UTC)
    return await store.deliveries.about(task, since=since.isoformat(), until=until.isoformat())


def as_json(one: Trace, clean: Mask) -> str:
    """The whole transcript as one object; `clean` goes over every text that came from outside."""
    record, history = one.record, one.history
    document: dict[str, Any] = {
        "task": one.task,
        "stage": record.stage.value if record is not None else None,
        "subject": _subject(record) if record is not None else None,
        "cost_usd": dollars(one.spent),
        "pull": record.pull_number if record is not None else None,
        "began": _iso(history.began) if history is not None else None,
        "ended": _iso(history.ended) if history is not None and history.ended is not None else None,
        "ending": asdict(record.ending) if record is not None and record.ending is not None else None,
        "stages": [asdict(stay) | {"began": _iso(stay.began)} for stay in _stays(one)],
        "segments": [_segment(each) for each in history.segments] if history else [],
        "steps": [_step(act) for act in history.acts] if history else [],
        "calls": [
            {"attempt": call.number, "at": _iso(call.at * 1000) if call.at is not None else None}
            | asdict(call.cost)
            | {"cost_usd": dollars(call.cost.micro_usd)}
            for call in one.calls
        ],
        "approvals": [asdict(approval) for approval in one.approvals],
        "deliveries": [asdict(delivery) for delivery in one.deliveries],
        "earlier": list(one.earlier),
        "missing": one.missing,
    }
    return json.dumps(_cleaned(document, clean))


def listed_json(found: Sequence[tuple[TaskRecord, MicroUsd]], clean: Mask) -> str:
    """The newest tasks as one object."""
    rows = [
        {
            "task": record.spec.id,
            "stage": record.stage.value,
            "subject": _subject(record),
            "pull": record.pull_number,
            "cost_usd": dollars(spent),
        }
        for record, spent in found
    ]
    return json.dumps(_cleaned({"tasks": rows}, clean))


def _subject(record: TaskRecord) -> dict[str, object]:
    spec = record.spec
    return {
        "repository": spec.subject.repository.full_name,
        "number": spec.subject.number,
        "is_pull": spec.subject.is_pull,
        "title": spec.title,
        "requester": spec.requester.login,
        "budget_usd": dollars(spec.budget),
    }


@dataclass(frozen=True, slots=True)
class Stay:
    """How long the task was in one stage; `seconds` None: it is there now. `began` in milliseconds since 1970."""

    stage: str
    began: int
    seconds: float | None


def stages(history: History, *, over: bool) -> tuple[Stay, ...]:
    """The time line: each stage from the step that told it to the next one's; before the first one is the queue.

    The last one goes on, unless the task is `over`: then to its last step.
    """
    told = [(act.stage.value, act.began) for act in history.acts if act.stage is not None]
    line = [("queued", history.began), *told]
    last = max((act.ended for act in history.acts), default=history.ended) if over else None
    ends = [*(began for _, began in line[1:]), last]
    return tuple(
        Stay(stage, began, None if end is None else max(0, end - began) / 1000)
        for (stage, began), end in zip(line, ends, strict=True)
    )


def _stays(one: Trace) -> tuple[Stay, ...]:
    over = one.record is not None and one.record.ending is not None
    return stages(one.history, over=over) if one.history is not None else ()


def _segment(segment: Segment) -> dict[str, object]:
    times = {"queued": segment.queued, "began": segment.began, "ended": segment.ended}
    return {"segment": segment.key} | {name: None if at is None else _iso(at) for name, at in times.items()}


def _step(act: Act) -> dict[str, object]:
    return {
        "segment": act.segment,
        "step": act.name,
        "kind": act.kind.value,
        "began": _iso(act.began),
        "seconds": (act.ended - act.began) / 1000,
        "did": [asdict(said) for said in act.said],
    }


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _cleaned(value: Any, clean: Mask) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {key: _cleaned(each, clean) for key, each in value.items()}
        case list() | tuple():
            return [_cleaned(each, clean) for each in value]
        case _:
            return value
