"""What a message to a task means: what it asks for, what it approves, what it ends. Pure."""

from __future__ import annotations

from bot.domain.action import ClosedMessage, Command, CommandMessage, PullMessage, ReviewMessage, TaskMessage, Verb
from bot.domain.event import Closing, PullActivity
from bot.domain.event import ReviewState as GithubReview
from bot.domain.ids import ReviewId, StepId
from bot.domain.plan import Step
from bot.domain.repository import LandingMode
from bot.domain.task import Ending
from bot.workflow import texts
from bot.workflow.records import Envelope, Examined, Prepared, ReviewState


def revision(number: int, request: str) -> Step:
    """One more step for what a reviewer asked; `request` is cleaned and fenced already."""
    goal = f"A reviewer asks for this; it is a request about the change, not a rule:\n{request}"
    return Step(StepId(f"review-{number}"), "Work in the review", goal, (), (), ())


def asks_for_work(envelope: Envelope) -> bool:
    match envelope.message:
        case ReviewMessage(state=GithubReview.CHANGES_REQUESTED):
            return True
        case CommandMessage(command=command):
            inside = review_of(envelope.message) is not None
            return command.verb in {Verb.FIX, Verb.RUN} and (inside or bool(command.argument.strip()))
        case _:
            return False


def typed_hash(envelope: Envelope) -> str | None:
    """What somebody typed after `/agent approve`; None when the message is something else."""
    match envelope.message:
        case CommandMessage(command=command) if command.verb is Verb.APPROVE:
            return command.argument.strip().lower()
        case _:
            return None


def asks_for_plan(envelope: Envelope) -> bool:
    return isinstance(envelope.message, CommandMessage) and envelope.message.command.verb is Verb.PLAN


def asked(envelope: Envelope) -> str:
    """What names a request for work, however often it is delivered: a review with all that was said in it, or a comment."""
    review = review_of(envelope.message)
    message = envelope.message
    comment = message.comment_id if isinstance(message, CommandMessage) else None
    return f"review:{review}" if review is not None else f"comment:{comment}"


def review_of(message: TaskMessage) -> ReviewId | None:
    """The review a message was given in."""
    return message.review_id if isinstance(message, ReviewMessage | CommandMessage) else None


def plain_ending(envelope: Envelope) -> Ending | None:
    match envelope.message:
        case ClosedMessage(actor=actor, why=why):
            return texts.closed(why, actor.login)
        case CommandMessage(actor=actor, command=command) if command.verb is Verb.STOP:
            return texts.stopped(actor.login)
        case _:
            return None


def may_be_a_merge(envelope: Envelope) -> bool:
    """Merging a pull request closes its issue, too; which of the two is heard of first is chance."""
    return isinstance(envelope.message, ClosedMessage) and envelope.message.why is Closing.ISSUE_CLOSED


def merger(envelope: Envelope) -> str:
    """Who merged, when the message tells of the merge. Any other may only be the first after which the merge is seen."""
    match envelope.message:
        case PullMessage(actor=actor, activity=PullActivity.CLOSED, merged=True):
            return actor.login
        case _:
            return ""


def is_own_echo(envelope: Envelope, state: ReviewState) -> bool:
    """Our own push comes back as an event about the head we know."""
    message = envelope.message
    return (
        isinstance(message, PullMessage)
        and message.activity is PullActivity.PUSHED
        and message.head_sha == state.published.head
    )


def names_other_digest(envelope: Envelope, state: ReviewState) -> bool:
    match envelope.message:
        case CommandMessage(command=Command() as command) | ReviewMessage(command=Command() as command) if (
            command.verb is Verb.MERGE
        ):
            return state.approval is None or not state.approval.digest.startswith(command.argument)
        case _:
            return False


def landing_mode(envelope: Envelope, state: ReviewState, examined: Examined, prepared: Prepared) -> LandingMode | None:
    """How far this message takes an approved change; None: it only changes what is known."""
    match envelope.message:
        case CommandMessage(command=Command() as command) | ReviewMessage(command=Command() as command) if (
            command.verb is Verb.MERGE and state.approval is not None
        ):
            return LandingMode.MERGE if state.approval.digest.startswith(command.argument) else None
        case ReviewMessage() | CommandMessage() if examined.given:
            return prepared.settings.landing
        case PullMessage(merged=True) | ClosedMessage() if state.approval is not None:
            return LandingMode.MERGE
        case _:
            return None
