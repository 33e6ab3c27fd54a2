"""The unmodified e2b SDK against the local server: commands. Nothing here skips: without bubblewrap it fails."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time

import pytest
from e2b import (
    CommandExitException,
    InvalidArgumentException,
    SandboxNotRunningException,
    TimeoutException,
)

from tests.contracts.sandbox_server import (
    eventually,
    fixtures,
    negated,
    output,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()


async def test_a_hundred_fast_commands_all_end(sandbox):
    results = await asyncio.gather(*(sandbox.commands.run(f"echo {number}", timeout=30) for number in range(100)))
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(100)]


async def test_a_finished_command_still_tells_its_exit_code(sandbox):
    handle = await sandbox.commands.run("exit 7", background=True)
    with pytest.raises(CommandExitException):
        await handle.wait()
    again = await sandbox.commands.connect(handle.pid)
    with pytest.raises(CommandExitException) as caught:
        await again.wait()
    assert caught.value.exit_code == 7


async def test_standard_input_larger_than_a_pipe_is_fed_in_order(sandbox):
    handle = await sandbox.commands.run("sleep 0.3; sha256sum", background=True, stdin=True)
    data = os.urandom(1 << 20)
    await handle.send_stdin(data)
    await handle.close_stdin()
    assert (await handle.wait()).stdout.split()[0] == hashlib.sha256(data).hexdigest()


async def test_a_command_without_input_reads_end_of_file(sandbox):
    assert (await sandbox.commands.run("cat; echo end", timeout=10)).stdout == "end\n"


async def test_the_deadline_kills_the_command_and_is_a_timeout_not_an_exit(sandbox):
    for _ in range(5):
        with pytest.raises(TimeoutException) as caught:
            await sandbox.commands.run("trap '' TERM; echo begun; sleep 60", timeout=0.3)
        assert not isinstance(caught.value, SandboxNotRunningException)
    await eventually(lambda: negated(sandbox.commands.list()))


async def test_the_deadline_reaches_children_with_a_session_of_their_own(sandbox):
    with pytest.raises(TimeoutException):
        await sandbox.commands.run("setsid sleep 4321 & sleep 60", timeout=0.3)
    await eventually(lambda: negated(output(sandbox, "pgrep -f '[s]leep 4321' || true")))


async def test_the_deadline_holds_although_the_client_has_gone(sandbox):
    handle = await sandbox.commands.run("sleep 60", background=True, timeout=0.5)
    await handle.disconnect()
    await eventually(lambda: negated(sandbox.commands.list()))


async def test_a_client_that_stops_reading_holds_only_its_own_command_back(sandbox):
    hold = asyncio.Event()

    async def wait(_text: str) -> None:
        await hold.wait()

    slow = await sandbox.commands.run(
        "yes | head -c 40000000; touch /tmp/through", background=True, timeout=0, on_stdout=wait, retain_output=False
    )
    await asyncio.sleep(0.5)
    assert (await sandbox.commands.run("echo quick")).stdout == "quick\n"
    assert not await sandbox.files.exists("/tmp/through")
    await slow.disconnect()
    await eventually(lambda: sandbox.files.exists("/tmp/through"))


async def test_large_output_arrives_whole(sandbox):
    result = await sandbox.commands.run("head -c 20000000 /dev/zero | tr '\\0' x", timeout=60)
    assert len(result.stdout) == 20_000_000


async def test_a_survivor_that_holds_the_output_open_does_not_hold_the_result(sandbox):
    begun = time.monotonic()
    result = await sandbox.commands.run("sleep 30 & echo now", timeout=60)
    assert result.stdout == "now\n"
    assert time.monotonic() - begun < 20
    serving = await sandbox.commands.run(
        "(for i in $(seq 30); do echo noise || exit; sleep 0.05; done; echo ok > /tmp/survived) & true"
    )
    assert serving.exit_code == 0
    await eventually(lambda: sandbox.files.exists("/tmp/survived"))


async def test_a_command_line_beyond_the_kernels_limit_is_refused_with_a_reason(sandbox):
    with pytest.raises(InvalidArgumentException, match="too long"):
        await sandbox.commands.run("true " + "x" * 140_000)
    await sandbox.files.write("/tmp/long.sh", "true " + "x" * 140_000)
    assert (await sandbox.commands.run("bash /tmp/long.sh")).exit_code == 0


async def test_a_fork_bomb_stays_inside_its_limit(sandbox):
    with pytest.raises((CommandExitException, TimeoutException)):
        await sandbox.commands.run("bomb() { bomb | bomb & }; bomb; sleep 2; exit 1", timeout=4)
    await sandbox.kill()


async def test_a_command_that_kills_everything_does_not_take_the_sandbox_along(sandbox):
    with pytest.raises(CommandExitException):
        await sandbox.commands.run("kill -9 -1; kill -9 1; exit 5")
    assert (await sandbox.commands.run("echo still here")).stdout == "still here\n"


async def test_death_of_the_sandbox_under_a_command_is_not_an_exit(sandbox):
    handle = await sandbox.commands.run("sleep 60", background=True, timeout=0)
    waiting = asyncio.create_task(handle.wait())
    await asyncio.sleep(0.1)
    await sandbox.kill()
    with pytest.raises(SandboxNotRunningException):
        await waiting
