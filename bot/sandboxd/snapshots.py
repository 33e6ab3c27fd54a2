"""The files of a sandbox, kept for other sandboxes to start from: a tar and a note about it in PULLWRIGHT_HOME/snapshots.

Both tars run inside (one as any command of the sandbox that is kept, one in a sandbox where nothing else has run yet), so this side
never reads an archive or a path of theirs: it moves bytes, and counts them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from bot.sandboxd.errors import AgentRefused, NotKept
from bot.sandboxd.limits import Limits
from bot.sandboxd.processes import Command, Kind, Process, Subscriber
from bot.sandboxd.sandbox import Sandbox
from bot.sandboxd.templates import Template, interpreter_binds

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_SECONDS = 300
_BLOCK = 4 << 20
_WHAT = ("home/user", "tmp")
_FORM = ("--format=posix", "--sparse", "--one-file-system", "--warning=no-file-ignored")
"""One file system: a template may bind something below /tmp, and that is not the sandbox's own."""
_PACK = ("--create", "--file=-", *_FORM, "--directory=/", "--anchored", "--no-wildcards")
_UNPACK = ("--extract", "--file=-", "--preserve-permissions", "--no-same-owner", "--directory=/")
_CHANGED_MEANWHILE = 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the note says. `fingerprint` is the template's, because a snapshot of another /opt is of no use."""

    id: str
    name: str
    template: str
    fingerprint: str
    file: str
    bytes: int
    made_at: float


