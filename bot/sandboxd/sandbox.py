"""One live sandbox: its launcher, its agent, its commands."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import stat
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bot.sandboxd.cgroups import Group
from bot.sandboxd.channel import Channel, Reply
from bot.sandboxd.egress.gate import Gate
from bot.sandboxd.egress.proxy import Outside
from bot.sandboxd.egress.rules import Destination
from bot.sandboxd.errors import AgentRefused, IsolationUnavailable, SandboxGone
from bot.sandboxd.launch import Launched, environment_of
from bot.sandboxd.processes import Command, Kind, Process, Subscriber, TerminalSize
from bot.sandboxd.templates import Template

_START_SECONDS = 20
_OBEY_SECONDS = 30
_MEMORY_SECONDS = 30


class State(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Request:
    """What a create call asked for."""

    template: str
    timeout_seconds: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    pause_at_expiry: bool = False
    egress: frozenset[Destination] = frozenset()


class Sandbox:
    """Everything that is asked of a sandbox goes through here; nothing outlives `kill`."""

    def __init__(self, template: Template, launched: Launched, outside: Outside | None = None) -> None:
        self.id = "sb" + secrets.token_hex(9)
        self.token = secrets.token_urlsafe(24)
        self.begin(Request(template.name, 0))
        self.state = State.RUNNING
        self.processes: dict[int, Process] = {}
        self.finished: dict[int, Process] = {}
        self.gone = asyncio.Event()
        self.gate = Gate(self.id, outside or Outside())
        self.sampled: tuple[float, float] | None = None
        self._opening = asyncio.Lock()
        self.template = template
        self._launched = launched
        self._keyed: dict[int, Process] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._channel = Channel(launched.control, on_exit=self._exited, on_gone=self._lost)

    def begin(self, request: Request) -> None:
        """From now on it serves this request."""
        self.request = request
        self.started_at = time.time()
        self.ends_at = self.started_at + request.timeout_seconds

    async def started(self) -> None:
        """Wait for the agent's first word. Raises IsolationUnavailable with the launcher's own complaint."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._channel.ready
        except (TimeoutError, SandboxGone):
            complaint = await asyncio.to_thread(self._launched.complaint)
            await self.kill()
            raise IsolationUnavailable(
                f"A sandbox did not start ({complaint or 'no answer from its agent'})."
            ) from None
        if self._launched.process.stderr is not None:
            self._launched.process.stderr.close()

    @property
    def host_pid(self) -> int:
        """The launcher, as this machine knows it."""
        return self._launched.process.pid

    @property
    def group(self) -> Group:
        """Its control groups."""
        return self._launched.group

    async def ask(self, op: str, **arguments: object) -> Reply:
        """One question to the agent that hands out no descriptor."""
        reply = await self._channel.call(op, arguments)
        for fd in reply.fds:
            os.close(fd)
        return reply

    async def call(self, op: str, *, fds: tuple[int, ...] = (), **arguments: object) -> Reply:
        """One question whose answer may bring descriptors, which then belong to the caller."""
        return await self._channel.call(op, arguments, fds=fds)

    async def open(self, path: str, mode: str) -> tuple[int, str]:
        """A descriptor of a regular file opened inside, and the path as the sandbox resolved it."""
        reply = await self._channel.call("open", {"path": path, "mode": mode})
        if len(reply.fds) != 1 or not _is_plain(reply.fds[0], mode):
            for fd in reply.fds:
                os.close(fd)
            raise AgentRefused("ValueError", f"path '{path}' is not a regular file")
        os.set_blocking(reply.fds[0], True)
        return reply.fds[0], reply.text("path")

    async def spawn(self, command: Command) -> tuple[Process, Subscriber]:
        """Start a command; the subscriber gets all of its output, from the first byte."""
        if command.terminal is not None:
            return await self._spawn_on_terminal(command, command.terminal)
        (stdout, out), (stderr, err) = os.pipe(), os.pipe()
        stdin, feed = os.pipe() if command.stdin else (None, None)
        theirs = (out, err, *(() if stdin is None else (stdin,)))
        process = Process(command, {Kind.STDOUT: stdout, Kind.STDERR: stderr}, stdin=feed)
        subscriber = process.subscribe()
        try:
            reply = await self._begin(process, "spawn", theirs)
        finally:
            for fd in theirs:
                os.close(fd)
        self._begun(process, reply)
        return process, subscriber

    async def _spawn_on_terminal(self, command: Command, size: TerminalSize) -> tuple[Process, Subscriber]:
        process = Process(command, {})
        subscriber = process.subscribe()
        reply = await self._begin(process, "terminal", ())
        first, *others = reply.fds or [-1]
        for fd in others:
            os.close(fd)
        process.on_terminal(first, size)
        self._begun(process, reply)
        return process, subscriber

    async def _begin(self, process: Process, op: str, fds: tuple[int, ...]) -> Reply:
        key, command = id(process), process.command
        self._keyed[key] = process
        env = environment_of(self.template, self.gate.environment(), self.request.env, command.env)
        start = {"key": key, "argv": [command.program, *command.args], "cwd": command.cwd, "env": env}
        try:
            return await self._channel.call(op, start, fds=fds)
        except (AgentRefused, SandboxGone, asyncio.CancelledError):
            self._keyed.pop(key, None)
            process.never_started()
            raise

    def _begun(self, process: Process, reply: Reply) -> None:
        process.started(reply.number("pid"))
        self.processes[process.pid] = process
        if process.exit_code is not None:
            self._over(process)

    async def allow(self, destinations: frozenset[Destination]) -> None:
        """From now on these hosts can be reached, and no others. A sandbox that was never allowed any has no way out at all."""
        async with self._opening:
            if destinations and not self.gate.is_open:
                reply = await self._channel.call("listen", {})
                first, *others = reply.fds or [-1]
                for fd in others:
                    os.close(fd)
                await self.gate.open(first)
            self.gate.allow(destinations)

    async def signal(self, process: Process, number: int) -> None:
        """Raises AgentRefused when the process is over already."""
        await self.ask("signal", pid=process.pid, signal=int(number))

    def expire(self, process: Process, seconds: float, *, grace: float = _OBEY_SECONDS) -> None:
        """Kill the command when its time is up, whether or not anybody still listens; after the grace, the sandbox."""
        process.kill_at(asyncio.get_running_loop().call_later(seconds, self._expired, process, grace))

    async def pause(self) -> None:
        self.state = State.PAUSED
        await self.ask("signal_all", signal=int(signal.SIGSTOP))

    async def resume(self) -> None:
        await self.ask("signal_all", signal=int(signal.SIGCONT))
        self.state = State.RUNNING

    async def kill(self) -> None:
        """End it and everything inside; returns when the kernel has, however often it is called."""
        if self._ending is None:
            self.state = State.GONE
            self.gate.close()
            self._launched.process.kill()
            self._channel.close()
            self._ending = asyncio.create_task(asyncio.to_thread(self._launched.end))
        await asyncio.shield(self._ending)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Background work that belongs to this sandbox."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _exited(self, key: int, code: int) -> None:
        """The agent's word that a command is over, perhaps before `spawn` has seen that it began."""
        process = self._keyed.pop(key, None)
        if process is not None:
            process.exit_code = code
            process.exited.set()
            if process.pid:
                self._over(process)

    def _over(self, process: Process) -> None:
        self.processes.pop(process.pid, None)
        self.finished[process.pid] = process
        asyncio.get_running_loop().call_later(_MEMORY_SECONDS, self.finished.pop, process.pid, None)
        self.run(process.finish())

    def _expired(self, process: Process, grace: float) -> None:
        # Marked before the kill: the exit that the kill causes must not look like the command's own.
        process.timed_out = True
        self.run(self._kill_process(process, grace))

    async def _kill_process(self, process: Process, grace: float) -> None:
        """A deadline holds even when what runs inside has slowed the agent down, or made it its own: then the sandbox ends."""
        try:
            async with asyncio.timeout(grace):
                with suppress(AgentRefused):
                    await self.signal(process, signal.SIGKILL)
                await process.exited.wait()
        except SandboxGone:
            return
        except TimeoutError:
            await self.kill()

    def _lost(self) -> None:
        self.state = State.GONE
        for process in self.processes.values():
            self.run(process.lose())
        self.processes.clear()
        self.gone.set()


def _is_plain(fd: int, mode: str) -> bool:
    """A regular file; for writing also one that takes room: /proc has none, and there our rights would count."""
    return stat.S_ISREG(os.fstat(fd).st_mode) and (mode == "r" or os.fstatvfs(fd).f_blocks > 0)
