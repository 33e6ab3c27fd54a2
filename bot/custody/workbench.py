"""A sandbox that holds a given tree, made again from that tree whenever it is lost (design §10)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from bot.custody.export import populate, settle
from bot.custody.faults import LineFault
from bot.custody.importer import capture
from bot.custody.mirror import Mirror
from bot.custody.reuse import SetUp, prefix, snapshot_name
from bot.domain.change import Change
from bot.domain.egress import Attempt, Attempts, counted
from bot.domain.errors import Transient, UserError
from bot.domain.ids import CommitId, TreeId
from bot.providers.sandbox.port import Sandbox, Sandboxes, SandboxLost

T = TypeVar("T")
_REBUILDS = 2
SETTING_UP = "set-up"

_NO_NETWORK = re.compile(
    r"resolve host|name resolution|Name or service not known|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|[Nn]etwork is unreachable"
)


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How the sandboxes of one task are made. `setup` commands run after the files are in; labels find orphans again.

    The set-up may reach the hosts of both lists; before anything else runs, those of `setup_egress` are shut. What it leaves on
    the base is kept for others on the same `setup_files` (docs/decisions/0004); `owner` is who it is kept for.
    """

    template: str
    labels: Mapping[str, str]
    lifetime_seconds: int = 3600
    setup: tuple[str, ...] = ()
    setup_timeout_seconds: int = 600
    setup_files: tuple[str, ...] = ()
    owner: str = ""
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
        self._coming: asyncio.Task[Sandbox] | None = None
        self._tree: TreeId | None = None
        self._attempts: tuple[Attempt, ...] = ()
        self._seen = 0

    async def act(self, tree: TreeId, work: Callable[[Sandbox], Awaitable[T]]) -> T:
        """Run `work` in a sandbox that holds `tree`. A sandbox that is lost meanwhile is rebuilt and `work` runs again."""
        for _ in range(_REBUILDS):
            try:
                return await work(await self._ready(tree))
            except SandboxLost:
                await self.close()
        return await work(await self._ready(tree))

    def begin(self, tree: TreeId) -> None:
        """Begin to make the sandbox that an act on `tree` will want, and return at once. The act meets what goes wrong with it."""
        if self._coming is None and (self._sandbox is None or self._tree != tree):
            self._coming = asyncio.get_running_loop().create_task(self._at(tree))

    async def capture(self) -> Change:
        """The tree as it stands in the sandbox now, taken over the line; later acts on it keep this sandbox."""
        if self._sandbox is None:
            raise SandboxLost("there is no sandbox to take a tree from")
        change = await capture(self._mirror, self._sandbox, self._base)
        self._tree = change.tree
        return change

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[Sandbox]:
        """A second sandbox, in which nothing of the repository has run or will: no files of it, no set-up, no way out."""
        sandbox = await self._create(self._settings.template, ())
        try:
            yield sandbox
        finally:
            await sandbox.kill()

    def disturbed(self) -> None:
        """Say that the sandbox may no longer hold its tree, so that the next act starts from a fresh one."""
        self._tree = None

    async def attempts(self, phase: str) -> Attempts:
        """What was asked for since this was asked last: by set-up commands, and by all else in this `phase`."""
        await self._leave_off()
        await self._note("")
        found, self._attempts = self._attempts, ()
        return Attempts(tuple(replace(each, phase=each.phase or phase) for each in found))

    async def _note(self, phase: str) -> None:
        if self._sandbox is None or not (self._settings.egress or self._settings.setup_egress):
            return
        all_of_it = await self._sandbox.attempts()
        new = tuple(replace(each, phase=phase) for each in all_of_it[self._seen :])
        self._attempts, self._seen = counted(self._attempts, new), len(all_of_it)

    async def close(self) -> None:
        """End the sandbox; the next act makes another."""
        await self._leave_off()
        await self._end()

    async def _leave_off(self) -> None:
        """What was begun and no act has taken up is not wanted any more, nor what went wrong with it."""
        coming, self._coming = self._coming, None
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _ready(self, tree: TreeId) -> Sandbox:
        coming, self._coming = self._coming, None
        if coming is not None:
            await coming
        return await self._at(tree)

    async def _end(self) -> None:
        await self._note("")
        sandbox, self._sandbox, self._tree, self._seen = self._sandbox, None, None, 0
        if sandbox is not None:
            await sandbox.kill()

    async def _at(self, tree: TreeId) -> Sandbox:
        if self._sandbox is not None and self._tree == tree:
            return self._sandbox
        await self._end()
        await self._sandboxes.reap(self._settings.labels)
        name = snapshot_name(self._set_up(), await self._mirror.entries(tree), time.time())
        sandbox = await self._from_kept(name, tree) if name else None
        if sandbox is None:
            sandbox = await self._from_nothing(tree)
            if name and tree == await self._mirror.tree_of(self._base):
                await self._keep(sandbox, name)
        self._tree = tree
        return sandbox

    async def _from_kept(self, name: str, tree: TreeId) -> Sandbox | None:
        """A sandbox that begins where the set-up of an earlier one ended; None when there is none that fits."""
        template = await self._sandboxes.snapshot_of(name)
        if template is None:
            return None
        try:
            sandbox = await self._own(template, self._settings.egress)
            await settle(self._mirror, sandbox, tree)
        except (UserError, LineFault):  # it has gone meanwhile, or is damaged: what it saves is only time
            await self._end()
            return None
        return sandbox

    async def _from_nothing(self, tree: TreeId) -> Sandbox:
        settings = self._settings
        more = settings.setup_egress if settings.setup else ()
        sandbox = await self._own(settings.template, (*settings.egress, *more))
        await populate(self._mirror, sandbox, tree)
        for command in settings.setup:
            result = await sandbox.run(command, timeout_seconds=settings.setup_timeout_seconds)
            if result.exit_code != 0:
                said = (result.stderr or result.stdout).strip()[-1500:]
                missing = lacking(
                    await sandbox.attempts(), said, "PULLWRIGHT_SETUP_EGRESS", listed=(*settings.egress, *more)
                )
                raise UserError(f"The setup command `{command}` ended with {result.exit_code}.{missing}", said)
        await self._note(SETTING_UP)
        if more:
            await sandbox.allow(settings.egress)
        if settings.setup:
            await self._put_back(sandbox, tree)
        return sandbox

    async def _put_back(self, sandbox: Sandbox, tree: TreeId) -> None:
        try:
            await settle(self._mirror, sandbox, tree)
        except LineFault as fault:
            hint = "They may build and install, but something they started or locked keeps the repository's own files from being restored."
            raise UserError(
                f"After the setup commands the files are not the commit's any more ({fault}).", hint
            ) from fault

    async def _keep(self, sandbox: Sandbox, name: str) -> None:
        """Only of the base, before anything but its own set-up has run: no change, test or model can have touched it."""
        try:
            if await sandbox.snapshot(name):
                await self._sandboxes.forget(prefix(self._set_up()), but=name)
        except Transient as failed:
            if isinstance(failed, SandboxLost):
                raise

    async def _own(self, template: str, egress: Sequence[str]) -> Sandbox:
        """The bench's own. Once asked for it is waited for, wanted or not: nobody could end one whose name has not come."""
        making = asyncio.ensure_future(self._create(template, egress))
        try:
            self._sandbox = await asyncio.shield(making)
        except asyncio.CancelledError:
            await asyncio.wait({making})
            if not making.cancelled() and making.exception() is None:
                self._sandbox = making.result()
            raise
        return self._sandbox

    async def _create(self, template: str, egress: Sequence[str]) -> Sandbox:
        settings = self._settings
        return await self._sandboxes.create(
            template=template,
            labels=settings.labels,
            lifetime_seconds=settings.lifetime_seconds,
            egress=egress,
        )

    def _set_up(self) -> SetUp:
        settings = self._settings
        return SetUp(self._mirror.repository, settings.owner, settings.template, settings.setup, settings.setup_files)


def lacking(attempts: Sequence[Attempt], said: str, setting: str, *, listed: Sequence[str]) -> str:
    """What the operator may have to add to `setting`, from what was refused or what a command said; empty if it is not that."""
    wanted = dict.fromkeys(attempt.target for attempt in attempts if attempt.unlisted)
    if wanted:
        return f" It asked for {', '.join([*wanted][:5])}, not open to it; the operator can add it to `{setting}`."
    if not listed and _NO_NETWORK.search(said):
        return f" Sandboxes reach no host; the operator can name those that it needs in `{setting}`."
    return ""
