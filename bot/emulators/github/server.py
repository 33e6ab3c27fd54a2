"""The stand-in as something that runs: inside a test, or for a command that serves until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from bot.emulators.github.birth import create_world, key_pair
from bot.emulators.github.config import Config
from bot.emulators.github.handlers import HANDLERS
from bot.emulators.github.service import Service
from bot.emulators.github.world import ROLES, World


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


class _Server(uvicorn.Server):
    """Leaves the signal handlers of the process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def running(
    config: Config | None = None, wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> AsyncIterator[Endpoint]:
    """Serve on a loopback port of its own choosing until the block ends. `wrap` may put a listener around the application."""
    config = config or Config()
    with tempfile.TemporaryDirectory(prefix="github-stand-in-") as root:
        world = await create_world(config, Path(root))
        service = wrap(Service(world, HANDLERS))
        # asyncio turns Nagle off only where the protocol is named; without that each answer waits 40 ms for an ACK
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((config.host, config.port))
            url = f"http://{config.host}:{listener.getsockname()[1]}"
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(_serving(_settings(service), [listener]))
                if config.unix_socket:
                    await stack.enter_async_context(_serving(_settings(service, config.unix_socket), None))
                stack.push_async_callback(world.stop)
                yield _endpoint(world, url)


def _settings(service: ASGIApp, uds: str | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        service,
        uds=uds,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )


@asynccontextmanager
async def _serving(settings: uvicorn.Config, sockets: list[socket.socket] | None) -> AsyncIterator[None]:
    server = _Server(settings)
    task = asyncio.get_running_loop().create_task(server.serve(sockets=sockets))
    while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn offers a flag, not an event
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        server.should_exit = True
        await task


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
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(config) as endpoint:
        with tempfile.TemporaryDirectory(prefix="github-stand-in-key-") as directory:
            key_file = Path(directory) / "app.pem"
            key_file.touch(mode=0o600)
            key_file.write_text(endpoint.private_key_pem)
            announce(description(endpoint, key_file))
            await stop.wait()
