"""What happens in a directory of a sandbox, read here from an inotify descriptor that its agent made and handed out."""

from __future__ import annotations

import asyncio
import os
import struct
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.sandbox import Sandbox

_HEAD = struct.Struct("iIII")
_BUFFER = 64 << 10
_DIRECTORY, _IGNORED = 0x40000000, 0x8000
_MOST_FOLDERS = 16_384
_KEPT = 16_384
_PAUSE_SECONDS = 60.0
_KINDS = ((0x100 | 0x80, "create"), (0x2, "write"), (0x200 | 0x400, "remove"), (0x40, "rename"), (0x4, "chmod"))
"""By inotify's masks, as fsnotify names them: what is moved in is created, what is moved out renamed."""

Event = tuple[str, str]
"""What, and the path relative to the directory that is watched."""


class Watch:
    """Nothing inside has to run for it, and nothing of what comes is believed but bytes, numbers and names."""

    def __init__(self, sandbox: Sandbox, path: str, fd: int, *, recursive: bool) -> None:
        self._sandbox = sandbox
        self._path = path
        self._fd = fd
        self._recursive = recursive
        self._folders: dict[int, str] = {}

    @classmethod
    async def begin(cls, sandbox: Sandbox, path: str, *, recursive: bool) -> Watch:
        """Raises AgentRefused when it is no directory."""
        reply = await sandbox.call("watch", path=path, recursive=recursive)
        if len(reply.fds) != 1 or not _is_inotify(reply.fds[0]):
            for fd in reply.fds:
                os.close(fd)
            raise AgentRefused("ValueError", f"'{path}' cannot be watched")
        watch = cls(sandbox, path, reply.fds[0], recursive=recursive)
        os.set_blocking(watch._fd, False)
        watch._learn(reply.fields.get("watches"), "")
        return watch

    def _learn(self, told: object, below: str) -> None:
        for row in told if isinstance(told, list) else []:
            match row:
                case [int(number), str(folder)] if len(self._folders) < _MOST_FOLDERS:
                    self._folders[number] = os.path.join(below, folder) if folder else below  # noqa: PTH118 - not of this machine

    async def next(self, seconds: float, stop: asyncio.Event | None = None) -> list[Event]:
        """What has happened; empty when nothing did for that long, or there is to be no more."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bool] = loop.create_future()
        ends: set[asyncio.Future[bool]] = set()
        ends |= {asyncio.ensure_future(event.wait()) for event in (self._sandbox.gone, stop) if event is not None}
        loop.add_reader(self._fd, lambda: None if ready.done() else ready.set_result(True))
        try:
            await asyncio.wait({ready, *ends}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(self._fd)
            for end in ends:
                end.cancel()
        try:
            data = os.read(self._fd, _BUFFER)
        except BlockingIOError:
            return []
        return [event async for event in self._events(data)]

    async def _events(self, data: bytes) -> AsyncIterator[Event]:
        for number, mask, name in _records(data):
            folder = self._folders.pop(number, None) if mask & _IGNORED else self._folders.get(number)
            if folder is None or not name:
                continue
            path = f"{folder}/{name}" if folder else name
            for bits, kind in _KINDS:
                if mask & bits:
                    yield kind, path
            if self._recursive and mask & _DIRECTORY and mask & (0x100 | 0x80):
                await self._add(path)

    async def _add(self, folder: str) -> None:
        """A directory that came later; it may be gone again."""
        with suppress(AgentRefused, SandboxGone):
            path = f"{self._path.rstrip('/')}/{folder}"
            reply = await self._sandbox.call("watch", path=path, recursive=True, fds=(self._fd,))
            self._learn(reply.fields.get("watches"), folder)

    def end(self) -> None:
        os.close(self._fd)


class Watcher:
    """Keeps what happens until it is asked for, as the SDK's synchronous half does; of very much the latest."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._stopped = asyncio.Event()

    async def collect(self, gone: asyncio.Event) -> None:
        """Until it is stopped or the sandbox is gone."""
        try:
            while not gone.is_set() and not self._stopped.is_set():
                self._events.extend(await self._watch.next(_PAUSE_SECONDS, self._stopped))
        finally:
            self._watch.end()

    def take(self) -> list[Event]:
        """What happened since the last time."""
        taken = list(self._events)
        self._events.clear()
        return taken

    def stop(self) -> None:
        self._stopped.set()


def _is_inotify(fd: int) -> bool:
    """An agent that is not ours any more might hand out one that never ends."""
    return str(Path(f"/proc/self/fd/{fd}").readlink()) == "anon_inode:inotify"


def _records(data: bytes) -> Iterator[tuple[int, int, str]]:
    position = 0
    while position + _HEAD.size <= len(data):
        number, mask, _, length = _HEAD.unpack_from(data, position)
        position += _HEAD.size
        name = data[position : position + length].split(b"\0", 1)[0]
        position += length
        yield number, mask, name.decode("utf-8", "surrogateescape")
