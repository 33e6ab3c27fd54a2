"""Serve an ASGI app on a loopback port: bound before anyone is told, stopped without waiting for idle clients.

`hosting` and `serve_forever` are the whole serving of a stand-in with one key; its own module gives them a state and an app.
"""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """Leaves the process's signals alone and stops at once instead of at the next tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.stopping = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.ready.set()
        await self.stopping.wait()


def _bound(host: str, port: int) -> socket.socket:
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


@asynccontextmanager
async def serving(
    app: ASGIApp, *, host: str = "127.0.0.1", port: int = 0, on_stop: Callable[[], None] | None = None
) -> AsyncIterator[str]:
    """Yields the address while the app answers on it; `on_stop` runs before open requests are waited for."""
    with _bound(host, port) as sock:
        async with _answering(_Server(_settings(app)), [sock], on_stop):
            yield f"http://{host}:{sock.getsockname()[1]}"


@asynccontextmanager
async def serving_at(app: ASGIApp, path: str) -> AsyncIterator[None]:
    """The app answers on a unix socket."""
    async with _answering(_Server(_settings(app, path)), None, None):
        yield


def _settings(app: ASGIApp, uds: str | None = None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        uds=uds,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=2,
    )


@asynccontextmanager
async def _answering(
    server: _Server, sockets: list[socket.socket] | None, on_stop: Callable[[], None] | None
) -> AsyncIterator[None]:
    task = asyncio.create_task(server.serve(sockets=sockets))
    try:
        await server.ready.wait()
        yield
    finally:
        if on_stop is not None:
            on_stop()
        server.stopping.set()
        await task


async def until_signalled() -> None:
    """Returns at SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[S]):
    """Where a running stand-in answers (a base URL for the client), its key, and what it remembers."""

    url: str
    api_key: str
    state: S


@asynccontextmanager
async def hosting(
    app: ASGIApp, state: S, *, api_key: str, port: int, on_stop: Callable[[], None]
) -> AsyncIterator[Endpoint[S]]:
    """A stand-in on a loopback port for as long as the block lasts."""
    async with serving(app, port=port, on_stop=on_stop) as url:
        yield Endpoint(url, api_key, state)


async def serve_forever(running: AbstractAsyncContextManager[Endpoint[S]], announce: Callable[[str], None]) -> None:
    """Announce one JSON line when ready; serve until SIGTERM or SIGINT."""
    async with running as endpoint:
        announce(json.dumps({"url": endpoint.url, "api_key": endpoint.api_key}))
        await until_signalled()
