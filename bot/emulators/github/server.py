"""The stand-in as something that runs: inside a test, or for a command that serves until it is told to stop."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from bot.emulators.github.birth import create_world, key_pair
from bot.emulators.github.config import Config
from bot.emulators.github.handlers import HANDLERS
from bot.emulators.github.service import Service
from bot.emulators.github.world import ROLES, World
from bot.emulators.loopback import serving, serving_at, until_signalled


@dataclass(frozen=True, slots=True)
class RepositoryInfo:
    id: int
    full_name: str
    clone_url: str
    default_branch: str


@dataclass(frozen=True, slots=True)
class UserInfo:
    id: int
    token: str
    permission: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """All that a client needs to act on the stand-in."""

    url: str
    app_id: int
    client_id: str
    slug: str
    installation_id: int
    private_key_pem: str
    webhook_secret: str
    repositories: tuple[RepositoryInfo, ...]
    users: Mapping[str, UserInfo]
    world: World

    @property
    def stand_in_url(self) -> str:
        return f"{self.url}/_stand-in"

    async def settle(self) -> None:
        """Wait until background work and deliveries have ended."""
        await self.world.settle()
        await self.world.courier.settle()


@asynccontextmanager
async def running(
    config: Config | None = None, wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> AsyncIterator[Endpoint]:
    """Serve on a loopback port of its own choosing until the block ends. `wrap` may put a listener around the application."""
    config = config or Config()
    with tempfile.TemporaryDirectory(prefix="github-stand-in-") as root:
        world = await create_world(config, Path(root))
        service = wrap(Service(world, HANDLERS))
        async with contextlib.AsyncExitStack() as stack:
            url = await stack.enter_async_context(serving(service, host=config.host, port=config.port))
            if config.unix_socket:
                await stack.enter_async_context(serving_at(service, config.unix_socket))
            stack.push_async_callback(world.stop)
            yield _endpoint(world, url)


def _endpoint(world: World, url: str) -> Endpoint:
    repositories = tuple(
        RepositoryInfo(item.id, item.full_name, f"{url}/{item.full_name}.git", item.default_branch)
        for item in world.registry.repositories.values()
    )
    users = {
        user.login: UserInfo(user.id, user.token, _best_role(world, user.login))
        for user in world.registry.users.values()
        if user.token
    }
    return Endpoint(
        url=url,
        app_id=world.app.id,
        client_id=world.app.client_id,
        slug=world.app.slug,
        installation_id=next(iter(world.registry.installations), 0),
        private_key_pem=key_pair().private_pem,
        webhook_secret=world.app.webhook_secret,
        repositories=repositories,
        users=users,
        world=world,
    )


def _best_role(world: World, login: str) -> str:
    roles = [item.roles.get(login.lower(), "none") for item in world.registry.repositories.values()]
    return max(roles, key=ROLES.index, default="none")


def description(endpoint: Endpoint, private_key_file: Path) -> dict[str, Any]:
    """What the command prints when it is ready."""
    return {
        "url": endpoint.url,
        "app_id": endpoint.app_id,
        "installation_id": endpoint.installation_id,
        "private_key_file": str(private_key_file),
        "webhook_secret": endpoint.webhook_secret,
        "repositories": [
            {"full_name": item.full_name, "clone_url": item.clone_url, "id": item.id} for item in endpoint.repositories
        ],
        "users": {
            login: {"token": user.token, "permission": user.permission} for login, user in endpoint.users.items()
        },
    }


async def serve_forever(config: Config, announce: Callable[[Mapping[str, Any]], None]) -> None:
    """Announce once ready, then serve until SIGTERM or SIGINT."""
    async with running(config) as endpoint:
        with tempfile.TemporaryDirectory(prefix="github-stand-in-key-") as directory:
            key_file = Path(directory) / "app.pem"
            key_file.touch(mode=0o600)
            key_file.write_text(endpoint.private_key_pem)
            announce(description(endpoint, key_file))
            await until_signalled()
