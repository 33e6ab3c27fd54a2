"""GitHub as far as intake asks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn, cast

from bot.domain.event import Actor
from bot.domain.ids import InstallationId, RepositoryId
from bot.domain.pull import Permission
from bot.providers.forge.port import Forge, ForgeGone
from tests.unit.stages.intake.builders import APP, BOT


@dataclass
class Forges:
    """Answers about permissions, with a list of what was asked."""

    permissions: dict[str, Permission] = field(default_factory=lambda: {"ana": Permission.WRITE})
    gone: bool = False
    asked: list[str] = field(default_factory=list)

    async def open(self, installation: InstallationId, repository: RepositoryId) -> Forge:
        if self.gone:
            raise ForgeGone("404")
        self.asked.append(f"open {installation} {repository}")
        return cast(Forge, self)

    async def permission(self, login: str) -> Permission:
        self.asked.append(login)
        return self.permissions.get(login, Permission.NONE)

    async def bot(self) -> Actor:
        return BOT

    async def app_id(self) -> int:
        return APP


@dataclass
class OutOfReach(Forges):
    """Notes which repositories are asked for, and has none of them."""

    opened: list[tuple[int, int]] = field(default_factory=list)

    async def open(self, installation: InstallationId, repository: RepositoryId) -> NoReturn:
        self.opened.append((installation, repository))
        raise ForgeGone("no such repository")
