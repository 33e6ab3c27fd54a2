"""What the product decides to do about an event."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from bot.domain.event import Actor, Closing, PullActivity, ReviewState, Subject
from bot.domain.ids import CommentId, CommitId, InstallationId, RepositoryId, ReviewId


class Verb(StrEnum):
    """The words after `/agent`."""

    RUN = "run"
    FIX = "fix"
    PLAN = "plan"
    APPROVE = "approve"
    MERGE = "merge"
    RETRY = "retry"
    STOP = "stop"
    STATUS = "status"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed `/agent` command: verb, and what follows it (free text is untrusted data; for approve and merge a hash)."""

    verb: Verb
    argument: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartTask:
    """Start a task, once per `trigger` (two deliveries of one label or comment carry the same trigger)."""

    subject: Subject
    requester: Actor
    trigger: str
    title: str
    request: str
    comment_id: CommentId | None = None
    kind: Literal["start_task"] = "start_task"


@dataclass(frozen=True, slots=True)
class ReviewMessage:
    """A review arrived for the task's pull request."""

    actor: Actor
    review_id: ReviewId
    state: ReviewState
    commit_id: CommitId | None
    body: str
    base_ref: str = ""
    command: Command | None = None
    """What the approving review's text commands besides: to approve or merge."""
    kind: Literal["review"] = "review"


@dataclass(frozen=True, slots=True)
class CommandMessage:
    """Somebody with the right to do so gave a command to the task."""

    actor: Actor
    command: Command
    comment_id: CommentId | None
    review_id: ReviewId | None = None
    """The review it was given in, in its text or on a line; all of that review is what is asked for."""
    kind: Literal["command"] = "command"


@dataclass(frozen=True, slots=True)
class PullMessage:
    """The task's pull request changed; the task reads its state again."""

    actor: Actor
    activity: PullActivity
    head_sha: CommitId
    merged: bool
    kind: Literal["pull"] = "pull"


@dataclass(frozen=True, slots=True)
class ClosedMessage:
    """What the task stands on is gone: stop."""

    actor: Actor
    why: Closing = Closing.ISSUE_CLOSED
    kind: Literal["closed"] = "closed"


TaskMessage = ReviewMessage | CommandMessage | PullMessage | ClosedMessage


@dataclass(frozen=True, slots=True)
class Answer:
    """Post a short answer: `topic` names a text of `stages/intake/texts.py`."""

    subject: Subject
    topic: str
    detail: str = ""
    comment_id: CommentId | None = None
    kind: Literal["answer"] = "answer"


@dataclass(frozen=True, slots=True)
class TellTask:
    """Hand a message to the live task of this subject; without one, `answer_without_task` says whether to answer so.

    `also` answers what a review's text asked besides.
    """

    subject: Subject
    message: TaskMessage
    answer_without_task: bool = False
    also: Answer | None = None
    kind: Literal["tell_task"] = "tell_task"


@dataclass(frozen=True, slots=True)
class TellTasks:
    """Hand a message to every live task of these repositories; without any, of the installation."""

    installation: InstallationId
    repositories: tuple[RepositoryId, ...]
    message: ClosedMessage
    kind: Literal["tell_tasks"] = "tell_tasks"


@dataclass(frozen=True, slots=True)
class Onboard:
    """Get to know these repositories in the background."""

    installation: InstallationId
    repositories: tuple[RepositoryId, ...]
    kind: Literal["onboard"] = "onboard"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Do nothing, and say why in the log and in `pullwright replay`."""

    reason: str
    kind: Literal["nothing"] = "nothing"


Action = StartTask | TellTask | TellTasks | Onboard | Answer | Nothing
