"""A pull request and its reviews as read from GitHub, the approval record, and the snapshot the gate decides on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.change import ChangeDigest
from bot.domain.decision import Reason
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import CommitId, DeliveryId, Digest, NodeId, RepositoryId, ReviewId, TreeId


class Permission(StrEnum):
    """`permission` of the collaborator endpoint (maintain reads as write, triage as read)."""

    ADMIN = "admin"
    WRITE = "write"
    READ = "read"
    NONE = "none"

    @property
    def can_write(self) -> bool:
        return self in {Permission.ADMIN, Permission.WRITE}


@dataclass(frozen=True, slots=True)
class Review:
    """A review as GitHub lists it now; `commit_id` may be None and may have been re-bound since it was submitted."""

    id: ReviewId
    reviewer: Actor
    state: ReviewState
    commit_id: CommitId | None
    submitted_at: str


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as the API tells it now."""

    number: int
    node_id: NodeId
    open: bool
    draft: bool
    merged: bool
    author: Actor
    head_ref: str
    head_sha: CommitId
    head_repository: RepositoryId | None
    base_ref: str
    base_sha: CommitId
    mergeable: bool | None
    title: str
    body: str
    url: str


@dataclass(frozen=True, slots=True)
class Owned:
    """Changed paths with the same code owners. `people` are those approvers, in lower case, who are owners by GitHub's word.

    `unknown` says of which owners that could not be found out, and why.
    """

    owners: tuple[str, ...]
    paths: tuple[str, ...]
    people: tuple[str, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the gate decides on, read afresh: the pull request, its reviews, who may write, and git's own objects.

    `digest` and `merge_tree` come from git objects of the mirror, never from the API's diff. `merge_tree` is None on a conflict.
    """

    repository: RepositoryId
    pull: PullRequest
    reviews: tuple[Review, ...]
    permissions: tuple[tuple[str, Permission], ...]
    digest: ChangeDigest
    merge_tree: TreeId | None
    bot: Actor
    verified_trees: tuple[TreeId, ...]
    """Trees that passed every check in this task."""
    failed_trees: tuple[TreeId, ...] = ()
    """Trees that did not; one that is in neither has not been checked yet."""
    flags: tuple[str, ...] = ()
    """Properties of the change that a reviewer must name to allow (`workflows`, `binary`, …)."""
    findings: tuple[Reason, ...] = ()
    """Which files those properties are of, and why they matter: one reason each, its rule the property's name."""
    owned: tuple[Owned, ...] = ()
    """The changed paths that have code owners, by the `CODEOWNERS` of the base; read only where the rules ask for it."""
    owners_fault: str = ""
    """Why nobody can tell who owns what; empty when the file reads well, or there is none."""

    def permission(self, login: str) -> Permission:
        return dict(self.permissions).get(login, Permission.NONE)


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval record of design §7. Only `stages/approving` builds one (D15); landing demands it."""

    repository: RepositoryId
    pull_node_id: NodeId
    pull_number: int
    review_id: ReviewId
    reviewer: Actor
    permission: Permission
    received_at: str
    delivery: DeliveryId
    review_commit: CommitId
    head_sha: CommitId
    base_ref: str
    base_sha: CommitId
    merge_base: CommitId
    digest: Digest
    head_tree: TreeId
    merge_tree: TreeId
    policy_digest: str
    flags: tuple[str, ...]
