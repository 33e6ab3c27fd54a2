"""A sandbox that holds a given tree, made again from that tree whenever it is lost (design §10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bot.custody.export import populate
from bot.custody.importer import capture
from bot.custody.mirror import Mirror
from bot.domain.change import Change
from bot.domain.errors import UserError
from bot.domain.ids import CommitId, TreeId
from bot.providers.sandbox.port import Sandbox, Sandboxes, SandboxLost

T = TypeVar("T")
_REBUILDS = 2


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How the sandboxes of one task are made. `setup` commands run after the files are in; labels find orphans again.

    The set-up may reach the hosts of both lists; before anything else runs, those of `setup_egress` are shut.
    """

    template: str
    labels: Mapping[str, str]
    lifetime_seconds: int = 3600
    setup: tuple[str, ...] = ()
    setup_timeout_seconds: int = 600
    setup_egress: tuple[str, ...] = ()
    egress: tuple[str, ...] = ()


class Workbench:
    """At most one live sandbox. Everything done in it starts from a tree the worker holds, so losing it loses nothing."""

    def __init__(self, sandboxes: Sandboxes, mirror: Mirror, base: CommitId, settings: BenchSettings) -> None:
        self._sandboxes = sandboxes
        self._mirror = mirror
        self._base = base
        self._settings = settings
        self._sandbox: Sandbox | None = None
        self._tree: TreeId | None = None

    async def act(self, tree: TreeId, work: Callable[[Sandbox], Awaitable[T]]) -> T:
        """Run `work` in a sandbox that holds `tree`. A sandbox that is lost meanwhile is rebuilt and `work` runs again."""
        for _ in range(_REBUILDS):
            try:
                return await work(await self._at(tree))
            except SandboxLost:
                await self.close()
        return await work(await self._at(tree))

    async def capture(self) -> Change:
        """The tree as it stands in the sandbox now, taken over the line; later acts on it keep this sandbox."""
        if self._sandbox is None:
            raise SandboxLost("there is no sandbox to take a tree from")
        change = await capture(self._mirror, self._sandbox, self._base)
        self._tree = change.tree
        return change

    def disturbed(self) -> None:
        """Say that the sandbox may no longer hold its tree, so that the next act starts from a fresh one."""
        self._tree = None

    async def close(self) -> None:
        """End the sandbox; the next act makes another."""
        sandbox, self._sandbox, self._tree = self._sandbox, None, None
        if sandbox is not None:
            await sandbox.kill()

    async def _at(self, tree: TreeId) -> Sandbox:
        if self._sandbox is not None and self._tree == tree:
            return self._sandbox
        await self.close()
        settings = self._settings
        await self._sandboxes.reap(settings.labels)
        sandbox = await self._sandboxes.create(
            template=settings.template,
            labels=settings.labels,
            lifetime_seconds=settings.lifetime_seconds,
            egress=(*settings.egress, *(settings.setup_egress if settings.setup else ())),
        )
        self._sandbox = sandbox
        await populate(self._mirror, sandbox, tree)
        for command in settings.setup:
            result = await sandbox.run(command, timeout_seconds=settings.setup_timeout_seconds)
            if result.exit_code != 0:
                said = (result.stderr or result.stdout).strip()[-1500:]
                raise UserError(f"The setup command `{command}` ended with {result.exit_code}.", said)
        if settings.setup and settings.setup_egress:
            await sandbox.allow(settings.egress)
        self._tree = tree
        return sandbox
