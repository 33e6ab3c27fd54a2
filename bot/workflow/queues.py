"""The queues by their names. Only a launched engine can register them, and launching it begins to recover workflows: these wait here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future

from dbos import Queue


class Queues:
    """Opened once; until then whoever asks for a queue waits for it."""

    def __init__(self) -> None:
        self._registered: Future[Mapping[str, Queue]] = Future()

    def open(self, registered: Mapping[str, Queue]) -> None:
        self._registered.set_result(registered)

    async def named(self, name: str) -> Queue:
        """The queue, as soon as there is one. Any event loop may ask."""
        return (await asyncio.shield(asyncio.wrap_future(self._registered)))[name]
