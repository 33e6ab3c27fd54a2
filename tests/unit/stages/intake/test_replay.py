"""The story of a delivery, without any I/O."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from bot.domain.action import Nothing, StartTask
from bot.stages.intake.body import BodyFault
from bot.stages.intake.replay import Replay, assumed, replay
from tests.unit.stages.intake.builders import comment, examples, issue, payload, pull, review

LABELLED = payload("labeled", issue=issue(), label={"name": "agent"})
FACTS = assumed(bot=99, app=4242)


def told(document: Any, event: str | None = None) -> Replay:
    made = replay(json.dumps(document).encode(), event=event, facts=FACTS)
    assert isinstance(made, Replay), made
    return made


def test_a_bare_payload_is_told():
    made = told(LABELLED, "issues")
    assert isinstance(made.action, StartTask)
    assert made.story == (
        "delivery: issues",
        "event: labelled",
        "about: issue acme/shop#5, by ana",
        "live task: none",
        "permission: write (assumed)",
        "action: start_task",
        "trigger: label:5:2026-11-29T10:00:00Z",
    )


@pytest.mark.parametrize(
    "document",
    [
        {"event": "issues", "guid": "x", "request": {"headers": {}, "payload": LABELLED}},
        {"event": "issues", "payload": LABELLED},
        {"event": "issues", "id": "x", "body": json.dumps(LABELLED)},
        {"event": "issues", "id": "x", "body": base64.b64encode(json.dumps(LABELLED).encode()).decode()},
    ],
)
def test_githubs_record_and_our_own_are_told_alike(document: dict[str, Any]):
    assert told(document) == told(LABELLED, "issues")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"no json", "not JSON"),
        (b'{"action": "labeled"}', "which event"),
        (b'{"event": "issues", "body": "{]"}', "not JSON"),
        (b'{"event": "issues", "body": "%%%"}', "neither JSON nor base64"),
    ],
)
def test_a_file_that_is_no_delivery_says_so(document: bytes, reason: str):
    fault = replay(document, event=None, facts=FACTS)
    assert isinstance(fault, BodyFault)
    assert reason in fault.reason


def test_other_stories():
    assert told(payload("opened", issue=issue()), "issues").story[-1] == "ignored: we do nothing about `issues.opened`"
    assert told(payload("created", issue=issue(), comment=comment("/agent stop")), "issue_comment").story[-1] == (
        "message: command"
    )
    assert told(payload("created", issue=issue(), comment=comment("/agent dance")), "issue_comment").story[-1] == (
        "answer: unknown (dance)"
    )
    assert told(payload("created", issue=issue(), comment=comment("/agent help")), "issue_comment").story[-1] == (
        "answer: help"
    )
    quiet = told(payload("submitted", pull_request=pull(), review=review()), "pull_request_review")
    assert isinstance(quiet.action, Nothing)
    assert quiet.story[2:] == (
        "about: pull request acme/shop#12, by ana",
        "live task: none",
        "action: nothing",
        "because: no task works on this pull request",
    )


def test_every_example_of_github_has_a_story():
    for event, body in examples():
        assert told(body, event).story


def test_an_unknown_permission_is_refused():
    with pytest.raises(ValueError, match="owner"):
        assumed(bot=1, app=1, permission="owner")
