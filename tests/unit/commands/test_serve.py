"""What goes on beside the door does not end because a service does not answer for a while."""

from __future__ import annotations

import asyncio

import pytest
import structlog

from bot.commands.serve import _every
from bot.domain.errors import Transient
from bot.providers.forge.port import ForgeGone


@pytest.mark.parametrize("fault", [Transient("the database does not answer"), ForgeGone("not found")])
async def test_what_cannot_be_done_now_is_tried_at_the_next_turn(fault: Exception):
    done, tried = asyncio.Event(), 0

    async def act() -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise fault
        done.set()

    work = asyncio.create_task(_every(0.0, act, "cannot be done now"))
    await asyncio.wait_for(done.wait(), 10)
    work.cancel()
    assert tried >= 2


async def test_a_bug_is_told_in_full_and_the_next_turn_comes():
    done, tried = asyncio.Event(), 0

    async def act() -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise LookupError("a bug")
        done.set()

    with structlog.testing.capture_logs() as told:
        work = asyncio.create_task(_every(0.0, act, "cannot be done now"))
        await asyncio.wait_for(done.wait(), 10)
        work.cancel()
    assert told[0]["log_level"] == "error"
    assert isinstance(told[0]["exc_info"], LookupError)


async def test_what_is_under_way_ends_with_the_chore():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def act() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    work = asyncio.create_task(_every(0.0, act, "cannot be done now"))
    await asyncio.wait_for(begun.wait(), 10)
    work.cancel()
    await asyncio.wait_for(ended.wait(), 10)
