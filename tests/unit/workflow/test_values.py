"""What the engine writes down comes back as it was: every action and message, with all that they carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.domain.action import (
    Action,
    Answer,
    ClosedMessage,
    Command,
    CommandMessage,
    Nothing,
    Onboard,
    PullMessage,
    ReviewMessage,
    StartTask,
    TellTask,
    TellTasks,
    Verb,
)
from bot.domain.event import Actor, Closing, PullActivity, ReviewState, Subject
from bot.domain.ids import CommentId, CommitId, DeliveryId, InstallationId, RepositoryId, ReviewId, UserId
from bot.domain.repository import RepositoryRef
from bot.workflow.intake import _Decided
from bot.workflow.records import Envelope
from bot.workflow.values import Values

ADA = Actor(UserId(1), "ada", is_bot=False)
SUBJECT = Subject(RepositoryRef(RepositoryId(1), "o/r", InstallationId(2)), 3, is_pull=True)
HEAD = CommitId("a" * 40)
REVIEW = ReviewMessage(
    ADA, ReviewId(1), ReviewState.APPROVED, HEAD, "Good.", "main", Command(Verb.MERGE, "0" * 12, ("binary",))
)
ACTIONS: tuple[Action, ...] = (
    Nothing("because"),
    Answer(SUBJECT, "status", "x", CommentId(4)),
    StartTask(SUBJECT, ADA, "review:1", "Title", "Text"),
    TellTask(SUBJECT, REVIEW, also=Answer(SUBJECT, "status")),
    TellTask(SUBJECT, CommandMessage(ADA, Command(Verb.FIX, "it"), None, ReviewId(3)), answer_without_task=True),
    TellTask(SUBJECT, PullMessage(ADA, PullActivity.CLOSED, HEAD, merged=True)),
    TellTask(SUBJECT, ClosedMessage(ADA, Closing.LABEL_REMOVED)),
    TellTasks(InstallationId(2), (RepositoryId(1),), ClosedMessage(ADA, Closing.ARCHIVED)),
    Onboard(InstallationId(2), (RepositoryId(1),)),
)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.kind)
def test_an_action_and_its_message_survive_the_database(action: Action, tmp_path: Path) -> None:
    values = Values(tmp_path)
    decided = _Decided(action)
    assert values.unpack(_Decided, values.pack(_Decided, decided)) == decided
    if isinstance(action, TellTask | TellTasks):
        envelope = Envelope(action.message, DeliveryId("d"), "now")
        assert values.unpack(Envelope, values.pack(Envelope, envelope)) == envelope
