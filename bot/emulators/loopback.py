"""Serve an ASGI app on a loopback port: bound before anyone is told, stopped without waiting for idle clients."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

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


def _bound(port: int) -> socket.socket:
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every answer waits 40 ms.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", port))
    return sock


@asynccontextmanager
async def serving(app: ASGIApp, *, port: int = 0, on_stop: Callable[[], None] | None = None) -> AsyncIterator[str]:
    """Yields the address while the app answers on it; `on_stop` runs before open requests are waited for."""
    sock = _bound(port)
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await server.ready.wait()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        if on_stop is not None:
            on_stop()
        server.stopping.set()
        await task
        sock.close()


async def until_signalled() -> None:
    """Returns at SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
