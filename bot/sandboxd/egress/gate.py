"""One sandbox's way out: a listener that its agent opened inside and handed over, served here, and a record of every decision."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.sandboxd.egress.proxy import HEADER_CAP, Decision, EgressProxy, Outside
from bot.sandboxd.egress.rules import Destination

_LOG = logging.getLogger(__name__)
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Noted:
    """A decision and when it was taken."""

    at: float
    decision: Decision


@dataclass(slots=True)
class Gate:
    """Open from the first time that anything is allowed to the sandbox's end; what is allowed may change."""

    sandbox_id: str
    outside: Outside
    noted: deque[Noted] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _proxy: EgressProxy | None = None
    _server: asyncio.Server | None = None
    _port: int = 0

    @property
    def is_open(self) -> bool:
        return self._server is not None

    async def open(self, fd: int) -> None:
        """Serve on this listener. ValueError when it is not one of the sandbox's own loopback; the descriptor is ours."""
        listener = socket.socket(fileno=fd)
        try:
            self._port = _port_of(listener)
            self._proxy = EgressProxy(self._note, self.outside)
            self._server = await asyncio.start_server(self._proxy.serve, sock=listener, limit=HEADER_CAP)
        except (OSError, ValueError):
            listener.close()
            raise

    def allow(self, destinations: Iterable[Destination]) -> None:
        if self._proxy is not None:
            self._proxy.allow(destinations)

    def environment(self) -> dict[str, str]:
        """How programs find the way out; what is on the sandbox's own loopback does not take it."""
        if not self.is_open:
            return {}
        address, local = f"http://127.0.0.1:{self._port}", "localhost,127.0.0.1,::1"
        names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
        return {**dict.fromkeys(names, address), "NO_PROXY": local, "no_proxy": local, "NODE_USE_ENV_PROXY": "1"}

    def close(self) -> None:
        """No new connection, and the end of those there are."""
        self.allow(())
        if self._server is not None:
            self._server.close()

    def _note(self, decision: Decision) -> None:
        self.noted.append(Noted(time.time(), decision))
        word = "allowed" if decision.allowed else "denied"
        _LOG.info("egress %s: sandbox %s, %s (%s)", word, self.sandbox_id, decision.target, decision.reason)


def _port_of(listener: socket.socket) -> int:
    if listener.family != socket.AF_INET or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ValueError("the agent handed out something else than a listener")
    return int(listener.getsockname()[1])
