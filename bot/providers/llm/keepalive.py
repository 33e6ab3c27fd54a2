"""Keeping a conversation's cache entries alive while a long command runs: one read per ping instead of a rewrite.

A ping re-sends the last request asking for no output. It pays for itself as long as pings cost less than writing the
context again, which at today's prices is for eleven of them; after that the entry may die.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from bot.providers.llm.port import LanguageModel, ModelBusy, ModelRejected, ModelRequest, ModelUnavailable, OverBudget

EVERY_SECONDS = 270.0
MOST_PINGS = 11


@asynccontextmanager
async def kept_warm(
    model: LanguageModel,
    request: ModelRequest,
    *,
    every: float = EVERY_SECONDS,
    most: int = MOST_PINGS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[None]:
    """Pings while the block runs; `request` is the last one answered. Any failure of a ping only ends the pinging."""
    task = asyncio.create_task(_ping(model, request, every, most, sleep))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _ping(
    model: LanguageModel, request: ModelRequest, every: float, most: int, sleep: Callable[[float], Awaitable[None]]
) -> None:
    for number in range(1, most + 1):
        await sleep(every)
        ping = replace(request, key=f"{request.key}:alive:{number}", max_tokens=0)
        try:
            await _finished(asyncio.create_task(_sent(model, ping)))
        except (ModelBusy, ModelRejected, ModelUnavailable, OverBudget):
            return


async def _sent(model: LanguageModel, ping: ModelRequest) -> None:
    await model.send(ping)


async def _finished(sending: asyncio.Task[None]) -> None:
    """A ping on its way is waited for even when the block is over: an attempt nobody settles is charged in full."""
    try:
        await asyncio.shield(sending)
    except asyncio.CancelledError:
        await asyncio.wait({sending})
        sending.exception()
        raise
