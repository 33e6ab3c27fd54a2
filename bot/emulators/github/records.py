"""What the stand-in remembers. Mutable on purpose: this is the state of a service, not a value that travels."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.emulators.github.config import DeployKeySeed, GistSeed, Protection


@dataclass(slots=True, eq=False)
class User:
    id: int
    login: str
    node_id: str
    type: str = "User"
    token: str | None = None
    token_permissions: Mapping[str, str] | None = None
    gists: tuple[GistSeed, ...] = ()

    @property
    def email(self) -> str:
        return f"{self.id}+{self.login}@users.noreply.github.com"


@dataclass(slots=True, eq=False)
class Label:
    id: int
    node_id: str
    name: str
    color: str
    description: str | None = None


@dataclass(slots=True, eq=False)
class Reaction:
    id: int
    node_id: str
    user: User
    content: str
    created_at: datetime


@dataclass(slots=True, eq=False)
class Comment:
    id: int
    node_id: str
    number: int
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    by_app: bool
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ReviewComment:
    id: int
    node_id: str
    number: int
    review_id: int | None
    user: User
    body: str
    path: str
    line: int | None
    side: str
    commit_id: str
    created_at: datetime
    updated_at: datetime
    in_reply_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Review:
    id: int
    node_id: str
    user: User
    body: str
    state: str
    commit_id: str | None
    submitted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Statistics:
    commits: int = 0
    additions: int = 0
    deletions: int = 0
    changed_files: int = 0


@dataclass(slots=True, eq=False)
class Pull:
    id: int
    node_id: str
    head_repository: Repository
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool
    last_pusher: User
    maintainer_can_modify: bool = False
    merged_at: datetime | None = None
    merged_by: User | None = None
    merge_commit_sha: str | None = None
    mergeable: bool | None = None
    statistics: Statistics = field(default_factory=Statistics)
    heads: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)
    requested_reviewers: list[User] = field(default_factory=list)

    @property
    def merged(self) -> bool:
        return self.merged_at is not None


@dataclass(slots=True, eq=False)
class Issue:
    id: int
    node_id: str
    number: int
    title: str
    body: str | None
    user: User
    created_at: datetime
    updated_at: datetime
    state: str = "open"
    state_reason: str | None = None
    locked: bool = False
    deleted: bool = False
    labels: list[Label] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    closed_at: datetime | None = None
    closed_by: User | None = None
    pull: Pull | None = None
    by_app: bool = False


@dataclass(slots=True, eq=False)
class CheckRun:
    id: int
    node_id: str
    suite_id: int
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    started_at: datetime | None
    completed_at: datetime | None
    external_id: str | None = None
    details_url: str | None = None
    output: dict[str, Any] = field(default_factory=dict)
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Status:
    id: int
    node_id: str
    sha: str
    state: str
    context: str
    description: str | None
    target_url: str | None
    creator: User
    created_at: datetime


@dataclass(slots=True, eq=False)
class Repository:
    id: int
    node_id: str
    owner: User
    name: str
    git_dir: Path
    private: bool
    default_branch: str
    created_at: datetime
    updated_at: datetime
    pushed_at: datetime
    drafts_supported: bool = True
    delete_branch_on_merge: bool = False
    merge_methods: frozenset[str] = frozenset({"merge", "squash", "rebase"})
    parent: Repository | None = None
    archived: bool = False
    born: bool = False
    """Whether a branch was ever seen; it saves asking git before every call."""
    roles: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    checks: list[CheckRun] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    protections: dict[str, Protection] = field(default_factory=dict)
    former_names: set[str] = field(default_factory=set)
    keys: tuple[DeployKeySeed, ...] = ()
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def protection(self, branch: str) -> Protection | None:
        """The rules of a branch, which need not be there: of its very name, else of the first pattern that fits."""
        exact = self.protections.get(branch)
        fitting = (rule for pattern, rule in self.protections.items() if "*" in pattern and _fits(pattern, branch))
        return exact or next(fitting, None)

    def pulls(self) -> list[tuple[Issue, Pull]]:
        """Every pull request with the issue record that carries its number."""
        return [(issue, issue.pull) for issue in self.issues.values() if issue.pull and not issue.deleted]


def _fits(pattern: str, branch: str) -> bool:
    wild = {"**": ".*", "*": "[^/]*"}
    parts = (wild.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*)", pattern))
    return re.fullmatch("".join(parts), branch) is not None


@dataclass(slots=True, eq=False)
class Installation:
    id: int
    node_id: str
    account: User
    repository_ids: set[int]
    permissions: dict[str, str]
    events: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    suspended_at: datetime | None = None
    suspended_by: User | None = None


@dataclass(slots=True, eq=False)
class InstallationToken:
    text: str
    installation: Installation
    permissions: dict[str, str]
    repository_ids: frozenset[int] | None
    expires_at: datetime


@dataclass(slots=True, eq=False)
class App:
    id: int
    node_id: str
    client_id: str
    slug: str
    name: str
    owner: User
    bot: User
    private_key_pem: str
    public_key_pem: str
    permissions: dict[str, str]
    events: tuple[str, ...]
    webhook_url: str | None
    webhook_secret: str
    hook_id: int
    created_at: datetime
    former_secrets: tuple[str, ...] = ()
