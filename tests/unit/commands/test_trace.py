"""The transcript of a task: found by what people know of it, read without changing it, safe to print."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from bot.commands.costs import CallCost
from bot.commands.trace import Call, Trace, as_json, listed_json, newest, trace
from bot.commands.transcript import cleaner, listed, transcript
from bot.domain.errors import UserError
from bot.domain.ids import DeliveryId
from bot.domain.money import MicroUsd
from bot.domain.spending import Usage
from bot.domain.task import Ending, Stage
from bot.providers.store.deliveries import Noted
from bot.providers.store.port import TaskRecord
from bot.providers.store.sql import open_store
from bot.settings import Settings
from bot.workflow.history import Act, History, Segment
from bot.workflow.outcomes import Kind, Said
from tests.contracts.stores.builders import BUDGET, approval, attempt, start
from tests.unit.stages.intake.builders import spec

SECRET = "hunter2-hunter2"
CLEAN = cleaner((SECRET,))
T0 = 1_796_000_000_000
TASK = "task:1:5:1"
RECORD = TaskRecord(spec(), Stage.NEEDS_HUMAN, "", 12, "1" * 40, Ending(Stage.NEEDS_HUMAN, "Twice.", "Say more."))


def call(key: str, *, number: int = 1, settled: bool = True, outcome: str = "ok", miss: str = "", at: int = 0) -> Call:
    usage = Usage(input=3, write_5m=5_208, read=1_639, output=1_216, thinking=480) if outcome == "ok" else Usage()
    cost = CallCost(TASK, key, "claude-x", "high", outcome, usage, MicroUsd(50_372), settled, miss)
    return Call(number, T0 // 1000 + at, cost)


def act(segment: str, name: str, kind: Kind, times: tuple[int, int], *said: Said, stage: Stage | None = None) -> Act:
    return Act(segment, name, kind, T0 + times[0], T0 + times[1], said, stage)


def told(stage: Stage, at: int) -> Act:
    return act("", f"tell:1:{stage.value}", Kind.EFFECT, (at, at + 10), Said("status comment"), stage=stage)


HISTORY = History(
    T0,
    T0 + 90_000_000,
    (
        Segment("plan", T0 + 5_000, T0 + 65_000, T0 + 70_000),
        Segment("step:s1", T0 + 70_000, T0 + 70_000, T0 + 90_000),
    ),
    (
        told(Stage.PREPARING, 400),
        act("prepare", "prepare:pin", Kind.WORK, (500, 900), Said("main at 1a2b3c", "tests: pytest -q")),
        told(Stage.PLANNING, 5_000),
        act("plan", "plan:call:1", Kind.MODEL, (65_100, 68_000), Said("", "end_turn")),
        told(Stage.CODING, 70_000),
        act("step:s1", "step:s1:call:1", Kind.MODEL, (70_100, 75_000), Said("", "tool_use")),
        act(
            "step:s1",
            "step:s1:tool:1:0",
            Kind.TOOL,
            (75_100, 75_300),
            Said("read shop/basket.py", "shop/basket.py, lines 1–57 of 57"),
            Said("run " + "python -m pytest -q tests/test_basket.py " * 3, "exit 1", ok=False),
        ),
        act(
            "step:s1",
            "step:s1:check:1",
            Kind.CHECK,
            (75_400, 82_000),
            Said("tests and scan", "broke test: a::b", ok=False),
        ),
        act("", "end", Kind.EFFECT, (90_000_000, 90_000_500), Said("status comment with the ending, label taken off")),
    ),
)
ONE = Trace(
    TASK,
    RECORD,
    calls=(
        call("plan:call:1", outcome="529 overloaded_error", at=65),
        call("plan:call:1", number=2, at=66),
        call("step:s1:call:1", miss="tools_changed", at=70),
        call("step:s1:call:1:alive:1", at=340),
        call("step:s1:call:2", settled=False, outcome="unknown fate", at=80),
    ),
    approvals=(approval(),),
    deliveries=(Noted(DeliveryId("72d3162e"), "issues", "2026-11-29T18:13:10.120+00:00", f"started {TASK}"),),
    history=HISTORY,
    earlier=("task:1:5:0",),
)


def text(one: Trace, width: int = 80) -> str:
    return "\n".join(line.text for line in transcript(one, CLEAN, width))


def test_the_transcript_of_a_task_that_ended(snapshot: SnapshotAssertion):
    assert text(ONE) == snapshot


def test_the_transcript_of_a_task_at_work(snapshot: SnapshotAssertion):
    waits = Segment("verify:1", T0 + 90_000, None, None)
    live = replace(RECORD, stage=Stage.CODING, ending=None, note="step 2 of 3")
    history = replace(HISTORY, ended=None, segments=(*HISTORY.segments, waits), acts=HISTORY.acts[:-1])
    assert text(replace(ONE, record=live, history=history, approvals=(), earlier=())) == snapshot


def test_without_the_engine_the_calls_are_told_and_why_there_is_no_more(snapshot: SnapshotAssertion):
    assert text(replace(ONE, history=None, deliveries=(), missing="The engine has no record of it.")) == snapshot


def test_no_line_is_wider_than_the_terminal():
    wide = replace(RECORD, spec=spec(title="価格を直す " * 30), note="x" * 300)
    for width in (80, 120):
        acts = (replace(HISTORY.acts[1], said=(Said("価格" * 200, "を直す " * 90),)), *HISTORY.acts)
        lines = transcript(replace(ONE, record=wide, history=replace(HISTORY, acts=acts)), CLEAN, width)
        assert max(cell_len(line.text) for line in lines) == width
    (row,) = listed(((wide, MicroUsd(7)),), CLEAN)
    assert cell_len(row.text) <= 80
    assert row.text.endswith("…")


HOSTILE = "\x1b]0;owned\x07a\x1b[31mb\u202ec\x9b2Jd\r\nsk-ant-REDACTED " + SECRET
HOSTILE += f" {SECRET[:4]}\u200b{SECRET[4:]}"


def test_nothing_reaches_the_terminal_that_it_would_obey_and_no_secret_is_shown():
    record = replace(RECORD, spec=spec(title=HOSTILE), ending=Ending(Stage.NEEDS_HUMAN, HOSTILE, HOSTILE))
    acts = (replace(HISTORY.acts[1], said=(Said(HOSTILE, HOSTILE),)), *HISTORY.acts)
    one = replace(ONE, record=record, history=replace(HISTORY, acts=acts), missing=HOSTILE)
    shown = [*text(one).splitlines(), *(line.text for line in listed(((record, MicroUsd(7)),), CLEAN))]
    for said in (*shown, as_json(one, CLEAN), listed_json(((record, MicroUsd(7)),), CLEAN)):
        assert said.isprintable()
        assert "\\u001b" not in said
        assert "abcd" not in said or "owned" not in said
        assert "hunt" not in said
        assert "\ufffd" not in said
        assert "sk-ant-api03" not in said


def test_json_has_all_of_it_in_exact_numbers():
    document = json.loads(as_json(ONE, CLEAN))
    assert [each["stage"] for each in document["stages"]] == ["queued", "preparing", "planning", "coding"]
    assert document["stages"][0]["seconds"] == 0.4
    assert document["stages"][-1]["seconds"] == 89_930.5
    assert document["cost_usd"] == 0.25186
    assert [each["attempt"] for each in document["calls"]] == [1, 2, 1, 1, 1]
    assert document["calls"][1]["usage"]["write_5m"] == 5_208
    assert document["calls"][1]["micro_usd"] == 50_372
    assert document["steps"][6]["did"][1]["ok"] is False
    assert document["ending"]["reason"] == "Twice."
    assert document["approvals"][0]["reviewer"]["login"] == "ana"
    assert document["segments"][0]["began"] > document["segments"][0]["queued"]


async def stored(home: Path) -> Settings:
    """A store with two tasks of one issue, one of another repository's, and a run on a local clone."""
    settings = Settings(home=home, database_url="")
    store = open_store(settings.database())
    for trigger, number, repository in (("a", 5, 1), ("b", 6, 1), ("c", 5, 2)):
        made = await store.tasks.start(start(trigger, number, repository), BUDGET)
        assert made is not None
        await store.tasks.end(made.id, Ending(Stage.CANCELLED, "Stopped."))
    again = await store.tasks.start(start("d", 5, 2), BUDGET)
    assert again is not None
    await store.ledger.open(attempt(task="run:7:1"), budget=BUDGET)
    await store.ledger.open(attempt(task="eval:7:m:1"), budget=BUDGET)
    store.close()
    return settings


