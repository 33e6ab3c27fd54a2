"""What the engine recorded of a task can be read by another process, while it works and afterwards, on both databases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from dbos import DBOS, SetWorkflowID

from bot.domain.action import Command, CommandMessage, Verb
from bot.domain.decision import Decision
from bot.domain.errors import Transient, UserError
from bot.domain.figures import QueueFigures
from bot.domain.ids import DeliveryId, TaskId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.spending import Usage
from bot.domain.task import Stage
from bot.providers.llm.port import Message, ModelTurn, StopReason, ToolCall
from bot.stages.coding.log import ToolAnswer
from bot.stages.coding.run import Asked, Used
from bot.workflow.history import History, recorded
from bot.workflow.journal import DbosJournal, TaskEnded
from bot.workflow.outcomes import Kind, Said
from bot.workflow.queues import Queues
from bot.workflow.records import Envelope
from bot.workflow.values import INLINE_BYTES, Values
from tests.contracts.stores.builders import ANA, configure

T = TypeVar("T")
TASK = TaskId("task:1:5:1")
READ = ToolCall("c1", "read", '{"path": "a\\u001b.py"}')
RUN = ToolCall("c2", "run", '{"command": "pytest -q"}')
TURN = ModelTurn(Message("{}"), "msg_1", StopReason.TOOL_USE, "", (READ, RUN), Usage(input=3), MicroUsd(9))
USED = Used(
    (ToolAnswer("c1", "a.py, lines 1–2 of 2\n" + "x" * INLINE_BYTES), ToolAnswer("c2", "\nexit 1", is_error=True)),
    TreeId("3" * 40),
)
STOP = Envelope(CommandMessage(ANA, Command(Verb.STOP), None), DeliveryId("d-1"), "2026-11-29T10:00:00+00:00")


def giving(value: T) -> Callable[[], Awaitable[T]]:
    """An act that gives this."""

    async def act() -> T:
        return value

    return act


async def refuses() -> Decision:
    raise UserError("The plan names a file that is not there.")


@asynccontextmanager
async def engine(url: str, values: Values) -> AsyncIterator[None]:
    """A launched engine whose tasks have one segment and wait for one message."""
    configure(url)

    @DBOS.workflow(name="segment")
    async def segment() -> None:
        journal = DbosJournal(values)
        await journal.step("step:s1:call:1", giving(Asked(TURN)), Asked)
        await journal.step("step:s1:tool:1:0", giving(USED), Used)
        await journal.step("of a later version", giving(True), bool)
        try:
            await journal.step("plan:policy", refuses, Decision)
        except TaskEnded:
            return

    @DBOS.workflow(name="task")
    async def task() -> None:
        journal = DbosJournal(values)
        await journal.step("tell:1:coding", giving(True), bool)
        with SetWorkflowID(f"{DBOS.workflow_id}:step:s1"):
            child = await DBOS.start_workflow_async(segment)
        await child.get_result(polling_interval_sec=0.05)
        await DBOS.recv_async("inbox", timeout_seconds=60)
        await journal.step("end", giving(True), bool)

    await asyncio.to_thread(DBOS.launch)
    try:
        for name in (TASK, f"{TASK}0"):
            with SetWorkflowID(name):
                await DBOS.start_workflow_async(task)
        yield
    finally:
        await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=0, destroy_registry=True)


def acts(history: History | None) -> list[tuple[str, str]]:
    return [] if history is None else [(act.segment, act.name) for act in history.acts]


async def until(url: str, home: Path, name: str) -> History:
    """What is recorded once this step is."""
    for _ in range(300):
        history = await asyncio.to_thread(recorded, url, home, TASK)
        if history is not None and any(act.name == name for act in history.acts):
            return history
        await asyncio.sleep(0.1)
    raise AssertionError(f"{name} was never recorded: {acts(history)}")


async def test_steps_are_read_while_the_task_works_and_afterwards(url: str, tmp_path: Path):
    values = Values(tmp_path / "values")
    async with engine(url, values):
        working = await until(url, tmp_path / "values", "plan:policy")
        assert working.ended is None
        await DBOS.send_async(TASK, values.pack(Envelope, STOP), topic="inbox")
        await until(url, tmp_path / "values", "end")
    history = recorded(url, tmp_path / "values", TASK)
    assert history is not None
    assert acts(history) == [
        ("", "tell:1:coding"),
        ("step:s1", "step:s1:call:1"),
        ("step:s1", "step:s1:tool:1:0"),
        ("step:s1", "of a later version"),
        ("step:s1", "plan:policy"),
        ("", "DBOS.recv"),
        ("", "end"),
    ]
    tell, call, tool, later, policy, heard, end = history.acts
    assert (tell.stage, end.kind) == (Stage.CODING, Kind.EFFECT)
    assert (call.kind, call.said) == (Kind.MODEL, (Said("", "tool_use"),))
    assert tool.said == (Said('read "a\\033.py"', "a.py, lines 1–2 of 2"), Said("run pytest -q", "exit 1", ok=False))
    assert (later.kind, later.said) == (Kind.WORK, (Said(""),))
    assert policy.said == (Said("", "ended the task: The plan names a file that is not there.", ok=False),)
    assert heard.said == (Said("ana: /agent stop"),)
    assert [segment.key for segment in history.segments] == ["step:s1"]
    assert history.began <= tell.began <= tool.began <= tool.ended <= end.ended
    elsewhere = recorded(url, tmp_path / "elsewhere", TASK)
    assert elsewhere is not None  # without the large values a step is still told
    assert elsewhere.acts[2].said == (Said("", "what came of it cannot be read any more"),)
    assert elsewhere.acts[3:] == history.acts[3:]


async def test_queues_tell_what_waits_and_for_how_long(url: str, tmp_path: Path):
    async with engine(url, Values(tmp_path / "values")):

        @DBOS.workflow(name="parked")
        async def parked() -> None:
            await DBOS.recv_async("inbox", timeout_seconds=60)

        names = ("intake", "work")
        opened = [
            await asyncio.to_thread(DBOS.register_queue, name, global_concurrency=1, polling_interval_sec=0.05)
            for name in names
        ]
        queues = Queues()
        queues.open(dict(zip(names, opened, strict=True)))
        queue = await queues.named("work")
        flows = [await queue.enqueue_async(parked) for _ in range(3)]
        for _ in range(300):
            figures = {each.queue: each for each in await queues.figures(time.time() + 100)}
            if figures["work"].running:
                break
            await asyncio.sleep(0.1)
        for flow in reversed(flows):  # the engine, while it ends, would begin the next one where it cannot run any more
            await DBOS.cancel_workflow_async(flow.workflow_id)
    assert (figures["work"].waiting, figures["work"].running) == (2, 1)
    assert 90 < figures["work"].oldest < 200
    assert figures["intake"] == QueueFigures("intake", 0, 0, 0.0)


def test_an_engine_that_was_never_there_is_not_made(tmp_path: Path):
    assert recorded(f"sqlite:///{tmp_path / 'engine.db'}", tmp_path, TASK) is None
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_does_not_answer_is_said(tmp_path: Path):
    with pytest.raises(Transient, match="cannot be read now"):
        recorded("postgresql://nobody@127.0.0.1:1/none", tmp_path, TASK)
    (tmp_path / "engine.db").write_bytes(b"no database at all")
    with pytest.raises(Transient, match="cannot be read now"):
        recorded(f"sqlite:///{tmp_path / 'engine.db'}", tmp_path, TASK)
