"""Serve sandboxes on a loopback port: inside another program (`running`) or as a process of its own (`serve_forever`)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bot.sandboxd.egress.proxy import Outside
from bot.sandboxd.launch import Launcher
from bot.sandboxd.limits import Limits
from bot.sandboxd.probe import prove_isolation
from bot.sandboxd.registry import Registry
from bot.sandboxd.snapshots import Snapshots
from bot.sandboxd.templates import Template, base_template, python_template

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn import Server

_CLOSING_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Config:
    """`home` is PULLWRIGHT_HOME, whose `templates/*.toml` are added to `templates`; port 0 is one of the server's choosing."""

    home: Path
    api_key: str
    templates: tuple[Template, ...] = field(default_factory=lambda: (python_template(), base_template()))
    host: str = "127.0.0.1"
    port: int = 0
    limits: Limits = field(default_factory=Limits)
    outside: Outside = field(default_factory=Outside)
    machine: str = field(default_factory=lambda: os.uname().machine)
    """The processor; there are system call filters for x86-64 and ARM64."""
    weaker: bool = False
    """Serve although the system call filter is missing or leaves something open."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a client of the `e2b` SDK needs to know, and one sentence when the machine bounds less than it should."""

    api_url: str
    sandbox_url: str
    api_key: str
    shortfall: str = ""


@asynccontextmanager
async def running(config: Config, *, around: Callable[[ASGIApp], ASGIApp] = lambda app: app) -> AsyncIterator[Endpoint]:
    """The server inside this event loop; every sandbox is dead when the block ends. Raises IsolationUnavailable.

    `around` may put a listener around what answers.

    The thread that runs the loop must outlive the block: the kernel ties each sandbox to the thread that started it.
    """
    from bot.sandboxd.app import build  # noqa: PLC0415 - the SDK and the web stack load only when something is served

    templates = _templates(config)
    launcher = await asyncio.to_thread(
        Launcher, templates.values(), config.limits, machine=config.machine, weaker=config.weaker
    )
    snapshots = Snapshots(config.home / "snapshots", config.limits)
    registry = Registry(templates.values(), config.limits, launcher, snapshots, config.outside)
    try:
        weakness = await prove_isolation(launcher, next(iter(templates.values())), weaker=config.weaker)
        shortfall = " ".join(filter(None, (weakness, launcher.cgroups.shortfall)))
        with _listening(config) as listener:
            url = f"http://{config.host}:{listener.getsockname()[1]}"
            app = around(build(registry, api_key=config.api_key, limits=config.limits))
            async with _served(app, listener, registry):
                yield Endpoint(url, url, config.api_key, shortfall)
    finally:
        await registry.close()


async def serve_forever(config: Config, announce: Callable[[Endpoint], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` is called once, when requests are answered."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        async with running(config) as endpoint:
            announce(endpoint)
            await stop.wait()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _templates(config: Config) -> dict[str, Template]:
    directory = config.home / "templates"
    added: tuple[Template, ...] = ()
    if directory.is_dir():
        from bot.sandboxd.template_files import load_templates  # noqa: PLC0415 - pydantic only when there are files to check

        added = load_templates(directory, config.templates)
    return {template.name: template for template in (*config.templates, *added)}


@contextmanager
def _listening(config: Config) -> Iterator[socket.socket]:
    # The protocol is named because asyncio turns Nagle's delay (40 ms an answer) off only where it is.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host, config.port))
        listener.listen(512)
        yield listener


@asynccontextmanager
async def _served(app: ASGIApp, listener: socket.socket, registry: Registry) -> AsyncIterator[None]:
    accepting = asyncio.Event()
    server = _server(app, accepting)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await accepting.wait()
        yield
    finally:
        # Sandboxes first: their streams end, so the connections can close by themselves.
        await registry.end_all()
        server.should_exit = True
        await serving


def _server(app: ASGIApp, accepting: asyncio.Event) -> Server:
    import uvicorn  # noqa: PLC0415 - see `running`

    class Embedded(uvicorn.Server):
        """Leaves the signals of the program that embeds it alone."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            accepting.set()

    settings = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        access_log=False,
        proxy_headers=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=400,  # longer than the SDK keeps a connection, so that it never writes into a closing one
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    return Embedded(settings)
