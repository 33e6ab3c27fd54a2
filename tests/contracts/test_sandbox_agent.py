"""The server's end of the agent's socket, against an agent that does not keep to the protocol."""

from __future__ import annotations

import asyncio
import json
import marshal
import os
import signal
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.sandboxd.channel import Channel
from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.launch import Launched
from bot.sandboxd.processes import Command, TerminalSize
from bot.sandboxd.sandbox import Sandbox
from bot.sandboxd.templates import base_template
from bot.sandboxd.uids import UidLease
from bot.sandboxd.watching import Watch


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
        {"id": 1, "ok": {"cpu": float("inf")}},
        {"id": 1, "ok": {"mtime": float("nan")}},
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


async def test_descriptors_that_no_message_counts_do_not_use_up_the_servers():
    with unchanged_descriptors():
        async with channel() as (line, agent):
            for _ in range(10):
                agent.say({"event": "ready"}, fds=(agent.sock.fileno(),) * 16)
            await asyncio.wait_for(agent.gone.wait(), 5)
            with pytest.raises(SandboxGone):
                await line.call("stat", {})


async def test_a_refusal_in_words_that_are_no_text_can_be_told_all_the_same():
    async with channel() as (line, agent):
        call = asyncio.create_task(line.call("remove", {"path": "x"}))
        asked = await agent.hear()
        agent.say({"id": asked["id"], "error": "OSError", "errno": 30, "message": "a\udcff" + "b" * 9000})
        with pytest.raises(AgentRefused) as caught:
            await call
        assert str(caught.value).encode().decode().startswith("a\ufffdbbb")
        assert len(str(caught.value)) <= 2000


@asynccontextmanager
async def sandbox_with_a_fake_agent() -> AsyncIterator[tuple[Sandbox, FakeAgent, Any]]:
    """A sandbox whose agent answers what the test says, and the process that would be its launcher."""
    ours, theirs = socket.socketpair()
    info, tell = os.pipe()
    os.close(tell)
    launcher = await asyncio.to_thread(subprocess.Popen, ["sleep", "600"])
    with theirs:
        sandbox = Sandbox(base_template(), Launched(launcher, ours, UidLease(os.getuid(), None), info))
        agent = FakeAgent(theirs)
        agent.say({"event": "ready"})
        await sandbox.started()
        try:
            yield sandbox, agent, launcher
        finally:
            await sandbox.kill()


async def answered(agent: FakeAgent, fields: dict[str, Any], *, fds: tuple[int, ...] = ()) -> None:
    asked = await agent.hear()
    agent.say({"id": asked["id"], "ok": fields, "fds": len(fds)}, fds=fds)


async def test_a_deadline_that_the_agent_does_not_keep_ends_the_sandbox():
    async with sandbox_with_a_fake_agent() as (sandbox, agent, launcher):
        begins = asyncio.create_task(answered(agent, {"pid": 7}))
        process, _ = await sandbox.spawn(Command("/bin/true", (), {}, None, stdin=False))
        await begins
        sandbox.expire(process, 0, grace=0.1)
        await answered(agent, {})  # it says that it has killed the command, whose end it never tells
        await asyncio.wait_for(sandbox.gone.wait(), 10)
        assert await asyncio.to_thread(launcher.wait) == -signal.SIGKILL


async def test_what_an_agent_hands_out_as_something_else_is_not_used():
    zero = os.open("/dev/zero", os.O_RDWR)
    try:
        async with sandbox_with_a_fake_agent() as (sandbox, agent, _):
            with unchanged_descriptors():
                begins = asyncio.create_task(answered(agent, {"pid": 7}, fds=(zero,)))
                size = TerminalSize(24, 80)
                _, subscriber = await sandbox.spawn(Command("/bin/true", (), {}, None, stdin=False, terminal=size))
                await begins
                assert await subscriber.get(0.2) is None, "an endless device is no terminal"
                watches = asyncio.create_task(answered(agent, {"watches": [[0, ""]]}, fds=(zero,)))
                with pytest.raises(AgentRefused, match="cannot be watched"):
                    await Watch.begin(sandbox, "/tmp", recursive=False)
                await watches
                opens = asyncio.create_task(answered(agent, {"path": "/tmp/x"}, fds=(zero,)))
                with pytest.raises(AgentRefused, match="not a regular file"):
                    await sandbox.open("/tmp/x", "r")
                await opens
    finally:
        os.close(zero)


async def test_the_end_of_the_agent_fails_every_open_call():
    async with channel() as (line, agent):
        calls = [asyncio.create_task(line.call("stat", {})) for _ in range(3)]
        await agent.hear()
        agent.sock.shutdown(socket.SHUT_RDWR)
        for call in calls:
            with pytest.raises(SandboxGone):
                await call
