"""One sandbox of each template in use is started ahead, so that a create call finds it waiting.

A spare is like any fresh sandbox: nothing has run in it and nobody has its token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.sandbox import Sandbox
from bot.sandboxd.templates import Template

_TEMPLATES = 2
"""The most recently used; a spare costs some 13 MB of memory."""


class Spares:
    """`start` makes a sandbox that has answered. What is taken belongs to the taker, the rest ends with `close`."""

    def __init__(self, start: Callable[[Template], Awaitable[Sandbox]]) -> None:
        self._start = start
        self._ahead: dict[str, asyncio.Task[Sandbox]] = {}
        self._dropped: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self, template: Template) -> Sandbox:
        """A sandbox that nobody has used. Raises what starting one raises."""
        sandbox = await self._spare(template) or await self._start(template)
        if template.name not in self._ahead and not self._closed:
            self._ahead[template.name] = asyncio.create_task(self._started(template))
            while len(self._ahead) > _TEMPLATES:
                self._drop(self._ahead.pop(next(iter(self._ahead))))
        return sandbox

    async def close(self) -> None:
        """End every spare, also those that are only starting."""
        self._closed = True
        for name in tuple(self._ahead):
            self._drop(self._ahead.pop(name))
        await asyncio.gather(*self._dropped)

    async def _started(self, template: Template) -> Sandbox:
        return await self._start(template)

    async def _spare(self, template: Template) -> Sandbox | None:
        """The spare, if there is one and it is alive; whatever kept it from starting is met again by the caller."""
        ahead = self._ahead.pop(template.name, None)
        if ahead is None:
            return None
        try:
            sandbox = await asyncio.shield(ahead)
        except asyncio.CancelledError:
            self._drop(ahead)
            raise
        except (IsolationUnavailable, OSError):
            return None
        return sandbox if not sandbox.gone.is_set() else None

    def _drop(self, ahead: asyncio.Task[Sandbox]) -> None:
        task = asyncio.create_task(_ended(ahead))
        self._dropped.add(task)
        task.add_done_callback(self._dropped.discard)


async def _ended(ahead: asyncio.Task[Sandbox]) -> None:
    try:
        sandbox = await ahead
    except (IsolationUnavailable, OSError):
        return
    await sandbox.kill()
