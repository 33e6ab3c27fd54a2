"""All live sandboxes of one server: made, found, leased, ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from bot.sandboxd.egress.proxy import Outside
from bot.sandboxd.errors import (
    AgentRefused,
    IsolationUnavailable,
    NotKept,
    SandboxGone,
    TooManySandboxes,
    UnknownTemplateError,
)
from bot.sandboxd.launch import Launcher
from bot.sandboxd.limits import Limits
from bot.sandboxd.sandbox import Request, Sandbox, State
from bot.sandboxd.snapshots import Snapshot, Snapshots, fingerprint
from bot.sandboxd.spares import Spares
from bot.sandboxd.templates import Template

_IDEMPOTENT_KEYS = 1000


class Registry:
    """A sandbox is in here from its first answer to its end, whatever ended it."""

    def __init__(
        self,
        templates: Iterable[Template],
        limits: Limits,
        launcher: Launcher,
        snapshots: Snapshots,
        outside: Outside | None = None,
    ) -> None:
        self.snapshots = snapshots
        self._outside = outside
        self._templates = {template.name: template for template in templates}
        self._limits = limits
        self._launcher = launcher
        self._sandboxes: dict[str, Sandbox] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._made: dict[str, asyncio.Task[Sandbox]] = {}
        self._starting = 0
        self._spares = Spares(self._start)

    def find(self, sandbox_id: str) -> Sandbox | None:
        return self._sandboxes.get(sandbox_id)

    def running(self, sandbox_id: str) -> Sandbox | None:
        """The sandbox if it can serve: a paused one cannot."""
        sandbox = self._sandboxes.get(sandbox_id)
        return sandbox if sandbox is not None and sandbox.state is State.RUNNING else None

    def all(self) -> list[Sandbox]:
        """Oldest first."""
        return sorted(self._sandboxes.values(), key=lambda sandbox: (sandbox.started_at, sandbox.id))

    async def create(self, request: Request, *, idempotency_key: str | None = None) -> Sandbox:
        """A new sandbox, or for a repeated key the one that was made for it."""
        if idempotency_key is None:
            return await self._create(request)
        task = self._made.get(idempotency_key)
        if task is None:
            task = self._made[idempotency_key] = asyncio.create_task(self._create(request))
            while len(self._made) > _IDEMPOTENT_KEYS:
                del self._made[next(iter(self._made))]
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and (task.cancelled() or task.exception() is not None):
                self._made.pop(idempotency_key, None)

    async def _create(self, request: Request) -> Sandbox:
        template, snapshot = self._find(request.template)
        if len(self._sandboxes) + self._starting >= self._limits.sandboxes:
            raise TooManySandboxes(f"this server runs at most {self._limits.sandboxes} sandboxes at once")
        self._starting += 1
        try:
            sandbox = await self._spares.take(template)
        finally:
            self._starting -= 1
        sandbox.begin(request)
        self._sandboxes[sandbox.id] = sandbox
        self.lease(sandbox, request.timeout_seconds)
        sandbox.run(self._forget_when_gone(sandbox))
        try:
            if snapshot is not None:
                await self.snapshots.restore(snapshot, sandbox)
            await sandbox.allow(request.egress)
        except (NotKept, SandboxGone) as lost:
            await self.kill(sandbox)
            raise UnknownTemplateError(str(lost)) from None
        except (AgentRefused, ValueError, OSError) as fault:
            await self.kill(sandbox)
            raise IsolationUnavailable(f"its way out could not be opened: {fault}") from None
        return sandbox

    def _find(self, wanted: str) -> tuple[Template, Snapshot | None]:
        """The template of that name; or the snapshot of that id or name, with the template it was made on."""
        template = self._templates.get(wanted)
        snapshot = self.snapshots.find(wanted) if template is None else None
        if snapshot is not None:
            template = self._templates.get(snapshot.template)
        if template is None or (snapshot is not None and snapshot.fingerprint != fingerprint(template)):
            raise UnknownTemplateError(f"template '{wanted}' not found; known: {', '.join(sorted(self._templates))}")
        return template, snapshot

    async def keep(self, sandbox: Sandbox, name: str) -> Snapshot:
        """A snapshot of a running sandbox. Raises NotKept."""
        if name in self._templates:
            raise NotKept(f"'{name}' is the name of a template")
        return await self.snapshots.keep(sandbox, sandbox.template, name)

    async def _start(self, template: Template) -> Sandbox:
        sandbox = Sandbox(template, self._launcher.launch(template), self._outside)
        await sandbox.started()
        return sandbox

    def lease(self, sandbox: Sandbox, seconds: int) -> None:
        """Set the end to `seconds` from now, longer or shorter than it was."""
        self._stop_timer(sandbox)
        seconds = min(seconds, self._limits.lifetime_seconds)
        sandbox.ends_at = time.time() + seconds
        self._timers[sandbox.id] = asyncio.get_running_loop().call_later(seconds, self._expired, sandbox)

    def lengthen(self, sandbox: Sandbox, seconds: int) -> None:
        """As `lease`, unless the end is later already."""
        if time.time() + seconds > sandbox.ends_at:
            self.lease(sandbox, seconds)

    async def pause(self, sandbox: Sandbox) -> None:
        """A paused sandbox keeps until it is killed."""
        self._stop_timer(sandbox)
        await sandbox.pause()

    async def resume(self, sandbox: Sandbox, seconds: int) -> None:
        await sandbox.resume()
        self.lease(sandbox, seconds)

    async def kill(self, sandbox: Sandbox) -> None:
        self._sandboxes.pop(sandbox.id, None)
        self._stop_timer(sandbox)
        await sandbox.kill()

    async def end_all(self) -> None:
        await asyncio.gather(self._spares.close(), *(self.kill(sandbox) for sandbox in self.all()))

    async def close(self) -> None:
        """End every sandbox, then let go what the launcher holds."""
        await self.end_all()
        self._launcher.close()

    def _stop_timer(self, sandbox: Sandbox) -> None:
        timer = self._timers.pop(sandbox.id, None)
        if timer is not None:
            timer.cancel()

    def _expired(self, sandbox: Sandbox) -> None:
        sandbox.run(self._expire(sandbox))

    async def _expire(self, sandbox: Sandbox) -> None:
        if sandbox.request.pause_at_expiry:
            try:
                await self.pause(sandbox)
            except SandboxGone:
                return
        else:
            await self.kill(sandbox)

    async def _forget_when_gone(self, sandbox: Sandbox) -> None:
        await sandbox.gone.wait()
        await self.kill(sandbox)
