"""The whole state of one stand-in, and how records are found in it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.emulators.github.clock import Clock
from bot.emulators.github.config import Config, OrganisationSeed
from bot.emulators.github.errors import not_found
from bot.emulators.github.faults import Faults
from bot.emulators.github.gitside.bare import Bare
from bot.emulators.github.identifiers import Identifiers
from bot.emulators.github.journal import Journal
from bot.emulators.github.records import (
    App,
    Installation,
    InstallationToken,
    Issue,
    Label,
    Pull,
    Repository,
    User,
)
from bot.emulators.github.webhooks.courier import Courier

ROLES = ("none", "read", "triage", "write", "maintain", "admin")


@dataclass(slots=True)
class Registry:
    """Records by their ids."""

    users: dict[str, User]
    repositories: dict[int, Repository]
    installations: dict[int, Installation]
    tokens: dict[str, InstallationToken]


class World:
    """State plus the few services that act on it: clock, ids, journal, faults, webhook courier."""

    def __init__(self, config: Config, root: Path, app: App, bare: Callable[[Path], Bare] = Bare) -> None:
        self.config = config
        self._bare = bare
        self.root = root
        self.app = app
        self.clock = Clock()
        self.ids = Identifiers()
        self.journal = Journal()
        self.faults = Faults()
        self.registry = Registry({}, {}, {}, {})
        self.manifest_codes: dict[str, datetime] = {}
        self.courier = Courier(self.clock, self.ids, self.faults, app, config.webhook_timeout_seconds)
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the request; a failure surfaces when the stand-in stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for background work to end."""
        while self._tasks:
            await asyncio.gather(*list(self._tasks))

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*list(self._tasks), return_exceptions=True)
        await self.courier.stop()

    def bare(self, repository: Repository) -> Bare:
        return self._bare(repository.git_dir)

    def user(self, login: str) -> User:
        found = self.find_user(login)
        if found is None:
            raise not_found()
        return found

    def find_user(self, login: str) -> User | None:
        return self.registry.users.get(login.lower())

    def user_of_email(self, email: str) -> User | None:
        return next((user for user in self.registry.users.values() if user.email == email), None)

    def user_of_token(self, token: str) -> User | None:
        owners = (user for user in self.registry.users.values() if user.token)
        return next((user for user in owners if secrets.compare_digest(user.token or "", token)), None)

    def repository(self, full_name: str) -> Repository | None:
        wanted = full_name.lower()
        return next((r for r in self.registry.repositories.values() if r.full_name.lower() == wanted), None)

    def moved(self, full_name: str) -> Repository | None:
        """The repository that used to have this name."""
        wanted = full_name.lower()
        return next((r for r in self.registry.repositories.values() if wanted in r.former_names), None)

    def installation_of(self, repository: Repository) -> Installation | None:
        every = self.registry.installations.values()
        return next((found for found in every if repository.id in found.repository_ids), None)

    def role(self, repository: Repository, user: User) -> str:
        """One of ROLES; a public repository gives everybody `read`."""
        role = repository.roles.get(user.login.lower(), "none")
        return "read" if role == "none" and not repository.private else role

    def organisation(self, login: str) -> OrganisationSeed | None:
        """What the seed says of an organisation; None when there is none of this name."""
        found = self.find_user(login)
        if found is None or found.type != "Organization":
            return None
        seeded = (one for one in self.config.seed.organisations if one.login.lower() == login.lower())
        return next(seeded, OrganisationSeed(found.login))

    def owns(self, organisation: str, user: User) -> bool:
        """Whether somebody is an owner; without a seed of its own, those are who is `admin` unless said otherwise."""
        seed = self.organisation(organisation)
        if seed is None:
            return False
        named = seed.owners or tuple(one.login for one in self.config.seed.users if one.permission == "admin")
        return user.login.lower() in {name.lower() for name in named}

    def pull_by_node(self, node: str) -> tuple[Repository, Issue, Pull] | None:
        for repository in self.registry.repositories.values():
            for issue, pull in repository.pulls():
                if pull.node_id == node:
                    return repository, issue, pull
        return None

    def label(self, repository: Repository, name: str) -> Label | None:
        return repository.labels.get(name.lower())

    def add_label(self, repository: Repository, name: str, color: str = "ededed", text: str | None = None) -> Label:
        number, node = self.ids.new("LA")
        label = Label(number, node, name, color, text)
        repository.labels[name.lower()] = label
        return label


def at_least(role: str, wanted: str) -> bool:
    return ROLES.index(role) >= ROLES.index(wanted)
