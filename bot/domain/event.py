"""What GitHub told us, as a closed union of our own events. Nothing inside the product sees a raw payload."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.domain.ids import CommentId, CommitId, DeliveryId, InstallationId, RepositoryId, ReviewId, UserId
from bot.domain.repository import RepositoryRef


@dataclass(frozen=True, slots=True)
class FailedDelivery:
    """An attempt of GitHub's to bring a delivery that it counts as failed. `status_code` 0 or 5xx: it met nobody."""

    attempt: int
    delivery: DeliveryId
    event: str
    status_code: int
    delivered_at: datetime


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it (`sender`), never who wrote the older text."""

    id: UserId
    login: str
    is_bot: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """The issue or pull request an event is about."""

    repository: RepositoryRef
    number: int
    is_pull: bool


@dataclass(frozen=True, slots=True)
class Labelled:
    """A label was put on an issue or pull request; text is as it was then."""

    subject: Subject
    actor: Actor
    label: str
    title: str
    body: str
    updated_at: str
    open: bool
    kind: Literal["labelled"] = "labelled"


@dataclass(frozen=True, slots=True)
class Commented:
    """A comment was created (edits never arrive here). `by_app` is the id of the App it was posted through, if any.

    `review_id` is set for a comment on a line of a pull request, and for the text of a review, which is no comment by itself.
    """

    subject: Subject
    actor: Actor
    comment_id: CommentId | None
    body: str
    title: str
    subject_body: str
    open: bool
    locked: bool
    by_app: int | None = None
    review_id: ReviewId | None = None
    on_line: bool = False
    kind: Literal["commented"] = "commented"


class ReviewState(StrEnum):
    """State of a review, in the spelling of webhooks."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    COMMENTED = "commented"
    DISMISSED = "dismissed"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A review was submitted or dismissed. `commit_id` is as received: GitHub may re-bind it later."""

    subject: Subject
    actor: Actor
    review_id: ReviewId
    reviewer: Actor
    state: ReviewState
    commit_id: CommitId | None
    body: str
    base_ref: str = ""
    """The branch the pull request would have merged into when the review was given."""
    open: bool = True
    kind: Literal["reviewed"] = "reviewed"


class PullActivity(StrEnum):
    """What happened to a pull request that may concern an approval."""

    PUSHED = "synchronize"
    RETARGETED = "edited"
    CLOSED = "closed"
    REOPENED = "reopened"
    READIED = "ready_for_review"
    DRAFTED = "converted_to_draft"


@dataclass(frozen=True, slots=True)
class PullChanged:
    """A pull request changed. A hint to read its state again, never the state itself."""

    subject: Subject
    actor: Actor
    activity: PullActivity
    head_sha: CommitId
    base_ref: str
    merged: bool
    kind: Literal["pull_changed"] = "pull_changed"


class Closing(StrEnum):
    """What takes the ground from under a task."""

    ISSUE_CLOSED = "issue_closed"
    ISSUE_DELETED = "issue_deleted"
    ISSUE_TRANSFERRED = "issue_transferred"
    LABEL_REMOVED = "label_removed"
    ARCHIVED = "archived"
    DELETED = "deleted"
    TRANSFERRED = "transferred"
    PUBLICIZED = "publicized"
    REMOVED = "removed"
    UNINSTALLED = "uninstalled"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class IssueClosed:
    """The issue was closed, deleted or transferred: a task on it stops."""

    subject: Subject
    actor: Actor
    why: Closing = Closing.ISSUE_CLOSED
    kind: Literal["issue_closed"] = "issue_closed"


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """A label was taken off an issue or pull request."""

    subject: Subject
    actor: Actor
    label: str
    kind: Literal["unlabelled"] = "unlabelled"


@dataclass(frozen=True, slots=True)
class CommentDeleted:
    """A comment is gone; a task that it started keeps the text as it was."""

    subject: Subject
    actor: Actor
    comment_id: CommentId
    kind: Literal["comment_deleted"] = "comment_deleted"


@dataclass(frozen=True, slots=True)
class GroundLost:
    """The App may not work in these repositories any more, or not as before; without any: in none of the installation."""

    installation: InstallationId
    repositories: tuple[RepositoryId, ...]
    actor: Actor
    why: Closing
    kind: Literal["ground_lost"] = "ground_lost"


@dataclass(frozen=True, slots=True)
class GroundGained:
    """The App may work in these repositories from now on."""

    installation: InstallationId
    repositories: tuple[RepositoryId, ...]
    actor: Actor
    kind: Literal["ground_gained"] = "ground_gained"


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing for us; `reason` is shown by `pullwright replay`."""

    reason: str
    kind: Literal["ignored"] = "ignored"


Event = (
    Labelled
    | Unlabelled
    | Commented
    | CommentDeleted
    | Reviewed
    | PullChanged
    | IssueClosed
    | GroundLost
    | GroundGained
    | Ignored
)
