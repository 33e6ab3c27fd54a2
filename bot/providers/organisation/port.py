"""The organisation role: what an audit reads. There is no method that changes anything, and none that takes an address.

Nothing read is a failure here: a `Read` says what there was and why it is not all of it, so that nobody takes silence for cleanness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bot.domain.ids import BlobId, CommitId, RepositoryId, TreeId

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Read(Generic[T_co]):
    """What was read; `fault` says why it is not there, or not whole. Empty: this is all of it."""

    value: T_co
    fault: str = ""


NOTHING: Read[tuple[()]] = Read(())
ABSENT: Read[None] = Read(None)


@dataclass(frozen=True, slots=True)
class Repository:
    id: RepositoryId
    full_name: str
    default_branch: str
    private: bool
    archived: bool

    @property
    def owner(self) -> str:
        return self.full_name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class TreeFile:
    path: str
    blob: BlobId
    size: int
    regular: bool
    """Neither a link nor a submodule."""


@dataclass(frozen=True, slots=True)
class RequiredCheck:
    """A check without which nothing merges; `app` is who has to report it, None: anybody may."""

    context: str
    app: int | None


@dataclass(frozen=True, slots=True)
class Guard:
    """What GitHub enforces on a branch, over all rules that hold for it. `rulesets`: where they stand."""

    pull_request: bool = False
    approvals: int = 0
    dismiss_stale: bool = False
    last_push: bool = False
    code_owners: bool = False
    checks: tuple[RequiredCheck, ...] = ()
    creation: bool = False
    update: bool = False
    rulesets: tuple[int, ...] = ()
    bypass: tuple[Bypass, ...] = ()
    """Who may go around a classic protection; those of rulesets are read apart."""


@dataclass(frozen=True, slots=True)
class Bypass:
    """Somebody whom rules do not bind. `kind` is GitHub's word (`Integration`, `Team`, …), `actor` a number or a slug."""

    kind: str
    actor: str


@dataclass(frozen=True, slots=True)
class Installation:
    """An App in the organisation."""

    id: int
    app: int
    slug: str
    permissions: tuple[tuple[str, str], ...]
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeployKey:
    title: str
    added_by: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential that somebody had authorised for single sign-on."""

    login: str
    kind: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One event of the organisation's audit log."""

    action: str
    actor: str
    repository: str
    visibility: str
    at: int


@dataclass(frozen=True, slots=True)
class Gist:
    id: str
    media_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    name: str
    head: CommitId


@dataclass(frozen=True, slots=True)
class Commit:
    """`author` and `committer` are accounts; empty where GitHub knows none."""

    id: CommitId
    tree: TreeId
    author: str
    committer: str


@dataclass(frozen=True, slots=True)
class Post:
    """The text of an issue, a pull request or a comment on one."""

    place: str
    author: str
    body: str


class Organisation(Protocol):
    """Repositories by full name, people by login. Raises UserError only when the credential itself is not accepted."""

    async def size(self, organisation: str) -> Read[int | None]:
        """How many repositories there are, seen or not."""
        ...

    async def repositories(self, organisation: str) -> Read[tuple[Repository, ...]]: ...
    async def installations(self, organisation: str) -> Read[tuple[Installation, ...]]: ...
    async def members(self, organisation: str) -> Read[tuple[str, ...]]: ...
    async def outside_collaborators(self, organisation: str) -> Read[tuple[str, ...]]: ...
    async def credentials(self, organisation: str) -> Read[tuple[Credential, ...]]: ...
    async def log(self, organisation: str, actions: tuple[str, ...]) -> Read[tuple[LogEntry, ...]]: ...
    async def head(self, repository: str, branch: str) -> Read[CommitId | None]:
        """Where a branch stands."""
        ...

    async def tree(self, repository: str, commit: str) -> Read[tuple[TreeFile, ...]]:
        """All files of a commit."""
        ...

    async def blob(self, repository: str, blob: BlobId) -> Read[bytes | None]: ...
    async def rules(self, repository: str, branch: str) -> Read[Guard | None]:
        """What rulesets say of a branch, which need not be there."""
        ...

    async def protection(self, repository: str, branch: str) -> Read[Guard | None]:
        """What classic branch protection says; None when there is none."""
        ...

    async def bypass(self, repository: str, ruleset: int) -> Read[tuple[Bypass, ...]]:
        """Who may go around a ruleset. GitHub tells it only to those who may change the ruleset."""
        ...

    async def deploy_keys(self, repository: str) -> Read[tuple[DeployKey, ...]]: ...
    async def forks(self, repository: str) -> Read[tuple[Repository, ...]]: ...
    async def branches(self, repository: str, prefix: str) -> Read[tuple[Branch, ...]]: ...
    async def commits_beyond(self, repository: str, base: str, head: str) -> Read[tuple[Commit, ...]]:
        """Commits that lead to `head` and not to `base`; all of `head` when the two have nothing in common."""
        ...

    async def commits_since(self, repository: str, branch: str, since: str) -> Read[tuple[Commit, ...]]: ...
    async def permission(self, repository: str, login: str) -> Read[str | None]:
        """What somebody may do there now."""
        ...

    async def posts(self, repository: str) -> Read[tuple[Post, ...]]:
        """Everything that was written on issues and pull requests."""
        ...

    async def user_repositories(self, login: str) -> Read[tuple[Repository, ...]]:
        """The public ones of a person."""
        ...

    async def gists(self, login: str) -> Read[tuple[Gist, ...]]:
        """The public ones of a person."""
        ...
