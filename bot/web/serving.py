"""An application on a socket that is bound already, in an event loop whose signals are the caller's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette


def bound(host: str, port: int) -> socket.socket:
    """The socket to listen on, not listening yet; port 0 takes a free one. Raises OSError when it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only then.
    door = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
    except OSError:
        door.close()
        raise
    return door


@asynccontextmanager
async def listening(web: Starlette, door: socket.socket) -> AsyncIterator[str]:
    """Yields the address once requests are answered."""
    config = uvicorn.Config(
        web,
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        h11_max_incomplete_event_size=64 * 1024,
        timeout_graceful_shutdown=3,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([door]))
    try:
        await server.accepting.wait()
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """Leaves signals to the caller, and says when requests are answered or when it could not start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    @asynccontextmanager
    async def _announced(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.accepting.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        async with self._announced():
            await super().startup(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The signals are the caller's."""
        yield
