"""A command as the server sees it: its output pumped to subscribers with back-pressure, its end told exactly once."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

_CHUNK = 32 << 10
_WIDE_CHUNK, _WIDE_PIPE = 512 << 10, 1 << 20
_QUEUE = 64
_QUIET_SECONDS = 0.25


class Kind(StrEnum):
    """What a subscriber is told; the first three are the names of the wire."""

    STDOUT = "stdout"
    STDERR = "stderr"
    TERMINAL = "pty"
    END = "end"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Event:
    kind: Kind
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended, in E2B's words."""

    exit_code: int
    exited: bool
    status: str
    error: str | None

    @classmethod
    def of(cls, code: int) -> Ending:
        """`code` as Python counts: negative for a signal."""
        if code < 0:
            status = f"signal: {(signal.strsignal(-code) or str(-code)).lower()}"
            return cls(-1, exited=False, status=status, error=status)
        status = f"exit status {code}"
        return cls(code, exited=True, status=status, error=status if code else None)


@dataclass(frozen=True, slots=True)
class TerminalSize:
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Command:
    """What to start, with pipes or on a terminal. `tag` and the rest are told again by `list`."""

    program: str
    args: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None
    stdin: bool
    tag: str | None = None
    terminal: TerminalSize | None = None


class Subscriber:
    """A bounded queue to one reader. A full queue holds the command back; a closed one holds nothing back."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_QUEUE)
        self._closed = False

    @property
    def empty(self) -> bool:
        return self._queue.empty()

    async def put(self, event: Event) -> None:
        if not self._closed:
            await self._queue.put(event)

    async def get(self, seconds: float) -> Event | None:
        """The next event, or None when there is none within `seconds`."""
        with suppress(asyncio.QueueEmpty):
            return self._queue.get_nowait()
        try:
            async with asyncio.timeout(seconds):
                return await self._queue.get()
        except TimeoutError:
            return None

    def close(self) -> None:
        """The reader is gone: let go whoever waits for room."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait()


class Process:
    """One command. It exists before the agent is asked to start it, so even the fastest exit finds it."""

    def __init__(self, command: Command, outputs: Mapping[Kind, int], stdin: int | None = None) -> None:
        self.command = command
        self.pid = 0
        self.exit_code: int | None = None
        self.ending: Ending | None = None
        self.exited = asyncio.Event()
        self.gone = False
        self.timed_out = False
        self._stdin = stdin
        self._stdin_lock = asyncio.Lock()
        self._stdin_room: asyncio.Future[None] | None = None
        self._outputs = dict(outputs)
        self._pumps: list[asyncio.Task[None]] = []
        self._subscribers: set[Subscriber] = set()
        self._chunk = _CHUNK
        self._produced = 0
        self._held = 0
        self._deadline: asyncio.TimerHandle | None = None

    def subscribe(self) -> Subscriber:
        subscriber = Subscriber()
        self._subscribers.add(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.discard(subscriber)
        subscriber.close()

    def on_terminal(self, fd: int, size: TerminalSize) -> None:
        """Its one descriptor is output and input; no descriptor, or none of a terminal, is no terminal."""
        if fd < 0 or not os.isatty(fd):
            if fd >= 0:
                os.close(fd)
            return
        self._stdin = os.dup(fd)
        self._outputs = {Kind.TERMINAL: fd}
        with suppress(OSError):
            self.resize(size)

    def widen(self) -> None:
        """For a command that moves much: wider pipes, larger pieces, fewer turns. What the machine does not grant stays as it is."""
        self._chunk = _WIDE_CHUNK
        for fd in (*self._outputs.values(), *(() if self._stdin is None else (self._stdin,))):
            with suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _WIDE_PIPE)

    def resize(self, size: TerminalSize) -> None:
        """Raises OSError when it is on no terminal, or is over."""
        if self._stdin is None or Kind.TERMINAL not in self._outputs:
            raise OSError(errno.ENOTTY, "not on a terminal")
        fcntl.ioctl(self._stdin, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))

    def started(self, pid: int) -> None:
        self.pid = pid
        if self._stdin is not None:
            os.set_blocking(self._stdin, False)
        for kind, fd in self._outputs.items():
            os.set_blocking(fd, False)
            self._pumps.append(asyncio.create_task(self._pump(kind, fd)))

    def never_started(self) -> None:
        """Close what was opened for it."""
        for fd in self._outputs.values():
            os.close(fd)
        self.close_stdin()

    def kill_at(self, timer: asyncio.TimerHandle) -> None:
        self._deadline = timer

    async def finish(self) -> None:
        """The command has exited: give its last output time to arrive, then tell the end."""
        if self._deadline is not None:
            self._deadline.cancel()
        await self._drain()
        self.close_stdin()
        self.ending = Ending.of(self.exit_code or 0)
        await self._tell(Event(Kind.END))
        self._subscribers.clear()

    async def lose(self) -> None:
        """The sandbox is gone: no end will ever be known."""
        if self._deadline is not None:
            self._deadline.cancel()
        self.gone = True
        self.close_stdin()
        for pump in self._pumps:
            pump.cancel()
        await self._tell(Event(Kind.GONE))
        self._subscribers.clear()

    async def write(self, data: bytes) -> None:
        """To standard input. Raises ValueError when it is not open, BrokenPipeError when nobody reads."""
        view = memoryview(data)
        async with self._stdin_lock:
            while view:
                if self._stdin is None:
                    raise ValueError("standard input is not open")
                try:
                    view = view[os.write(self._stdin, view) :]
                except BlockingIOError:
                    await self._room(self._stdin)

    async def _room(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        room = self._stdin_room = loop.create_future()
        loop.add_writer(fd, _settle, room)
        try:
            await room
        finally:
            if self._stdin is not None:
                loop.remove_writer(fd)

    def close_stdin(self) -> None:
        """Signal end of file; a write that waits for room is told that it is too late."""
        if self._stdin is not None:
            if self._stdin_room is not None:
                asyncio.get_running_loop().remove_writer(self._stdin)
                _settle(self._stdin_room)
            os.close(self._stdin)
            self._stdin = None

    async def _drain(self) -> None:
        """Until both pipes end, or, when a survivor holds them open, until they are quiet or one pipe's fill has passed."""
        last = self._produced + sum(_capacity(fd) for fd in self._outputs.values())
        while running := [pump for pump in self._pumps if not pump.done()]:
            before = self._produced
            await asyncio.wait(running, timeout=_QUIET_SECONDS)
            quiet = self._produced == before and not self._held
            if quiet or self._produced > last:
                break

    async def _pump(self, kind: Kind, fd: int) -> None:
        try:
            while True:
                try:
                    data = os.read(fd, self._chunk)
                except BlockingIOError:
                    await _wait(fd)
                    continue
                except OSError:  # a terminal's other end has been closed
                    return
                if not data:
                    return
                self._produced += len(data)
                if self.ending is None:
                    await self._tell(Event(kind, data))
                if not self._subscribers:  # nobody holds it back, so it may never have to wait, and others would
                    await asyncio.sleep(0)
        finally:
            os.close(fd)

    async def _tell(self, event: Event) -> None:
        self._held += 1
        try:
            for subscriber in tuple(self._subscribers):
                await subscriber.put(event)
        finally:
            self._held -= 1


def _capacity(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    except OSError:
        return 0


async def _wait(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
