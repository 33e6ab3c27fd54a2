"""The server's end of the socket to an agent. What comes from there is untrusted: checked, bounded, typed."""

from __future__ import annotations

import array
import asyncio
import json
import marshal
import os
import re
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from bot.sandboxd.errors import AgentRefused, SandboxGone

_FRAME_CAP = 32 << 20
_HEAD = struct.Struct("!I")
_FDS_PER_READ = 16
_FDS_AHEAD = 64
_SAID_CAP = 2000
_SURROGATE = re.compile("[\ud800-\udfff]")


class _ViolationError(ValueError):
    """The agent did not keep to the protocol: it is no longer our agent."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call; whoever gets `fds` closes them."""

    fields: Mapping[str, object]
    fds: list[int] = field(default_factory=list)

    def text(self, name: str) -> str:
        """What is not UTF-8 is shown with replacement characters: the wire has no other way."""
        value = self.fields.get(name)
        return shown(value) if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        value = self.fields.get(name)
        return value if isinstance(value, int) else 0


class Channel:
    """Calls with replies matched by id, and events: `on_exit(key, code)`, `on_ready()`, `on_gone()` (once, last)."""

    def __init__(
        self, sock: socket.socket, *, on_exit: Callable[[int, int], None], on_gone: Callable[[], None]
    ) -> None:
        self._sock = sock
        self._on_exit = on_exit
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int, asyncio.Future[Reply]] = {}
        self._next = 0
        self._buffer = bytearray()
        self._fds: deque[int] = deque()
        self._writing = asyncio.Lock()
        self._open = True
        self.ready: asyncio.Future[None] = self._loop.create_future()
        sock.setblocking(False)
        self._loop.add_reader(sock, self._readable)

    async def call(self, op: str, arguments: Mapping[str, object], *, fds: tuple[int, ...] = ()) -> Reply:
        """Ask the agent; raises AgentRefused with its error, SandboxGone when it is no more."""
        if not self._open:
            raise SandboxGone
        self._next += 1
        number = self._next
        answer: asyncio.Future[Reply] = self._loop.create_future()
        self._calls[number] = answer
        try:
            await self._write(marshal.dumps({**arguments, "op": op, "id": number, "fds": len(fds)}), fds)
            return await answer
        except OSError:
            raise SandboxGone from None
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                _close(answer.result().fds)
            raise
        finally:
            self._calls.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()

    async def _write(self, body: bytes, fds: tuple[int, ...]) -> None:
        frame = _HEAD.pack(len(body)) + body
        async with self._writing:
            while True:
                try:
                    sent = socket.send_fds(self._sock, [frame], list(fds)) if fds else self._sock.send(frame)
                    break
                except BlockingIOError:
                    await self._writable()
            if sent < len(frame):
                await self._loop.sock_sendall(self._sock, frame[sent:])

    async def _writable(self) -> None:
        free: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._sock, lambda: None if free.done() else free.set_result(None))
        try:
            await free
        finally:
            self._loop.remove_writer(self._sock)

    def _readable(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(
                1 << 20, socket.CMSG_SPACE(_FDS_PER_READ * 4), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        for level, kind, raw in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(raw[: len(raw) - len(raw) % numbers.itemsize])
                self._fds.extend(numbers)
        self._buffer += data
        try:
            # Descriptors that no message counts would use up the server's own.
            intact = bool(data) and self._parse() and len(self._fds) <= _FDS_AHEAD
        except (ValueError, KeyError, TypeError, RecursionError):
            intact = False
        if not intact:
            self.close()

    def _parse(self) -> bool:
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            if size > _FRAME_CAP:
                raise _ViolationError
            if len(self._buffer) < _HEAD.size + size:
                break
            message = json.loads(bytes(self._buffer[_HEAD.size : _HEAD.size + size]), parse_constant=_no_number)
            del self._buffer[: _HEAD.size + size]
            if not isinstance(message, dict):
                raise _ViolationError
            self._take(message)
        return self._open

    def _take(self, message: dict[str, object]) -> None:
        count = message.get("fds", 0)
        if not isinstance(count, int) or not 0 <= count <= len(self._fds):
            raise _ViolationError
        fds = [self._fds.popleft() for _ in range(count)]
        if "event" in message:
            _close(fds)
            self._event(message)
            return
        number = message["id"]
        call = self._calls.pop(number, None) if isinstance(number, int) else None
        if call is None or call.done():
            _close(fds)
        elif isinstance(result := message.get("ok"), dict):
            call.set_result(Reply(result, fds))
        else:
            _close(fds)
            errno = message.get("errno")
            said = shown(str(message.get("message", ""))[:_SAID_CAP])
            call.set_exception(
                AgentRefused(shown(str(message["error"])), said, errno if isinstance(errno, int) else None)
            )

    def _event(self, message: dict[str, object]) -> None:
        if message["event"] == "ready":
            if not self.ready.done():
                self.ready.set_result(None)
            return
        key, code = message["key"], message["code"]
        if message["event"] != "exit" or not isinstance(key, int) or not isinstance(code, int):
            raise _ViolationError
        self._on_exit(key, code)

    def close(self) -> None:
        """End the conversation; every open call fails with SandboxGone."""
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._sock)
        self._sock.close()
        _close(self._fds)
        for call in self._calls.values():
            if not call.done():
                call.set_exception(SandboxGone())
        self._calls.clear()
        if not self.ready.done():
            self.ready.set_exception(SandboxGone())
            self.ready.exception()
        self._on_gone()


def shown(text: str) -> str:
    """Text from inside, as far as it can be told: a name that is not UTF-8 comes as lone surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def _no_number(word: str) -> None:
    raise _ViolationError(word)


def _close(fds: list[int] | deque[int]) -> None:
    for fd in fds:
        with suppress(OSError):
            os.close(fd)
