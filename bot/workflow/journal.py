"""The journal on DBOS: one durable step per act, patience with what is transient, and endings that replay as they happened."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from dbos import DBOS

from bot.custody.faults import LineFault, UpstreamFault
from bot.domain.errors import CustodyError, Transient, UserError
from bot.domain.task import Ending, Stage
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.providers.llm.port import ModelRejected
from bot.workflow import texts
from bot.workflow.values import Values

T = TypeVar("T")

ATTEMPTS = 6
LONGEST_WAIT = 60.0
ENDED = "pullwright:ended"
"""The key under which a step or a segment that ended its task holds the ending instead of a value."""

log = structlog.get_logger()


class TaskEnded(Exception):  # noqa: N818 - an end, not a fault
    """The task is over; `ending` says how. Raised by a step the same way on every replay."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        super().__init__(ending.reason)


async def _unguarded() -> None:
    return None


class DbosJournal:
    """Steps of one workflow run. `guard` runs before each act and may raise TaskEnded (the task was stopped meanwhile)."""

    def __init__(self, values: Values, guard: Callable[[], Awaitable[None]] = _unguarded) -> None:
        self._values = values
        self._guard = guard

    async def step(self, name: str, act: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        """See the port. Raises TaskEnded where the act met an end a person has to know about."""

        async def recorded() -> Any:
            try:
                await self._guard()
                began = time.monotonic()
                value = await patiently(name, act)
                log.info("step", step=name, seconds=round(time.monotonic() - began, 3))
                return self._values.pack(kind, value)
            except TaskEnded as end:
                return {ENDED: self._values.pack(Ending, end.ending)}
            except (UserError, CustodyError, ForgeGone, ForgeRefused, Transient, ModelRejected) as fault:
                log.warning("step ended the task", step=name, fault=type(fault).__name__, reason=str(fault)[:500])
                return {ENDED: self._values.pack(Ending, ending_of(fault))}

        packed = await DBOS.run_step_async({"name": name}, recorded)
        if isinstance(packed, dict) and ENDED in packed:
            raise TaskEnded(self._values.unpack(Ending, packed[ENDED]))
        return self._values.unpack(kind, packed)


async def patiently(name: str, act: Callable[[], Awaitable[T]]) -> T:
    """Run the act; what is transient is tried again after its own wish, or a growing pause, at most a minute each time."""
    for attempt in range(1, ATTEMPTS):
        try:
            return await act()
        except Transient as pause:
            wish = pause.retry_after if pause.retry_after is not None else 2.0 ** (attempt - 1)
            seconds = min(wish, LONGEST_WAIT) * random.uniform(0.8, 1.2)  # noqa: S311 - spreading retries, no secret
            log.info("waiting for the outside", step=name, seconds=round(seconds, 2), reason=str(pause)[:200])
            await asyncio.sleep(seconds)
    return await act()


def ending_of(fault: Exception) -> Ending:
    """How a task ends on an error by what the reader can do about it (design D14)."""
    match fault:
        case UserError():
            return Ending(Stage.NEEDS_HUMAN, fault.message, fault.hint)
        case UpstreamFault():
            return texts.upstream(fault.rule, fault.meaning)
        case LineFault():
            return texts.custody(fault.rule, fault.meaning)
        case CustodyError():
            return texts.custody("proof", str(fault))
        case ForgeGone():
            return texts.gone(str(fault))
        case ForgeRefused():
            return texts.github_refused(fault.status, fault.message)
        case Transient():
            return texts.infrastructure(str(fault))
        case _:
            return texts.unexpected()
