"""Everything an audit decides on, read once and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.audit.operator import Operator, PinEntry
from bot.domain.ids import CommitId
from bot.providers.organisation.port import (
    ABSENT,
    NOTHING,
    Branch,
    Bypass,
    Commit,
    Credential,
    DeployKey,
    Gist,
    Guard,
    Installation,
    LogEntry,
    Post,
    Read,
    Repository,
)
from bot.providers.store.port import ApprovedTask


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a default branch. `text.value` is None when it was not read; `text.fault` then says why."""

    path: str
    blob: str
    text: Read[str | None]


@dataclass(frozen=True, slots=True)
class BotBranch:
    branch: Branch
    commits: Read[tuple[Commit, ...]]


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """One repository of the organisation. `files` are its workflows, actions and instructions to agents."""

    repository: Repository
    head: Read[CommitId | None] = ABSENT
    files: Read[tuple[SourceFile, ...]] = NOTHING
    rules: Read[Guard | None] = ABSENT
    protection: Read[Guard | None] = ABSENT
    bot_rules: Read[Guard | None] = ABSENT
    bypass: tuple[tuple[int, Read[tuple[Bypass, ...]]], ...] = ()
    """By ruleset, of those that hold for the default branch."""
    keys: Read[tuple[DeployKey, ...]] = NOTHING
    forks: Read[tuple[Repository, ...]] = NOTHING
    branches: Read[tuple[BotBranch, ...]] = NOTHING
    posts: Read[tuple[Post, ...]] = NOTHING
    """Empty for private repositories: those are not looked at."""

    @property
    def name(self) -> str:
        return self.repository.full_name


@dataclass(frozen=True, slots=True)
class PublicRepository:
    """A public repository of a person; `paths` is None when it was not looked at."""

    repository: Repository
    paths: Read[tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class PersonFacts:
    """What a person shows in public."""

    login: str
    repositories: Read[tuple[PublicRepository, ...]] = NOTHING
    gists: Read[tuple[Gist, ...]] = NOTHING


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """A working copy on this machine: its config files by name, and its hooks."""

    path: str
    configs: tuple[tuple[str, Read[str | None]], ...] = ()
    hooks: Read[tuple[str, ...]] = NOTHING


@dataclass(frozen=True, slots=True)
class PinFacts:
    """A line of the lock file. `refs` is a fault of the upstream's names, `commit` one of the pinned commit; `tree` what it holds."""

    entry: PinEntry
    refs: str = ""
    commit: str = ""
    tree: Read[str | None] = ABSENT


@dataclass(frozen=True, slots=True)
class Host:
    """This machine. `sandbox` is why its sandboxes would not hold, `shortfall` what is weaker than it could be."""

    sandbox: Read[str]
    shortfall: str = ""
    uploads: Read[tuple[str, ...]] = NOTHING
    """Hosts that sandboxes may reach and that take what somebody sends there."""
    versions: Mapping[str, Read[str | None]] = field(default_factory=dict)
    """Versions that are installed, by the name in the fleet's floor."""


@dataclass(frozen=True, slots=True)
class ApprovalFacts:
    """An approval of the log, what the reviewer may do now, and the commits of the base branch since."""

    row: ApprovedTask
    repository: str
    permission: Read[str | None] = ABSENT
    since: Read[tuple[Commit, ...]] = NOTHING


@dataclass(frozen=True, slots=True)
class Records:
    """Our own store. `broken_at`: the first approval that does not follow from those before it."""

    approvals: tuple[ApprovalFacts, ...] = ()
    broken_at: int | None = None
    landed_without: tuple[str, ...] = ()
    """Tasks that landed and have no approval in the log."""
    received: tuple[str, ...] = ()
    """When deliveries were received by our clock, in the order in which they were stored."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """None stands for what was not asked for: the check that needs it is then told as not checked."""

    organisation: str
    operator: Operator
    manifest: tuple[Mapping[str, str], tuple[str, ...]] = field(default_factory=lambda: ({}, ()))
    """Permissions and events of app.yml."""
    repositories: Read[tuple[RepositoryFacts, ...]] = NOTHING
    installations: Read[tuple[Installation, ...]] = NOTHING
    members: Read[tuple[str, ...]] = NOTHING
    collaborators: Read[tuple[str, ...]] = NOTHING
    credentials: Read[tuple[Credential, ...]] = NOTHING
    log: Read[tuple[LogEntry, ...]] = NOTHING
    people: tuple[PersonFacts, ...] = ()
    copies: tuple[WorkingCopy, ...] | None = None
    pins: tuple[PinFacts, ...] | None = None
    host: Host | None = None
    records: Read[Records] | None = None

    @property
    def app(self) -> Installation | None:
        """The bot's own installation."""
        slug = self.operator.bot.removesuffix("[bot]").lower()
        return next((one for one in self.installations.value if one.slug.lower() == slug), None)
