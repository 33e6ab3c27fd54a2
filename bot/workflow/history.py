"""What the engine recorded of a task, for its transcript: read without a lock and without changing anything, also while it works."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbos import DBOSClient, DBOSPortableJSONSerializer
from pydantic import ValidationError

from bot.domain.ids import TaskId
from bot.domain.task import Ending, Stage
from bot.providers.llm.port import ToolCall
from bot.providers.store.database import answering
from bot.stages.coding.run import Asked, Used
from bot.workflow import outcomes
from bot.workflow.journal import ENDED
from bot.workflow.outcomes import Kind, Said
from bot.workflow.values import Values

_SQLITE = "sqlite:///"
_TELL = re.compile(r"tell:\d+:(.+)")
_UNREADABLE = "what came of it cannot be read any more"
_SILENT = frozenset({"DBOS.getResult", "DBOS.sleep", "segment"})
"""Steps of the engine itself: a child is started, waited for."""


@dataclass(frozen=True, slots=True)
class Act:
    """A recorded step, in milliseconds since 1970. `segment` is empty for the task's own; `stage`: from here on it was there."""

    segment: str
    name: str
    kind: Kind
    began: int
    ended: int
    said: tuple[Said, ...]
    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the task that had to wait for a free place. Without `began` it still waits, without `ended` it is at work."""

    key: str
    queued: int
    began: int | None
    ended: int | None


@dataclass(frozen=True, slots=True)
class History:
    """Everything that is recorded of one task, in order of time. `began` is when the task was started."""

    began: int
    ended: int | None
    segments: tuple[Segment, ...]
    acts: tuple[Act, ...]


def recorded(database_url: str, values: Path, task: TaskId) -> History | None:
    """What the engine knows of the task; None when it knows nothing. Raises Transient when its database cannot be read now."""
    if not _is_there(database_url):
        return None
    with answering("the engine's record"), _client(database_url) as client:
        return _read(client, _Reader(values), task)


@contextmanager
def _client(database_url: str) -> Iterator[DBOSClient]:
    """It makes no tables, and gives up at once where nobody answers; that is said once, and not by the engine's own log."""
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    serializer = DBOSPortableJSONSerializer()
    client = DBOSClient(system_database_url=database_url, serializer=serializer, retry_connection_errors=False)
    try:
        yield client
    finally:
        client.destroy()


def _is_there(database_url: str) -> bool:
    """A SQLite file would be made by looking for it."""
    return not database_url.startswith(_SQLITE) or Path(database_url.removeprefix(_SQLITE)).exists()


def _read(client: DBOSClient, reader: _Reader, task: TaskId) -> History | None:
    # The prefix of one task's segments is no beginning of another's id: it ends with the colon.
    found = client.list_workflows(workflow_ids=[task], load_input=False, load_output=False)
    if not found or found[0].created_at is None:
        return None
    whole = found[0]
    children = client.list_workflows(workflow_id_prefix=f"{task}:", load_input=False, load_output=False)
    segments = [
        Segment(
            child.workflow_id.removeprefix(f"{task}:"), child.created_at or 0, child.dequeued_at, child.completed_at
        )
        for child in children
        if child.name == "segment"
    ]
    acts = reader.acts("", client.list_workflow_steps(task))
    for segment in segments:
        acts += reader.acts(segment.key, client.list_workflow_steps(f"{task}:{segment.key}"))
    return History(
        began=whole.created_at or 0,
        ended=whole.completed_at,
        segments=tuple(sorted(segments, key=lambda segment: segment.queued)),
        acts=tuple(sorted(acts, key=lambda act: (act.began, act.ended))),
    )


class _Reader:
    """Makes acts of steps."""

    def __init__(self, values: Path) -> None:
        self._values = Values(values)

    def acts(self, segment: str, steps: list[Any]) -> list[Act]:
        """Those of one workflow, in their order."""
        calls: dict[str, ToolCall] = {}
        made = []
        for step in steps:
            name, began = step["function_name"], step["started_at_epoch_ms"]
            if name in _SILENT or began is None:
                continue
            act = self._act(segment, name, (began, step["completed_at_epoch_ms"] or began), (step["output"], calls))
            if act is not None:
                made.append(act)
        return made

    def _act(
        self, segment: str, name: str, times: tuple[int, int], what: tuple[Any, dict[str, ToolCall]]
    ) -> Act | None:
        row, (packed, calls) = outcomes.reading(name), what
        kind = row.kind if row is not None else Kind.WORK
        try:
            said = self._said(name, packed, calls)
        except (ValidationError, ValueError, OSError):
            said = (Said("", _UNREADABLE),)
        if not said:
            return None
        tell = _TELL.fullmatch(name)
        stage = Stage(tell[1]) if tell is not None and tell[1] in set(Stage) else None
        return Act(segment, name, kind, *times, said, stage)

    def _said(self, name: str, packed: Any, calls: dict[str, ToolCall]) -> tuple[Said, ...]:
        if isinstance(packed, dict) and ENDED in packed:
            ending = self._values.unpack(Ending, packed[ENDED])
            return (Said("", f"ended the task: {ending.reason}", ok=False),)
        row = outcomes.reading(name)
        if row is None:
            return (Said(""),)
        if packed is None:  # nobody wrote for as long as it waits
            return ()
        value = self._values.unpack(row.holds, packed)
        if isinstance(value, Asked) and value.turn is not None:
            calls |= {call.id: call for call in value.turn.tool_calls}
        return outcomes.tools(value, calls) if isinstance(value, Used) else row.told(value)
