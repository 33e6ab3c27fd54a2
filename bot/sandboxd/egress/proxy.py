"""The only way out of a sandbox: CONNECT to an exact host and port, to a public address looked up here, with TLS to that very host.

The address that was checked is the one that is dialled. Bytes are counted, connections too, and every decision is told.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from bot.sandboxd.egress.hello import HEAD_BYTES, BadHello, record_length, server_name
from bot.sandboxd.egress.rules import Denied, Destination, is_public, parse_target, plain_host

HEADER_CAP = 8192
_HEADER_SECONDS = 5.0
_DIAL_SECONDS = 10.0
_IDLE_SECONDS = 300.0
_CHUNK = 64 << 10
_BAD_LINES = re.compile(rb"[^\r]\n|\r[^\n]|\0|\A\n")
_SETTING = "PULLWRIGHT_EGRESS"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def resolve(host: str, port: int) -> list[str]:
    """Every address the machine's resolver knows for the host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def dial(address: str, port: int) -> Streams:
    """A connection to an address, which is not looked up again."""
    return await asyncio.open_connection(address, port)


@dataclass(frozen=True, slots=True)
class Outside:
    """How names are looked up and addresses dialled."""

    resolve: Callable[[str, int], Awaitable[list[str]]] = resolve
    dial: Callable[[str, int], Awaitable[Streams]] = dial


@dataclass(frozen=True, slots=True)
class Decision:
    """One attempt to get out."""

    target: str
    allowed: bool
    reason: str
    unlisted: bool = False
    """Denied for no other reason than that the list does not name it."""


@dataclass(slots=True)
class Budget:
    """What may still pass in each direction, and how many connections at once."""

    up_bytes: int = 5 << 20
    down_bytes: int = 2 << 30
    connections: int = 32


@dataclass(slots=True)
class EgressProxy:
    """Serves one sandbox. `allow` may change while it serves: tunnels to what is no longer allowed are cut."""

    tell: Callable[[Decision], None]
    outside: Outside = field(default_factory=Outside)
    budget: Budget = field(default_factory=Budget)
    _allowed: frozenset[Destination] = frozenset()
    _tunnels: dict[asyncio.Task[None], Destination] = field(default_factory=dict)
    _open: int = 0

    def allow(self, destinations: Iterable[Destination]) -> None:
        """From now on these and no others."""
        self._allowed = frozenset(destinations)
        for tunnel, destination in self._tunnels.items():
            if destination not in self._allowed:
                tunnel.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from inside, from its first byte to its end."""
        self._open += 1
        try:
            await self._converse(reader, writer)
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            return
        finally:
            self._open -= 1
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            destination = await _asked(reader)
            address = await self._admitted(destination)
        except Denied as denied:
            self.tell(Decision(denied.target, allowed=False, reason=denied.reason, unlisted=denied.unlisted))
            await _answer(writer, denied.status, denied.reason)
            return
        await _answer(writer, 200, "Go ahead")
        try:
            first = await _greeting(reader, destination)
        except (BadHello, EOFError, TimeoutError) as refusal:
            self.tell(Decision(str(destination), allowed=False, reason=str(refusal) or "no TLS greeting came"))
            return
        self.tell(Decision(str(destination), allowed=True, reason=address))
        await self._tunnel((reader, writer), destination, address, first)

    async def _admitted(self, destination: Destination) -> str:
        """The address to dial. Raises Denied."""
        target = str(destination)
        if self._open > self.budget.connections:
            raise Denied(503, "Too many connections at once", target)
        if destination not in self._allowed:
            raise Denied(
                403, f"Pullwright denied {target}; to allow it add {target} to {_SETTING}", target, unlisted=True
            )
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                addresses = await self.outside.resolve(destination.host, destination.port)
        except (OSError, TimeoutError, UnicodeError):
            addresses = []
        if not addresses:
            raise Denied(502, f"{destination.host} has no address", target)
        if not all(map(is_public, addresses)):
            raise Denied(403, f"{destination.host} leads to an address that is not public", target)
        return addresses[0]

    async def _tunnel(self, inside: Streams, destination: Destination, address: str, first: bytes) -> None:
        async with asyncio.timeout(_DIAL_SECONDS):
            outside = await self.outside.dial(address, destination.port)
        task = asyncio.create_task(self._both_ways(inside, outside, first))
        self._tunnels[task] = destination
        try:
            if destination not in self._allowed:
                task.cancel()
            await task
        except asyncio.CancelledError:
            task.cancel()
            if not task.cancelled():
                raise
        finally:
            self._tunnels.pop(task, None)
            outside[1].close()

    async def _both_ways(self, inside: Streams, outside: Streams, first: bytes) -> None:
        self._spend("up_bytes", len(first))
        outside[1].write(first)
        ways = {
            asyncio.create_task(self._carry(inside[0], outside[1], "up_bytes")),
            asyncio.create_task(self._carry(outside[0], inside[1], "down_bytes")),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, way: str) -> None:
        while True:
            async with asyncio.timeout(_IDLE_SECONDS):
                data = await source.read(_CHUNK)
            if not data:
                break
            self._spend(way, len(data))
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            with suppress(OSError):
                target.write_eof()

    def _spend(self, way: str, size: int) -> None:
        left = getattr(self.budget, way) - size
        setattr(self.budget, way, max(0, left))
        if left < 0:
            direction = "out" if way == "up_bytes" else "in"
            self.tell(Decision("", allowed=False, reason=f"the sandbox has used up what it may send {direction}"))
            raise ConnectionAbortedError


async def _asked(reader: asyncio.StreamReader) -> Destination:
    """The head of the request. Nothing but `CONNECT HOST:PORT HTTP/1.x` in plain lines is understood."""
    try:
        async with asyncio.timeout(_HEADER_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
        raise Denied(400, "The request's head is too long, too slow or cut short") from None
    if len(head) > HEADER_CAP or _BAD_LINES.search(head) or not head.isascii():
        raise Denied(400, "The request's head is malformed")
    words = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if len(words) != 3 or words[0] != "CONNECT" or words[2] not in {"HTTP/1.1", "HTTP/1.0"}:
        raise Denied(405, "Only HTTPS gets out, by CONNECT", ascii(" ".join(words)[:80]))
    return parse_target(words[1])


async def _greeting(reader: asyncio.StreamReader, destination: Destination) -> bytes:
    """The client's first TLS record, whose name must be the host that was asked for."""
    async with asyncio.timeout(_HEADER_SECONDS):
        head = await reader.readexactly(HEAD_BYTES)
        record = await reader.readexactly(record_length(head))
    name = server_name(record)
    if plain_host(name) != destination.host:
        raise BadHello(f"TLS asks for another host: {name[:100]!a}")
    return head + record


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    body = b"" if status == 200 else f"{reason}\n".encode("ascii", "replace")
    length = "" if status == 200 else f"Content-Length: {len(body)}\r\nConnection: close\r\n"
    line = reason.encode("ascii", "replace").decode()
    writer.write(f"HTTP/1.1 {status} {line}\r\n{length}\r\n".encode() + body)
    await writer.drain()
