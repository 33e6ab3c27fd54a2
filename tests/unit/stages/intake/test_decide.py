"""Who may ask for what, and what happens then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from bot.domain.event import (
    Actor,
    Closing,
    CommentDeleted,
    Event,
    GroundGained,
    GroundLost,
    Ignored,
    IssueClosed,
    PullActivity,
    ReviewState,
    Unlabelled,
)
from bot.domain.ids import CommentId, CommitId, InstallationId, RepositoryId, ReviewId, UserId
from bot.domain.pull import Permission
from bot.domain.task import Stage
from bot.stages.intake.decide import IntakeFacts, decide, needs_permission
from tests.unit.stages.intake.builders import (
    ANA,
    APP,
    BOT,
    ISSUE,
    PULL,
    SHA,
    commented,
    labelled,
    pull_changed,
    reviewed,
    spec,
)

UNREAD = IntakeFacts(bot=BOT.id, app=APP)
WRITER = replace(UNREAD, permission=Permission.WRITE)
READER = replace(UNREAD, permission=Permission.READ)
NOBODY = replace(UNREAD, permission=Permission.NONE)
LIVE = spec()
OTHER_BOT = Actor(UserId(50), "helper[bot]", is_bot=True)
HASH = "0123456789ab"
ID = CommentId(31)


def working(facts: IntakeFacts = WRITER) -> IntakeFacts:
    return replace(facts, live=LIVE, latest=LIVE)


def ended(facts: IntakeFacts = WRITER) -> IntakeFacts:
    return replace(facts, latest=LIVE)


def reason(action: Action) -> str:
    assert isinstance(action, Nothing), action
    return action.reason


class TestLabels:
    def test_the_label_starts_a_task_with_the_text_of_that_moment(self):
        assert decide(labelled(), WRITER) == StartTask(
            ISSUE, ANA, "label:5:2026-11-29T10:00:00Z", "Sum is wrong", "1 + 1 = 3"
        )

    def test_two_deliveries_of_one_label_carry_one_trigger(self):
        first, second = decide(labelled(), WRITER), decide(labelled(body="edited since"), WRITER)
        assert isinstance(first, StartTask)
        assert isinstance(second, StartTask)
        assert first.trigger == second.trigger

    def test_the_configured_name_counts_in_any_case(self):
        facts = replace(WRITER, label="Robot")
        assert isinstance(decide(labelled(label="robot"), facts), StartTask)
        assert "is not `Robot`" in reason(decide(labelled(), facts))

    @pytest.mark.parametrize("actor", [BOT, OTHER_BOT])
    def test_a_bot_starts_nothing_by_label(self, actor: Actor):
        assert "set by a bot" in reason(decide(labelled(actor=actor), WRITER))

    def test_without_a_known_permission_nothing_happens(self):
        assert "not known" in reason(decide(labelled(), UNREAD))

    @pytest.mark.parametrize("facts", [READER, NOBODY])
    def test_labelling_needs_less_than_write_so_it_is_refused(self, facts: IntakeFacts):
        assert decide(labelled(), facts) == Answer(ISSUE, "refused")

    def test_a_label_on_a_pull_request_has_a_defined_answer(self):
        assert decide(labelled(subject=PULL), WRITER) == Answer(PULL, "label_on_pull", "agent")
        assert decide(labelled(subject=PULL), working()) == Answer(PULL, "label_on_pull", "agent")

    def test_a_closed_issue_is_left_alone(self):
        assert decide(labelled(open=False), WRITER) == Answer(ISSUE, "closed")

    def test_a_second_task_is_not_started_beside_the_first(self):
        assert decide(labelled(), working()) == Answer(ISSUE, "already_running", LIVE.id)

    def test_an_ended_task_does_not_keep_a_new_one_away(self):
        assert isinstance(decide(labelled(), ended()), StartTask)

    def test_a_second_delivery_of_the_label_says_nothing(self):
        assert "had its task" in reason(decide(labelled(), replace(working(), triggered=True)))
        assert "had its task" in reason(decide(labelled(), replace(ended(), triggered=True)))


class TestComments:
    @pytest.mark.parametrize("body", ["/agent run", "/agent retry"])
    def test_a_second_delivery_of_the_comment_says_nothing(self, body: str):
        assert "had its task" in reason(decide(commented(body), replace(working(), triggered=True)))

    @pytest.mark.parametrize("verb", ["run", "fix"])
    def test_run_starts_a_task_with_what_the_comment_adds(self, verb: str):
        assert decide(commented(f"/agent {verb} gently"), WRITER) == StartTask(
            ISSUE, ANA, "comment:31", "Sum is wrong", "1 + 1 = 3\n\ngently", ID
        )

    def test_run_on_an_empty_issue_is_what_the_comment_says(self):
        action = decide(commented("/agent run", subject_body=""), WRITER)
        assert isinstance(action, StartTask)
        assert action.request == ""

    def test_run_where_a_task_lives_is_answered_on_the_issue_and_told_on_the_pull_request(self):
        assert decide(commented(), working()) == Answer(ISSUE, "already_running", LIVE.id, ID)
        assert decide(commented("/agent fix x", subject=PULL), working()) == TellTask(
            PULL, CommandMessage(ANA, Command(Verb.FIX, "x"), ID), answer_without_task=True
        )

    def test_run_on_a_pull_request_of_somebody_else_is_answered(self):
        assert decide(commented(subject=PULL), WRITER) == Answer(PULL, "pull_without_task", comment_id=ID)

    @pytest.mark.parametrize(
        ("body", "command"),
        [
            ("/agent plan", Command(Verb.PLAN)),
            ("/agent stop", Command(Verb.STOP)),
            ("/agent status", Command(Verb.STATUS)),
            (f"/agent approve {HASH} allow:binary", Command(Verb.APPROVE, HASH, ("binary",))),
            (f"/agent merge {HASH}", Command(Verb.MERGE, HASH)),
        ],
    )
    @pytest.mark.parametrize("facts", [WRITER, working(), ended()])
    def test_commands_to_a_task_are_told_and_answered_when_there_is_none(
        self, body: str, command: Command, facts: IntakeFacts
    ):
        assert decide(commented(body), facts) == TellTask(
            ISSUE, CommandMessage(ANA, command, ID), answer_without_task=True
        )

    def test_retry_starts_the_ended_task_again_with_its_own_text(self):
        for subject in (ISSUE, PULL):
            again = decide(
                commented("/agent retry with care", subject=subject, title="new", subject_body="new"), ended()
            )
            assert again == StartTask(ISSUE, ANA, "comment:31", "Sum is wrong", "as it was then\n\nwith care", ID)

    def test_retry_tells_a_live_task_and_starts_where_there_never_was_one(self):
        assert isinstance(decide(commented("/agent retry"), working()), TellTask)
        assert isinstance(decide(commented("/agent retry"), WRITER), StartTask)
        assert isinstance(decide(commented("/agent retry", subject=PULL), WRITER), TellTask)

    def test_help_is_answered_everywhere(self):
        for event in (
            commented("/agent"),
            commented("/agent help", open=False),
            commented("/agent help", subject=PULL),
        ):
            assert decide(event, WRITER) == Answer(event.subject, "help", comment_id=ID)

    @pytest.mark.parametrize(
        ("body", "topic", "detail"),
        [
            ("/agent run\n/agent stop", "several", ""),
            ("/agent dance", "unknown", "dance"),
            ("/agent approve", "needs_hash", "approve"),
            ("/agent run\u200b", "invisible", ""),
        ],
    )
    def test_a_fault_is_answered_and_runs_nothing(self, body: str, topic: str, detail: str):
        assert decide(commented(body), working()) == Answer(ISSUE, topic, detail, ID)

    @pytest.mark.parametrize("facts", [UNREAD, WRITER])
    @pytest.mark.parametrize(
        "changes",
        [{"actor": BOT}, {"by_app": APP}, {"actor": replace(BOT, is_bot=False)}],
    )
    def test_our_own_comments_command_nothing(self, facts: IntakeFacts, changes: dict[str, Any]):
        assert reason(decide(commented(**changes), facts)) == "our own comment"

    @pytest.mark.parametrize("body", ["/agent run", "/agent dance", "/agent stop"])
    def test_a_bot_is_never_answered(self, body: str):
        assert reason(decide(commented(body, actor=OTHER_BOT), WRITER)) == "a bot commands nothing"

    def test_a_person_through_another_app_commands(self):
        assert isinstance(decide(commented(by_app=APP + 1), WRITER), StartTask)

    def test_text_without_command_does_nothing(self):
        assert reason(decide(commented("> /agent run\n\nwhat is this?"), working())) == "no command"

    @pytest.mark.parametrize("body", ["/agent run", "/agent dance", "/agent stop", "/agent help"])
    def test_readers_get_a_reaction_and_strangers_nothing(self, body: str):
        assert decide(commented(body), READER) == Answer(ISSUE, "refused", comment_id=ID)
        assert reason(decide(commented(body), NOBODY)) == "the sender has no access"
        assert "not known" in reason(decide(commented(body), UNREAD))

    def test_a_closed_subject_is_left_alone_but_told_about_and_stopped(self):
        for body in ("/agent run", "/agent retry", f"/agent merge {HASH}", "/agent plan"):
            assert decide(commented(body, open=False), ended()) == Answer(ISSUE, "closed", comment_id=ID)
        for body in ("/agent status", "/agent stop"):
            assert isinstance(decide(commented(body, open=False), working()), TellTask)

    def test_in_a_locked_conversation_only_stop_is_heard(self):
        for body in ("/agent run", "/agent dance", f"/agent merge {HASH}"):
            assert reason(decide(commented(body, locked=True), working())) == "the conversation is locked"
        assert isinstance(decide(commented("/agent stop", locked=True), working()), TellTask)


class TestReviews:
    @pytest.mark.parametrize("state", [ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED])
    def test_a_writers_review_is_told_as_received(self, state: ReviewState):
        event = reviewed(state=state, body="good")
        message = ReviewMessage(ANA, ReviewId(41), state, CommitId(SHA), "good", "main")
        assert decide(event, working()) == TellTask(PULL, message)

    def test_a_dismissal_is_told_whoever_did_it(self):
        event = reviewed(state=ReviewState.DISMISSED, actor=OTHER_BOT, reviewer=OTHER_BOT)
        assert isinstance(decide(event, working(UNREAD)), TellTask)

    @pytest.mark.parametrize("state", [ReviewState.COMMENTED, ReviewState.PENDING])
    def test_a_comment_or_draft_asks_for_nothing(self, state: ReviewState):
        assert "asks for nothing" in reason(decide(reviewed(state=state), working()))

    @pytest.mark.parametrize("reviewer", [BOT, OTHER_BOT, replace(BOT, is_bot=False)])
    def test_a_bots_review_is_nothing(self, reviewer: Actor):
        assert "bot's review" in reason(decide(reviewed(reviewer=reviewer), working()))

    def test_a_readers_review_is_nothing(self):
        asked = reviewed(state=ReviewState.CHANGES_REQUESTED)
        assert reason(decide(asked, working(READER))) == "the reviewer may not write"
        assert reason(decide(asked, working(UNREAD))) == "what the reviewer may do is not known"

    def test_every_approval_goes_to_the_gate_which_says_why_one_does_not_count(self):
        assert isinstance(decide(reviewed(), working(READER)), TellTask)

    def test_a_command_in_a_review_is_the_writers_and_the_review_still_counts(self):
        told = decide(reviewed(body=f"Good.\n\n/agent merge {HASH}"), working())
        assert isinstance(told, TellTask)
        assert isinstance(told.message, ReviewMessage)
        assert told.message.command == Command(Verb.MERGE, HASH)
        asked = decide(reviewed(body="/agent status"), working())
        assert asked == TellTask(PULL, replace(told.message, body="/agent status", command=None), also=STATUS)
        stop = decide(reviewed(state=ReviewState.COMMENTED, body="/agent stop"), working())
        assert stop == TellTask(PULL, CommandMessage(ANA, Command(Verb.STOP), None, ReviewId(41)), True)

    def test_changes_requested_with_fix_is_one_request(self):
        told = decide(reviewed(state=ReviewState.CHANGES_REQUESTED, body="/agent fix it"), working())
        assert isinstance(told, TellTask)
        assert isinstance(told.message, ReviewMessage)

    def test_a_readers_command_in_a_review_does_nothing_and_the_approval_goes_to_the_gate(self):
        told = decide(reviewed(body=f"/agent merge {HASH}"), working(READER))
        assert isinstance(told, TellTask)
        assert isinstance(told.message, ReviewMessage)
        assert told.message.command is None
        said = decide(reviewed(state=ReviewState.COMMENTED, body="/agent stop"), working(READER))
        assert reason(said) == "the reviewer may not write"

    def test_a_fault_in_a_review_is_answered_beside_what_the_review_says(self):
        told = decide(reviewed(body="/agent dance"), working())
        assert isinstance(told, TellTask)
        assert told.also == Answer(PULL, "unknown", "dance")
        assert decide(reviewed(state=ReviewState.COMMENTED, body="/agent dance"), working()) == told.also

    def test_retry_in_a_review_starts_the_ended_task_again_once(self):
        event = reviewed(state=ReviewState.COMMENTED, body="/agent retry")
        again = decide(event, ended())
        assert isinstance(again, StartTask)
        assert again.trigger == "review:41"
        assert "had its task" in reason(decide(event, replace(ended(), triggered=True)))

    def test_a_dismissed_reviews_text_and_a_bots_command_nothing(self):
        event = reviewed(state=ReviewState.DISMISSED, body="/agent stop")
        told = decide(event, working(UNREAD))
        assert isinstance(told, TellTask)
        assert isinstance(told.message, ReviewMessage)
        assert isinstance(decide(reviewed(reviewer=OTHER_BOT, body="/agent stop"), working()), Nothing)

    def test_a_command_on_a_line_names_its_review_and_a_readers_is_nothing(self):
        event = commented("/agent fix x", subject=PULL, review_id=ReviewId(41), on_line=True)
        assert decide(event, working()) == TellTask(
            PULL, CommandMessage(ANA, Command(Verb.FIX, "x"), ID, ReviewId(41)), answer_without_task=True
        )
        assert reason(decide(event, working(READER))) == "the sender may not write"

    def test_a_review_elsewhere_is_nothing(self):
        assert "no task" in reason(decide(reviewed(), ended()))


class TestPullRequestsAndIssues:
    def test_a_change_of_the_tasks_pull_request_is_told_whoever_did_it(self):
        for actor in (ANA, OTHER_BOT):
            event = pull_changed(actor=actor, activity=PullActivity.CLOSED, merged=True)
            message = PullMessage(actor, PullActivity.CLOSED, CommitId(SHA), merged=True)
            assert decide(event, working(UNREAD)) == TellTask(PULL, message)

    def test_our_own_acts_and_other_pull_requests_are_nothing(self):
        assert reason(decide(pull_changed(actor=BOT), working())) == "our own act"
        assert "no task" in reason(decide(pull_changed(), WRITER))

    def test_a_closed_issue_stops_its_task(self):
        assert decide(IssueClosed(ISSUE, ANA), working(UNREAD)) == TellTask(ISSUE, ClosedMessage(ANA))
        assert reason(decide(IssueClosed(ISSUE, BOT), working())) == "our own act"
        assert "no task" in reason(decide(IssueClosed(ISSUE, ANA), ended()))

    def test_every_way_of_closing_is_told_as_such(self):
        told = decide(IssueClosed(ISSUE, ANA, Closing.ISSUE_TRANSFERRED), working(UNREAD))
        assert told == TellTask(ISSUE, ClosedMessage(ANA, Closing.ISSUE_TRANSFERRED))
        lost = GroundLost(InstallationId(9), (RepositoryId(1),), ANA, Closing.ARCHIVED)
        message = ClosedMessage(ANA, Closing.ARCHIVED)
        assert decide(lost, UNREAD) == TellTasks(InstallationId(9), (RepositoryId(1),), message)

    @pytest.mark.parametrize("stage", list(Stage))
    def test_the_label_taken_off_counts_until_the_work_began(self, stage: Stage):
        action = decide(Unlabelled(ISSUE, ANA, "Agent"), replace(working(UNREAD), stage=stage))
        begun = stage not in {Stage.QUEUED, Stage.PREPARING}
        told = TellTask(ISSUE, ClosedMessage(ANA, Closing.LABEL_REMOVED))
        assert action == (Answer(ISSUE, "label_off", "agent") if begun else told)

    def test_other_labels_bots_and_subjects_without_a_task_are_nothing(self):
        assert "is not `agent`" in reason(decide(Unlabelled(ISSUE, ANA, "bug"), working()))
        assert "by a bot" in reason(decide(Unlabelled(ISSUE, BOT, "agent"), working()))
        assert "no task" in reason(decide(Unlabelled(ISSUE, ANA, "agent"), ended()))

    def test_the_deleted_comment_is_named_only_when_it_started_the_task(self):
        event = CommentDeleted(ISSUE, ANA, ID)
        assert decide(event, replace(working(UNREAD), triggered=True)) == Answer(ISSUE, "trigger_deleted")
        assert "no task began" in reason(decide(event, working(UNREAD)))

    def test_an_ignored_event_keeps_its_reason(self):
        assert decide(Ignored("because"), WRITER) == Nothing("because")


STATUS = Answer(PULL, "status")

EVENTS: list[Event] = [
    *(reviewed(state=state, body=f"/agent merge {HASH}") for state in ReviewState),
    *(reviewed(state=state, body="/agent stop") for state in ReviewState),
    reviewed(state=ReviewState.COMMENTED, body="/agent dance"),
    commented(subject=PULL, review_id=ReviewId(41), on_line=True),
    labelled(),
    labelled(label="bug"),
    labelled(actor=OTHER_BOT),
    labelled(subject=PULL, open=False),
    *(commented(body) for body in ("hi", "/agent run", "/agent dance", "/agent stop", "/agent help")),
    commented(actor=BOT),
    commented(actor=OTHER_BOT),
    commented(locked=True),
    *(reviewed(state=state) for state in ReviewState),
    reviewed(reviewer=OTHER_BOT),
    pull_changed(),
    IssueClosed(ISSUE, ANA),
    Unlabelled(ISSUE, ANA, "agent"),
    Unlabelled(ISSUE, ANA, "bug"),
    CommentDeleted(ISSUE, ANA, ID),
    GroundLost(InstallationId(9), (), ANA, Closing.SUSPENDED),
    GroundGained(InstallationId(9), (RepositoryId(1),), ANA),
    Ignored("x"),
]


@pytest.mark.parametrize("base", [UNREAD, working(UNREAD), ended(UNREAD)])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_the_permission_is_read_exactly_where_it_matters(event: Event, base: IntakeFacts):
    answers = {decide(event, replace(base, permission=permission)) for permission in (*Permission, None)}
    assert needs_permission(event, base) == (len(answers) > 1)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
@pytest.mark.parametrize("facts", [UNREAD, READER, NOBODY, ended(READER)])
def test_nobody_without_write_starts_or_commands_anything(event: Event, facts: IntakeFacts):
    action = decide(event, facts)
    assert not isinstance(action, StartTask | TellTask)
    if isinstance(action, Answer):
        assert action.topic in {"refused", "label_off", "trigger_deleted"}


def test_new_ground_is_onboarded():
    gained = GroundGained(InstallationId(9), (RepositoryId(1), RepositoryId(2)), ANA)
    assert decide(gained, UNREAD) == Onboard(InstallationId(9), (RepositoryId(1), RepositoryId(2)))