@pytest.mark.parametrize(
    ("name", "task", "earlier"),
    [
        ("task:1:5:1", "task:1:5:1", ()),
        ("task:1:6", "task:1:6:1", ()),
        ("Acme/Shop#6", "task:1:6:1", ()),
        ("acme/shop#5", "task:2:5:2", ("task:2:5:1", "task:1:5:1")),
        ("run:7:1", "run:7:1", ()),
        ("run:", "run:7:1", ()),
        ("eval:7:m", "eval:7:m:1", ()),
    ],
)
async def test_a_task_is_found_by_what_people_know_of_it(
    tmp_path: Path, name: str, task: str, earlier: tuple[str, ...]
):
    found = await trace(await stored(tmp_path), name)
    assert (found.task, found.earlier) == (task, earlier)
    assert (found.record is None) == task.startswith(("run:", "eval:"))
    assert found.history is None
    assert found.missing


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("task:2:5", r"Several tasks begin with task:2:5: task:2:5:2, task:2:5:1\."),
        ("", "There is no task without a name; the newest are task:2:5:2"),
        ("task:9", r"There is no task task:9; the newest are task:2:5:2 \(acme/shop#5\), task:2:5:1"),
        ("acme/shop#7", "There is no task acme/shop#7; the newest are"),
        ("task:1:5:1%", "There is no task task:1:5:1%; the newest"),
        ("\x1b[31m", r"There is no task \\x1b\[31m; the newest"),
    ],
)
async def test_what_is_not_there_is_said_with_what_is(tmp_path: Path, name: str, says: str):
    with pytest.raises(UserError, match=says):
        await trace(await stored(tmp_path), name)


async def test_before_the_first_task_there_is_nothing_and_nothing_is_made(tmp_path: Path):
    settings = Settings(home=tmp_path / "never used", database_url="")
    elsewhere = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'none.db'}")
    for each in (settings, elsewhere):
        assert await newest(each, 20) == ()
        with pytest.raises(UserError, match="nothing was worked here yet"):
            await trace(each, "task:1")
    assert not settings.home.exists()
    assert not (tmp_path / "none.db").exists()
    assert [line.text for line in listed((), CLEAN)] == ["No task yet. Put the label on an issue."]


async def test_the_newest_tasks_stand_first_one_line_each(tmp_path: Path):
    found = await newest(await stored(tmp_path), 2)
    assert [record.spec.id for record, _ in found] == ["task:2:5:2", "task:2:5:1"]
    assert [line.text for line in listed(found, CLEAN)] == [
        "task:2:5:2  acme/shop#5  queued          $0.0000  Fix the sum",
        "task:2:5:1  acme/shop#5  cancelled       $0.0000  Fix the sum",
    ]
