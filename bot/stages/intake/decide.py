"""Event and facts in, action out: the rules of who may ask for what. Pure; when a fact is not known, nothing is done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

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
    Closing,
    CommentDeleted,
    Commented,
    Event,
    GroundGained,
    GroundLost,
    Ignored,
    IssueClosed,
    Labelled,
    PullChanged,
    Reviewed,
    ReviewState,
    Unlabelled,
)
from bot.domain.ids import CommentId, UserId
from bot.domain.pull import Permission
from bot.domain.task import Stage, TaskSpec
from bot.stages.intake.commands import CommandFault, find_command


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """The operator's choices."""

    label: str = "agent"


@dataclass(frozen=True, slots=True)
class IntakeFacts:
    """What the event itself does not say. `permission` is the sender's, None while it was not read: then nothing is allowed."""

    bot: UserId
    app: int
    label: str = "agent"
    permission: Permission | None = None
    live: TaskSpec | None = None
    """The task that works on this issue or pull request now."""
    stage: Stage | None = None
    """Where it is."""
    latest: TaskSpec | None = None
    """The newest task of this issue or pull request, live or ended."""
    triggered: bool = False
    """This very label or comment has had its task: it came in a second delivery."""


def trigger(event: Event) -> str | None:
    """What names the task that this event may start; two deliveries of one label or comment name the same."""
    match event:
        case Labelled():
            return f"label:{event.subject.number}:{event.updated_at}"
        case Commented(on_line=True):
            return f"line:{event.comment_id}"
        case Commented(comment_id=None):
            return f"review:{event.review_id}"
        case Commented() | CommentDeleted():
            return f"comment:{event.comment_id}"
        case Reviewed():
            return f"review:{event.review_id}"
        case _:
            return None


def needs_permission(event: Event, facts: IntakeFacts) -> bool:
    """True when the answer depends on what the sender may do in the repository. Decides nothing; saves a call otherwise."""
    match event:
        case Labelled():
            return _label_unheard(event, facts) is None
        case Commented():
            return _comment_unheard(event, facts) is None
        case Reviewed():
            asks = event.state is ReviewState.CHANGES_REQUESTED or _commanded(event) is not None
            return _review_unheard(event, facts) is None and asks
        case (
            Unlabelled() | CommentDeleted() | PullChanged() | IssueClosed() | GroundLost() | GroundGained() | Ignored()
        ):
            return False
        case _:
            assert_never(event)


def decide(event: Event, facts: IntakeFacts) -> Action:
    """What the product does about this event."""
    match event:
        case Ignored():
            return Nothing(event.reason)
        case Labelled():
            return _label_unheard(event, facts) or _on_label(event, facts)
        case Commented():
            return _comment_unheard(event, facts) or _on_comment(event, facts)
        case Reviewed():
            return _review_unheard(event, facts) or _on_review(event, facts)
        case PullChanged():
            return _on_pull(event, facts)
        case IssueClosed():
            return _on_closed(event, facts)
        case Unlabelled():
            return _on_unlabelled(event, facts)
        case CommentDeleted():
            return _on_deleted(event, facts)
        case GroundLost() | GroundGained():
            return _on_ground(event)
        case _:
            assert_never(event)


def _on_ground(event: GroundLost | GroundGained) -> Action:
    if isinstance(event, GroundGained):
        return Onboard(event.installation, event.repositories)
    return TellTasks(event.installation, event.repositories, ClosedMessage(event.actor, event.why))


_HAD = Nothing("this label or comment has had its task")


def _label_unheard(event: Labelled, facts: IntakeFacts) -> Nothing | None:
    """Why this label is none of ours, whoever set it."""
    if event.label.casefold() != facts.label.casefold():
        return Nothing(f"the label `{event.label}` is not `{facts.label}`")
    if event.actor.is_bot or event.actor.id == facts.bot:
        return Nothing("a label set by a bot starts nothing")
    return None


def _on_label(event: Labelled, facts: IntakeFacts) -> Action:
    if facts.permission is None:
        return Nothing("what the sender may do is not known")
    if not facts.permission.can_write:
        return Answer(event.subject, "refused")
    if facts.triggered:
        return _HAD
    if event.subject.is_pull:
        return Answer(event.subject, "label_on_pull", facts.label)
    if not event.open:
        return Answer(event.subject, "closed")
    if facts.live is not None:
        return Answer(event.subject, "already_running", facts.live.id)
    return StartTask(
        subject=event.subject,
        requester=event.actor,
        trigger=str(trigger(event)),
        title=event.title,
        request=event.body,
    )


