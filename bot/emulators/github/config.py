"""What a stand-in is started with: the App, and the world it wakes up in."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

_FULL_NAME = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
DEFAULT_PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "write",
    "pull_requests": "write",
    "issues": "write",
    "checks": "write",
    "statuses": "read",
}
DEFAULT_EVENTS = (
    "issues",
    "issue_comment",
    "label",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "check_run",
    "repository",
    "status",
)


@dataclass(frozen=True, slots=True)
class Protection:
    """The rules of one branch that a merge or a push must satisfy."""

    branch: str = "main"
    """A name, or a pattern with `*`: one part of a path, and `**`: any number of them."""
    pull_request: bool = False
    required_approving_review_count: int = 0
    dismiss_stale_reviews_on_push: bool = False
    require_last_push_approval: bool = False
    require_code_owner_review: bool = False
    required_review_thread_resolution: bool = False
    required_status_checks: tuple[str, ...] = ()
    check_source: int | None = None
    """The App that has to report the required checks; None: anybody may."""
    strict_status_checks: bool = False
    required_signatures: bool = False
    merge_queue: bool = False
    restricted: bool = False
    """Only who may bypass the rules creates and updates such branches."""
    bypass_apps: tuple[int, ...] = ()
    allowed_merge_methods: tuple[str, ...] = ("merge", "squash", "rebase")


@dataclass(frozen=True, slots=True)
class GistSeed:
    """A public gist: file names to media types."""

    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeployKeySeed:
    title: str
    added_by: str | None = None
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class UserSeed:
    """A person; without a `token` one is made up at run time."""

    login: str
    permission: str = "write"
    token: str | None = None
    permissions: Mapping[str, str] = field(default_factory=dict)
    type: str = "User"
    token_permissions: Mapping[str, str] | None = None
    """What a fine-grained token may; None is a classic one, which may all that its person may."""
    gists: tuple[GistSeed, ...] = ()

    def role(self, full_name: str) -> str:
        return self.permissions.get(full_name, self.permission)


@dataclass(frozen=True, slots=True)
class LabelSeed:
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(frozen=True, slots=True)
class IssueSeed:
    title: str
    body: str | None = None
    user: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositorySeed:
    """A repository made from `files` (a directory), `contents` (path to text) or `repository` (a git repository).

    `fork_of` names an earlier repository of the seed instead; its owner is then a person of the seed.
    """

    full_name: str
    files: str | None = None
    contents: Mapping[str, str] = field(default_factory=dict)
    repository: str | None = None
    fork_of: str | None = None
    default_branch: str = "main"
    private: bool = True
    installed: bool = True
    drafts_supported: bool = True
    delete_branch_on_merge: bool = False
    merge_methods: tuple[str, ...] = ("merge", "squash", "rebase")
    labels: tuple[LabelSeed, ...] = ()
    issues: tuple[IssueSeed, ...] = ()
    protections: tuple[Protection, ...] = ()
    keys: tuple[DeployKeySeed, ...] = ()


@dataclass(frozen=True, slots=True)
class AppSeed:
    """Another App that an organisation has installed."""

    slug: str
    app_id: int
    permissions: Mapping[str, str] = field(default_factory=dict)
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CredentialSeed:
    """A credential that a person had authorised for single sign-on."""

    login: str
    kind: str = "personal access token"


@dataclass(frozen=True, slots=True)
class OrganisationSeed:
    """What an organisation shows its owners. `credentials` and `audit_log` are None where it has no such page:
    the first needs single sign-on, the second Enterprise Cloud."""

    login: str
    owners: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    outside_collaborators: tuple[str, ...] = ()
    apps: tuple[AppSeed, ...] = ()
    credentials: tuple[CredentialSeed, ...] | None = None
    audit_log: tuple[Mapping[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    users: tuple[UserSeed, ...] = (
        UserSeed("octo-admin", "admin"),
        UserSeed("octo-dev", "write"),
        UserSeed("octo-triage", "triage"),
        UserSeed("octo-reader", "read"),
        UserSeed("octo-stranger", "none"),
    )
    repositories: tuple[RepositorySeed, ...] = (
        RepositorySeed(
            "octo-org/hello",
            contents={"README.md": "# hello\n", "app.py": 'def greet() -> str:\n    return "hello"\n'},
            labels=(LabelSeed("agent", "5319e7", "Hand this to the agent"),),
        ),
    )
    teams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Logins by `organisation/team`; the App reads them only with the permission `members`."""
    organisations: tuple[OrganisationSeed, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a run may vary. Defaults give one organisation, one repository and five people."""

    seed: Seed = field(default_factory=Seed)
    slug: str = "pullwright"
    app_id: int = 411_000
    permissions: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_PERMISSIONS))
    events: tuple[str, ...] = DEFAULT_EVENTS
    webhook_url: str | None = None
    webhook_secret: str | None = None
    webhook_timeout_seconds: float = 10.0
    rebind_identical_patch: bool = True
    mergeable_delay_seconds: float = 0.0
    host: str = "127.0.0.1"
    port: int = 0
    unix_socket: str | None = None


def load_seed(path: Path) -> Seed:
    """Read a seed from a `.toml` or `.json` file; relative directories in it are relative to the file.

    Raises OSError when it cannot be read, ValueError when it is no seed.
    """
    text = path.read_text(encoding="utf-8")
    seed = TypeAdapter(Seed).validate_python(tomllib.loads(text) if path.suffix == ".toml" else json.loads(text))
    return replace(seed, repositories=tuple(_rooted(one, path.parent) for one in seed.repositories))


def _rooted(repository: RepositorySeed, directory: Path) -> RepositorySeed:
    if not _FULL_NAME.fullmatch(repository.full_name):
        raise ValueError(f"{repository.full_name!r} is not OWNER/NAME")
    return replace(
        repository,
        files=_place(directory, repository.files),
        repository=_place(directory, repository.repository),
    )


def _place(directory: Path, given: str | None) -> str | None:
    if not given:
        return None
    place = (directory / given).resolve()
    if not place.is_dir():
        raise ValueError(f"{place} is no directory")
    return str(place)
