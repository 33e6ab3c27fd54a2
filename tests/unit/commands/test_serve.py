"""What goes on beside the door does not end because a service does not answer for a while."""

from __future__ import annotations

import asyncio

import pytest

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


async def test_a_bug_is_not_taken_for_weather():
    async def act() -> None:
        raise LookupError("a bug")

    with pytest.raises(LookupError):
        await asyncio.wait_for(_every(0.0, act, "cannot be done now"), 10)