def _comment_unheard(event: Commented, facts: IntakeFacts) -> Nothing | None:
    """Why this comment commands nothing, whoever wrote it."""
    if event.actor.id == facts.bot or event.by_app == facts.app:
        return Nothing("our own comment")
    if event.actor.is_bot:
        return Nothing("a bot commands nothing")
    found = find_command(event.body)
    if found is None:
        return Nothing("no command")
    if event.locked and not _stops(found):
        return Nothing("the conversation is locked")
    return None


def _stops(found: Command | CommandFault) -> bool:
    return isinstance(found, Command) and found.verb is Verb.STOP


def _on_comment(event: Commented, facts: IntakeFacts) -> Action:
    found = find_command(event.body)
    if facts.permission is None or found is None:
        return Nothing("what the sender may do is not known")
    if facts.permission is Permission.NONE:
        return Nothing("the sender has no access")
    if not facts.permission.can_write and event.on_line:
        return Nothing("the sender may not write")
    if not facts.permission.can_write:
        return Answer(event.subject, "refused", comment_id=event.comment_id)
    if facts.triggered:
        return _HAD
    if isinstance(found, CommandFault):
        return Answer(event.subject, found.topic, found.detail, _reactable(event))
    return _on_command(event, found, facts)


def _reactable(event: Commented) -> CommentId | None:
    """The comment as one of the conversation; the text of a review or a comment on a line is none."""
    return None if event.review_id is not None or event.on_line else event.comment_id


def _on_command(event: Commented, command: Command, facts: IntakeFacts) -> Action:
    """A well-formed command by somebody who may write."""
    if command.verb is Verb.HELP:
        return Answer(event.subject, "help", comment_id=_reactable(event))
    if not event.open and command.verb not in {Verb.STATUS, Verb.STOP}:
        return Answer(event.subject, "closed", comment_id=_reactable(event))
    if command.verb in {Verb.RUN, Verb.FIX}:
        return _on_run(event, command, facts)
    if command.verb is Verb.RETRY and facts.live is None and facts.latest is not None:
        return _again(event, command, facts.latest)
    if command.verb is Verb.RETRY and facts.live is None and not event.subject.is_pull:
        return _on_run(event, command, facts)
    return _tell(event, command)


def _on_run(event: Commented, command: Command, facts: IntakeFacts) -> Action:
    if facts.live is not None and event.subject.is_pull:
        return _tell(event, command)
    if facts.live is not None:
        return Answer(event.subject, "already_running", facts.live.id, _reactable(event))
    if event.subject.is_pull:
        return Answer(event.subject, "pull_without_task", comment_id=_reactable(event))
    return StartTask(
        subject=event.subject,
        requester=event.actor,
        trigger=str(trigger(event)),
        title=event.title,
        request=_both(event.subject_body, command.argument),
        comment_id=_reactable(event),
    )


def _again(event: Commented, command: Command, latest: TaskSpec) -> StartTask:
    """The ended task once more, with its text as it was at its own trigger and what the comment adds."""
    return StartTask(
        subject=latest.subject,
        requester=event.actor,
        trigger=str(trigger(event)),
        title=latest.title,
        request=_both(latest.request, command.argument),
        comment_id=_reactable(event),
    )


def _both(request: str, added: str) -> str:
    return "\n\n".join(text for text in (request.strip(), added.strip()) if text)


def _tell(event: Commented, command: Command) -> TellTask:
    message = CommandMessage(event.actor, command, event.comment_id, event.review_id)
    return TellTask(event.subject, message, answer_without_task=True)


def _review_unheard(event: Reviewed, facts: IntakeFacts) -> Nothing | None:
    """Why this review changes nothing, whoever wrote it."""
    bot = event.reviewer.is_bot or event.reviewer.id == facts.bot
    if not bot and _commanded(event) is not None:
        return None
    if facts.live is None:
        return Nothing("no task works on this pull request")
    if event.state is ReviewState.DISMISSED:
        return None
    if bot:
        return Nothing("a bot's review approves nothing")
    if event.state not in {ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED}:
        return Nothing(f"a review in the state `{event.state}` asks for nothing")
    return None


