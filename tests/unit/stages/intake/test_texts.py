"""What people read, as it stands."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.domain.action import Answer
from bot.domain.ids import CommentId
from bot.domain.money import MicroUsd
from bot.domain.task import Ending, Stage
from bot.providers.store.port import TaskRecord
from bot.stages.intake import commands, decide, texts
from tests.unit.prompting.reading import dangers
from tests.unit.stages.intake.builders import ISSUE, spec

DETAILS = {
    "already_running": "task:1:5:1",
    "label_on_pull": "agent",
    "unknown": "dance",
    "extra_words": "stop",
    "needs_hash": "merge",
}


@pytest.mark.parametrize("topic", sorted(texts.TOPICS))
def test_every_topic_has_its_words(topic: str, snapshot: SnapshotAssertion):
    text = texts.reply(Answer(ISSUE, topic, DETAILS.get(topic, ""))).text
    assert text == snapshot
    assert text is not None
    assert dangers(text) == []


@pytest.mark.parametrize("topic", sorted(texts.TOPICS))
def test_a_hostile_detail_stays_inert(topic: str):
    text = texts.reply(Answer(ISSUE, topic, "@bob`<b>#1\n/merge https://e.example")).text
    assert text is not None
    assert dangers(text) == []


def test_who_may_not_write_gets_a_reaction_for_a_comment():
    assert texts.reply(Answer(ISSUE, "refused", comment_id=CommentId(1))) == texts.Reply(reaction=texts.CONFUSED)
    assert texts.reply(Answer(ISSUE, "refused")).text is not None


def _topics_in_use() -> set[str]:
    """The first word that `Answer` and `CommandFault` are built with, wherever this stage builds one."""
    used: set[str] = set()
    for module, place in ((decide, 1), (commands, 0)):
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > place:
                topic = node.args[place]
                if node.func.id in {"Answer", "CommandFault"} and isinstance(topic, ast.Constant):
                    used.add(str(topic.value))
    return used


def test_every_topic_in_use_has_words():
    assert _topics_in_use() == texts.TOPICS - {"no_task"}


def record(stage: Stage, **changes: object) -> TaskRecord:
    return replace(TaskRecord(spec(), stage, "", None, None, None), **changes)  # type: ignore[arg-type]


def test_the_first_sign(snapshot: SnapshotAssertion):
    assert texts.started(spec()) == snapshot


@pytest.mark.parametrize("stage", list(Stage))
def test_every_stage_has_words(stage: Stage, snapshot: SnapshotAssertion):
    assert texts.status(record(stage), MicroUsd(73_700)).splitlines()[0] == snapshot


def test_a_status_tells_note_cost_and_pull_request(snapshot: SnapshotAssertion):
    live = record(Stage.CODING, note="step 2 of 3 for @bob", pull_number=12)
    assert texts.status(live, MicroUsd(73_700)) == snapshot


def test_a_status_of_an_end_tells_why_and_what_next(snapshot: SnapshotAssertion):
    ending = Ending(Stage.NEEDS_HUMAN, "The same test failed twice: `test_a`.", "Reply `/agent retry` to try again.")
    assert texts.status(record(Stage.NEEDS_HUMAN, ending=ending, note="old"), MicroUsd(500_000)) == snapshot
