"""The server's end of the agent's socket, against an agent that does not keep to the protocol."""

from __future__ import annotations

import asyncio
import json
import marshal
import os
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.sandboxd.channel import Channel
from bot.sandboxd.errors import AgentRefused, SandboxGone


class FakeAgent:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.exits: list[tuple[int, int]] = []
        self.gone = asyncio.Event()

    def say(self, *messages: Any, fds: tuple[int, ...] = ()) -> None:
        frames = b"".join(
            struct.pack("!I", len(body)) + body for body in (json.dumps(message).encode() for message in messages)
        )
        socket.send_fds(self.sock, [frames], list(fds))

    async def hear(self) -> dict[str, Any]:
        data = await asyncio.to_thread(self.sock.recv, 65536)
        message: dict[str, Any] = marshal.loads(data[4:])
        return message


@asynccontextmanager
async def channel() -> AsyncIterator[tuple[Channel, FakeAgent]]:
    ours, theirs = socket.socketpair()
    agent = FakeAgent(theirs)
    with theirs:
        line = Channel(ours, on_exit=lambda key, code: agent.exits.append((key, code)), on_gone=agent.gone.set)
        try:
            yield line, agent
        finally:
            line.close()


@contextmanager
def unchanged_descriptors() -> Iterator[None]:
    before = set(Path("/proc/self/fd").iterdir())
    yield
    assert set(Path("/proc/self/fd").iterdir()) == before


async def test_an_exit_told_in_one_breath_with_the_start_is_not_lost():
    async with channel() as (line, agent):
        call = asyncio.create_task(line.call("spawn", {"key": 5}))
        asked = await agent.hear()
        agent.say({"id": asked["id"], "ok": {"pid": 2}}, {"event": "exit", "key": 5, "code": 0})
        assert (await call).number("pid") == 2
        assert agent.exits == [(5, 0)]


async def test_a_refusal_carries_the_kind_of_error():
    async with channel() as (line, agent):
        call = asyncio.create_task(line.call("stat", {"path": "x"}))
        asked = await agent.hear()
        agent.say({"id": asked["id"], "error": "FileNotFoundError", "errno": 2, "message": "no x"})
        with pytest.raises(AgentRefused, match="no x") as caught:
            await call
        assert (caught.value.kind, caught.value.errno) == ("FileNotFoundError", 2)


@pytest.mark.parametrize(
    "message",
    [
        [],
        {"event": "exit", "key": "text", "code": 0},
        {"event": "unheard of", "key": 1, "code": 0},
        {"id": 1, "ok": {}, "fds": 3},
        {"id": 1, "ok": {}, "fds": -1},
        {"ok": {}},
    ],
)
async def test_a_message_that_breaks_the_protocol_ends_the_sandbox(message):
    async with channel() as (line, agent):
        call = asyncio.create_task(line.call("stat", {}))
        await agent.hear()
        agent.say(message)
        with pytest.raises(SandboxGone):
            await call
        assert agent.gone.is_set()
        with pytest.raises(SandboxGone):
            await line.call("stat", {})


@pytest.mark.parametrize(
    "frame", [struct.pack("!I", 1 << 30), struct.pack("!I", 3) + b"not", struct.pack("!I", 40_000) + b"[" * 40_000]
)
async def test_a_frame_that_cannot_be_read_ends_the_sandbox(frame):
    async with channel() as (line, agent):
        call = asyncio.create_task(line.call("stat", {}))
        await agent.hear()
        await asyncio.to_thread(agent.sock.sendall, frame)
        with pytest.raises(SandboxGone):
            await call


async def test_descriptors_that_nobody_asked_for_are_closed():
    with unchanged_descriptors():
        async with channel() as (line, agent):
            read, write = os.pipe()
            agent.say({"id": 99, "ok": {}, "fds": 1}, {"event": "ready"}, fds=(read, write))
            await asyncio.wait_for(line.ready, 5)
            os.close(read)
            os.close(write)


async def test_the_end_of_the_agent_fails_every_open_call():
    async with channel() as (line, agent):
        calls = [asyncio.create_task(line.call("stat", {})) for _ in range(3)]
        await agent.hear()
        agent.sock.shutdown(socket.SHUT_RDWR)
        for call in calls:
            with pytest.raises(SandboxGone):
                await call