def _commanded(event: Reviewed) -> Command | CommandFault | None:
    """The command in a review's text. A dismissal brings the old text along, which commands nothing a second time."""
    return None if event.state is ReviewState.DISMISSED else find_command(event.body)


def _on_review(event: Reviewed, facts: IntakeFacts) -> Action:
    """Every approval goes to the gate, which says on the pull request why one does not count; asking for work needs write."""
    found = _commanded(event)
    message = ReviewMessage(event.reviewer, event.review_id, event.state, event.commit_id, event.body, event.base_ref)
    told = TellTask(event.subject, message)
    if found is None and event.state is not ReviewState.CHANGES_REQUESTED:
        return told
    if facts.permission is None:
        return Nothing("what the reviewer may do is not known")
    if not facts.permission.can_write:
        approves = event.state is ReviewState.APPROVED and facts.live is not None
        return told if approves else Nothing("the reviewer may not write")
    return told if found is None else _on_commanding_review(event, found, message, facts)


def _on_commanding_review(
    event: Reviewed, found: Command | CommandFault, message: ReviewMessage, facts: IntakeFacts
) -> Action:
    """A review whose text holds a command, by somebody who may write: the review counts, and so does the command."""
    told = TellTask(event.subject, message)
    verdict = facts.live is not None and event.state in {ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED}
    if isinstance(found, CommandFault):
        answer = Answer(event.subject, found.topic, found.detail)
        return replace(told, also=answer) if verdict else answer
    if facts.triggered:
        return _HAD
    approves, verb = verdict and event.state is ReviewState.APPROVED, found.verb
    if approves and verb in {Verb.APPROVE, Verb.MERGE}:
        return replace(told, message=replace(message, command=found))
    if approves and verb in {Verb.STATUS, Verb.HELP, Verb.PLAN, Verb.RETRY}:
        return replace(told, also=Answer(event.subject, "help" if verb is Verb.HELP else "status"))
    if verdict and not approves and verb in {Verb.RUN, Verb.FIX}:
        return told
    return _on_command(_text_of(event), found, facts)


def _text_of(event: Reviewed) -> Commented:
    """The review's text as what somebody says in the conversation."""
    return Commented(
        subject=event.subject,
        actor=event.reviewer,
        comment_id=None,
        body=event.body,
        title="",
        subject_body="",
        open=event.open,
        locked=False,
        review_id=event.review_id,
    )


def _on_pull(event: PullChanged, facts: IntakeFacts) -> Action:
    if facts.live is None:
        return Nothing("no task works on this pull request")
    if event.actor.id == facts.bot:
        return Nothing("our own act")
    return TellTask(event.subject, PullMessage(event.actor, event.activity, event.head_sha, event.merged))


def _on_closed(event: IssueClosed, facts: IntakeFacts) -> Action:
    if facts.live is None:
        return Nothing("no task works on this issue")
    if event.actor.id == facts.bot:
        return Nothing("our own act")
    return TellTask(event.subject, ClosedMessage(event.actor, event.why))


_NOT_BEGUN = frozenset({Stage.QUEUED, Stage.PREPARING})
"""Before anything was spent."""


def _on_unlabelled(event: Unlabelled, facts: IntakeFacts) -> Action:
    """Taking the label off before the work began is taking the request back; later, only a word that it goes on."""
    if event.label.casefold() != facts.label.casefold():
        return Nothing(f"the label `{event.label}` is not `{facts.label}`")
    if event.actor.is_bot or event.actor.id == facts.bot:
        return Nothing("a label taken off by a bot stops nothing")
    if facts.live is None:
        return Nothing("no task works on this")
    if facts.stage in _NOT_BEGUN:
        return TellTask(event.subject, ClosedMessage(event.actor, Closing.LABEL_REMOVED))
    return Answer(event.subject, "label_off", facts.label)


def _on_deleted(event: CommentDeleted, facts: IntakeFacts) -> Action:
    if facts.live is None or not facts.triggered:
        return Nothing("no task began with this comment")
    return Answer(event.subject, "trigger_deleted")
