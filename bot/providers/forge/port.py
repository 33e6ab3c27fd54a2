"""The forge role: a closed list of what the product may do on GitHub, for one installation and one repository.

There is no method to create a repository, change visibility, fork, invite, add keys or hooks, or push to a branch of somebody
else: a destination without a method cannot be reached (design D4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bot.domain.change import TreeEntry
from bot.domain.event import Actor, FailedDelivery
from bot.domain.ids import (
    BlobId,
    CheckRunId,
    CommentId,
    CommitId,
    InstallationId,
    NodeId,
    RepositoryId,
    ReviewId,
    TreeId,
)
from bot.domain.pull import Permission, PullRequest, Review


class ForgeGone(Exception):  # noqa: N818 - a state of the outside
    """The thing, or our right to it, is gone (404, 410, lost permission, suspended installation). Terminal; said once."""


class ForgeRefused(Exception):  # noqa: N818 - the service's verdict
    """GitHub refuses for a reason it names (405, 409, 422, protected branch). `status` and `message` as received."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(f"{status}: {message}")


class RepositoryMoved(ForgeGone):
    """A mutation was answered with a redirect: renamed or transferred. Resolve again by number; never follow."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository now."""

    id: RepositoryId
    full_name: str
    default_branch: str
    private: bool
    archived: bool
    clone_url: str


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue or pull request as the issues endpoint tells it."""

    number: int
    title: str
    body: str
    open: bool
    locked: bool
    is_pull: bool
    author: Actor
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comment:
    id: CommentId
    author: Actor
    body: str
    url: str


@dataclass(frozen=True, slots=True)
class LineComment:
    """A comment on a line of a pull request; `line` is None when it is on a file, or the line is gone."""

    id: CommentId
    path: str
    line: int | None
    body: str
    edited: bool
    """Changed after its review was submitted."""


@dataclass(frozen=True, slots=True)
class ReviewWords:
    """Everything said in one review."""

    text: str
    comments: tuple[LineComment, ...]


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit object as GitHub stores it."""

    id: CommitId
    tree: TreeId
    parents: tuple[CommitId, ...]
    message: str


class CheckConclusion(StrEnum):
    """`None` of it means in progress."""

    SUCCESS = "success"
    FAILURE = "failure"
    ACTION_REQUIRED = "action_required"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The check run `name` on `head`; `conclusion` None = in progress. Summary is Markdown, ≤ 65,535 characters."""

    name: str
    head: CommitId
    title: str
    summary: str
    conclusion: CheckConclusion | None
    external_id: str


@dataclass(frozen=True, slots=True)
class NewPull:
    title: str
    body: str
    head: str
    base: str
    draft: bool = True


class Forge(Protocol):
    """One repository. Reads may raise ForgeGone and Transient; writes also ForgeRefused and RepositoryMoved.

    No POST is ever replayed by the implementation; callers look before they act.
    """

    async def repository(self) -> Repository: ...
    async def permission(self, login: str) -> Permission:
        """NONE for an unknown user; any other failure raises (fail closed)."""
        ...

    async def on_team(self, team: str, login: str) -> bool:
        """Whether this person is an active member of `organisation/team`. ForgeGone when the App may not read teams."""
        ...

    async def issue(self, number: int) -> Issue: ...
    async def comments(self, number: int) -> tuple[Comment, ...]:
        """All comments of an issue or pull request, oldest first, over all pages."""
        ...

    async def create_comment(self, number: int, body: str) -> Comment: ...
    async def update_comment(self, comment: CommentId, body: str) -> None: ...
    async def react(self, comment: CommentId, content: str) -> None: ...
    async def add_label(self, number: int, label: str) -> None: ...
    async def remove_label(self, number: int, label: str) -> None:
        """No error when it is not there."""
        ...

    async def branch_head(self, branch: str) -> CommitId | None: ...
    async def create_blob(self, data: bytes) -> BlobId: ...
    async def create_tree(self, base: TreeId, entries: tuple[TreeEntry, ...], removed: tuple[str, ...]) -> TreeId: ...
    async def create_commit(self, message: str, tree: TreeId, parents: tuple[CommitId, ...]) -> CommitRecord: ...
    async def commit(self, commit: CommitId) -> CommitRecord: ...
    async def create_branch(self, branch: str, commit: CommitId) -> None: ...
    async def advance_branch(self, branch: str, commit: CommitId) -> None:
        """Fast-forward only; ForgeRefused 422 when it is not one."""
        ...

    async def find_pull(self, head: str, base: str) -> PullRequest | None:
        """The open pull request from this repository's branch `head` into `base`, if any."""
        ...

    async def create_pull(self, new: NewPull) -> PullRequest: ...
    async def pull(self, number: int) -> PullRequest: ...
    async def update_pull_body(self, number: int, body: str) -> None: ...
    async def mark_ready(self, pull: NodeId) -> None: ...
    async def convert_to_draft(self, pull: NodeId) -> None: ...
    async def reviews(self, number: int) -> tuple[Review, ...]:
        """All reviews in the order they were submitted, over all pages."""
        ...

    async def review(self, number: int, review: ReviewId) -> Review: ...
    async def review_words(self, number: int, review: ReviewId) -> ReviewWords:
        """The review's text, and the comments on lines that belong to it in the order they were written."""
        ...

    async def merge(self, number: int, *, head: CommitId, title: str, message: str) -> CommitId:
        """Squash with an explicit message, guarded by `sha` = head. Returns the new commit on the base."""
        ...

    async def report_check(self, report: CheckReport, existing: CheckRunId | None) -> CheckRunId: ...
    async def find_check(self, head: CommitId, name: str) -> CheckRunId | None:
        """Our own check run of this name on this commit."""
        ...

    async def fetch_token(self) -> str:
        """A short-lived token that can read this repository's contents and nothing else, for `git fetch`."""
        ...


class Forges(Protocol):
    """The App: hands out a Forge per installation and repository, and knows who the bot is."""

    async def open(self, installation: InstallationId, repository: RepositoryId) -> Forge:
        """Raises ForgeGone when the installation does not cover the repository, or is suspended."""
        ...

    async def bot(self) -> Actor: ...
    async def app_id(self) -> int: ...


class HookLog(Protocol):
    """GitHub's own log of what it tried to deliver to the App. Reads and writes raise as those of `Forge`."""

    async def failed(self) -> Sequence[FailedDelivery]:
        """The failed attempts that GitHub still keeps (three days), newest first."""
        ...

    async def redeliver(self, attempt: int) -> None:
        """Ask for one more attempt: the same delivery id, the same bytes."""
        ...
