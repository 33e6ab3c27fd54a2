"""One API call as the handlers see it, and the answer they give."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.emulators.github.auth import Actor
from bot.emulators.github.body import Body
from bot.emulators.github.errors import forbidden, gone, not_found, requires_authentication
from bot.emulators.github.gitside.bare import Bare
from bot.emulators.github.records import Issue, Pull, Repository, User
from bot.emulators.github.urls import Urls
from bot.emulators.github.world import World, at_least

Json = dict[str, Any]


def natural(text: str) -> int | None:
    """A number as ids, pages and cursors are written; None for anything else, other scripts' digits included."""
    return int(text) if len(text) < 20 and text.isascii() and text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Reply:
    """JSON unless `raw` is given."""

    json: Any = None
    status: int = 200
    raw: bytes | None = None
    media_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.status == 204 else json.dumps(self.json, ensure_ascii=False).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Call:
    world: World
    actor: Actor
    urls: Urls
    path: str
    values: Mapping[str, str]
    query: Mapping[str, str]
    accept: str
    version: str
    body: Body
    found: Repository | None = None

    @property
    def repository(self) -> Repository:
        if self.found is None:
            raise not_found()
        return self.found

    @property
    def bare(self) -> Bare:
        return self.world.bare(self.repository)

    @property
    def user(self) -> User:
        if self.actor.user is None:
            raise requires_authentication()
        return self.actor.user

    @property
    def by_app(self) -> bool:
        return self.actor.kind == "installation"

    def number(self, name: str) -> int:
        """A numeric part of the path; anything else is an unknown path."""
        number = natural(self.values[name])
        if number is None:
            raise not_found()
        return number

    def issue(self) -> Issue:
        """The issue or pull request named by the path."""
        issue = self.repository.issues.get(self.number("number"))
        if issue is None:
            raise not_found()
        if issue.deleted:
            raise gone()
        return issue

    def pull(self) -> tuple[Issue, Pull]:
        issue = self.repository.issues.get(self.number("number"))
        if issue is None or issue.pull is None or issue.deleted:
            raise not_found()
        return issue, issue.pull

    def has_role(self, wanted: str) -> bool:
        """Whether a person has at least this role; an installation is judged by its permissions alone."""
        if self.actor.kind == "installation":
            return True
        return at_least(self.world.role(self.repository, self.user), wanted)

    def demand_role(self, wanted: str) -> None:
        if not self.has_role(wanted):
            raise forbidden("Must have admin rights to Repository.")

    def demand_open_conversation(self, issue: Issue) -> None:
        """Locked conversations take words only from people with write access; never from an App."""
        if issue.locked and (self.by_app or not self.has_role("write")):
            raise forbidden("Unable to create comment because issue is locked.")


Handler = Callable[[Call], Awaitable[Reply]]