class Snapshots:
    """Bounded in number and bytes: those that nobody has started from for longest make room."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        self._directory = directory
        self._limits = limits

    def find(self, wanted: str) -> Snapshot | None:
        """By id or by name."""
        identifier = wanted if re.fullmatch(r"sn[0-9a-f]{18}", wanted) else _id_of(wanted)
        return self._read(self._directory / f"{identifier}.json")

    def all(self) -> list[Snapshot]:
        """Oldest first."""
        return sorted(self._notes(), key=lambda snapshot: (snapshot.made_at, snapshot.id))

    def delete(self, snapshot: Snapshot) -> None:
        """Sandboxes that have started from it are not touched."""
        (self._directory / f"{snapshot.id}.json").unlink(missing_ok=True)
        (self._directory / snapshot.file).unlink(missing_ok=True)

    async def keep(self, sandbox: Sandbox, template: Template, name: str) -> Snapshot:
        """What stands in the sandbox now; under a name that is taken it takes its place. Raises NotKept."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        identifier = _id_of(name) if name else "sn" + secrets.token_hex(9)
        path = self._directory / f"{identifier}-{secrets.token_hex(4)}.tar"
        try:
            size = await self._pack(sandbox, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        made = Snapshot(identifier, name, template.name, fingerprint(template), path.name, size, time.time())
        before = self.find(identifier)
        _write(self._directory / f"{identifier}.json", json.dumps(asdict(made)))
        if before is not None:
            (self._directory / before.file).unlink(missing_ok=True)
        self._make_room(made)
        return made

    async def restore(self, snapshot: Snapshot, sandbox: Sandbox) -> None:
        """Put what was kept into a fresh sandbox. Raises NotKept when it is no more, or does not fit."""
        try:
            with (self._directory / snapshot.file).open("rb") as file:
                os.utime(self._directory / f"{snapshot.id}.json")
                process, subscriber = await _tar(sandbox, _UNPACK, stdin=True)
                ending = asyncio.create_task(_ended(process, subscriber, None))  # what tar says is read while it reads
                while data := await asyncio.to_thread(file.read, _BLOCK):
                    await process.write(data)
        except FileNotFoundError:
            raise NotKept(f"snapshot '{snapshot.id}' is no more") from None
        except (ValueError, BrokenPipeError):
            pass  # tar has ended before its input: it says why
        process.close_stdin()
        code, said = await ending
        if code:
            raise NotKept(f"snapshot '{snapshot.id}' cannot be restored: {said}")

    async def _pack(self, sandbox: Sandbox, path: Path) -> int:
        bound = (bind.target for bind in (*interpreter_binds(), *sandbox.template.binds))
        without = (f"--exclude={target.lstrip('/')}" for target in bound)
        process, subscriber = await _tar(sandbox, (*_PACK, *without, *_WHAT), stdin=False)
        with path.open("xb") as file:
            room = self._limits.home_bytes + self._limits.tmp_bytes
            sink = _Sink(file, room, lambda: sandbox.expire(process, 0))
            code, said = await _ended(process, subscriber, sink)
            file.write(sink.block)
        if sink.full:
            raise NotKept(f"more than {sink.room >> 20} MiB")
        if code not in {0, _CHANGED_MEANWHILE}:
            raise NotKept(said)
        return sink.size

    def _notes(self) -> Iterator[Snapshot]:
        for path in self._directory.glob("sn*.json"):
            note = self._read(path)
            if note is not None:
                yield note

    def _read(self, path: Path) -> Snapshot | None:
        try:
            return Snapshot(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _make_room(self, newest: Snapshot) -> None:
        used = sorted(self._notes(), key=lambda note: (note.id != newest.id, -self._used_at(note)))
        total = 0
        for number, note in enumerate(used):
            total += note.bytes
            if number and (number >= self._limits.snapshots or total > self._limits.snapshot_bytes):
                self.delete(note)

    def _used_at(self, snapshot: Snapshot) -> float:
        try:
            return (self._directory / f"{snapshot.id}.json").stat().st_mtime
        except FileNotFoundError:
            return 0.0


def fingerprint(template: Template) -> str:
    """Of all that a template puts into a sandbox, by name."""
    said = [sorted((str(b.source), b.target) for b in template.binds), sorted(template.env.items()), template.path]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _id_of(name: str) -> str:
    return "sn" + hashlib.sha256(name.encode()).hexdigest()[:18]


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(f".{secrets.token_hex(4)}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


async def _tar(sandbox: Sandbox, arguments: tuple[str, ...], *, stdin: bool) -> tuple[Process, Subscriber]:
    try:
        process, subscriber = await sandbox.spawn(Command("/bin/tar", arguments, {"TAR_OPTIONS": ""}, "/", stdin=stdin))
    except AgentRefused as refused:
        raise NotKept(f"tar does not start: {refused}") from None
    process.widen()
    sandbox.expire(process, _SECONDS)
    return process, subscriber


class _Sink:
    """Writes to a file in large blocks, and nothing any more once `room` is used up, which it tells once."""

    def __init__(self, file: IO[bytes], room: int, tell: Callable[[], None]) -> None:
        self._file = file
        self._tell = tell
        self.room = room
        self.size = 0
        self.block = bytearray()

    @property
    def full(self) -> bool:
        return self.size > self.room

    async def take(self, data: bytes) -> None:
        before, self.size = self.size, self.size + len(data)
        if before <= self.room < self.size:
            self._tell()
        if self.size <= self.room:
            self.block += data
        if len(self.block) >= _BLOCK:
            block, self.block = self.block, bytearray()
            await asyncio.to_thread(self._file.write, block)


async def _ended(process: Process, subscriber: Subscriber, sink: _Sink | None) -> tuple[int, str]:
    """tar's exit code, and what it complained of. What comes after a full sink is thrown away."""
    complaint = b""
    while (event := await subscriber.get(_SECONDS)) is not None and event.kind in {Kind.STDOUT, Kind.STDERR}:
        if event.kind is Kind.STDOUT and sink is not None:
            await sink.take(event.data)
        else:
            complaint = (complaint + event.data)[-400:]
    code = process.ending.exit_code if process.ending is not None and not process.timed_out else -1
    return code, complaint.decode("utf-8", "replace").strip() or f"tar ended with {code}"
