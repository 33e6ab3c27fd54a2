"""The queues by their names. Only a launched engine can register them, and launching it begins to recover workflows: these wait here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future

from dbos import DBOS, Queue

from bot.domain.errors import Transient
from bot.domain.figures import QueueFigures
from bot.providers.store.database import answering

_MOST = 1_000
_PATIENCE = 5.0
"""Seconds; the engine itself asks its database again and again until it answers."""


class Queues:
    """Opened once; until then whoever asks for a queue waits for it."""

    def __init__(self) -> None:
        self._registered: Future[Mapping[str, Queue]] = Future()

    def open(self, registered: Mapping[str, Queue]) -> None:
        self._registered.set_result(registered)

    async def named(self, name: str) -> Queue:
        """The queue, as soon as there is one. Any event loop may ask."""
        return (await self._opened())[name]

    async def figures(self, now: float) -> tuple[QueueFigures, ...]:
        """Each queue as it is now, counted up to a bound; `now` in seconds since 1970. Raises Transient when nobody answers soon."""
        try:
            async with asyncio.timeout(_PATIENCE):
                with answering("the engine's queues"):
                    return tuple([await _figures(name, now) for name in await self._opened()])
        except TimeoutError as error:
            raise Transient("the engine's queues cannot be read now") from error

    async def _opened(self) -> Mapping[str, Queue]:
        return await asyncio.shield(asyncio.wrap_future(self._registered))


async def _figures(name: str, now: float) -> QueueFigures:
    found = await DBOS.list_workflows_async(
        queue_name=name, status=["ENQUEUED", "PENDING"], limit=_MOST, load_input=False, load_output=False
    )
    waiting = [flow.created_at or 0 for flow in found if flow.status == "ENQUEUED"]
    oldest = max(0.0, now - min(waiting) / 1000) if waiting else 0.0
    return QueueFigures(name, len(waiting), len(found) - len(waiting), oldest)
