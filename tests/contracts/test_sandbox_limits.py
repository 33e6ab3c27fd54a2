"""What a sandbox may use up, and that nothing of a command outlives its deadline."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from e2b import CommandExitException, SandboxNotRunningException, TimeoutException

from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, running
from tests.contracts.sandbox_server import KEY, descendants, eventually, fixtures, negated, output, sandbox_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()

DAEMON = """python3 -c "
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork(): sys.exit()
os.setsid()
if os.fork(): sys.exit()
os.closerange(0, 3)
os.execve('/bin/sleep', ['sleep', '777'], {})
"; """
FORKING = "python3 -c '\nimport os\nwhile True:\n  try: os.fork()\n  except OSError: pass'"


async def test_a_daemon_of_its_own_session_without_parent_or_environment_dies_at_the_deadline(sandbox):
    await sandbox.commands.run(DAEMON)
    assert await output(sandbox, "pgrep -fc '[s]leep 777'") == "1\n", "the control: without a deadline it lives"
    await sandbox.commands.run("pkill -KILL -f '[s]leep 777'")
    with pytest.raises(TimeoutException):
        await sandbox.commands.run(DAEMON + "sleep 60", timeout=1)
    await eventually(lambda: negated(output(sandbox, "pgrep -f '[s]leep 777' || true")))


async def test_the_deadline_of_one_command_spares_what_others_started(sandbox):
    await sandbox.commands.run("setsid sleep 555 >/dev/null 2>&1 & sleep 0.1")
    other = await sandbox.commands.run("(setsid sleep 666 &); sleep 600", background=True, timeout=0)
    with pytest.raises(TimeoutException):
        await sandbox.commands.run(DAEMON + "sleep 60", timeout=1)
    assert await output(sandbox, "pgrep -fc '[s]leep [56][56][56]'") == "2\n"
    await other.kill()


async def test_a_stopped_process_dies_at_the_deadline_too(sandbox):
    with pytest.raises(TimeoutException):
        await sandbox.commands.run("sleep 888 & kill -STOP $!; sleep 60", timeout=1)
    await eventually(lambda: negated(output(sandbox, "pgrep -f '[s]leep 888' || true")))


async def test_a_fork_bomb_ends_at_its_deadline_and_the_sandbox_serves_on(sandbox):
    with pytest.raises(TimeoutException):
        await sandbox.commands.run(FORKING, timeout=1)
    assert await output(sandbox, "echo here") == "here\n"


async def test_a_fork_bomb_that_has_filled_the_sandbox_gives_way_to_the_next_command(sandbox):
    await sandbox.commands.run(":(){ :|:& };:")
    await asyncio.sleep(3)
    assert await output(sandbox, "echo here; true | true") == "here\n"


async def test_processes_memory_and_processor_time_are_bounded_by_groups(tmp_path):
    """As root here; an ordinary user without a delegated group is told the shortfall instead, see the unit tests."""
    limits = Limits(processes=40, memory_bytes=256 << 20, cpus=0.5)
    async with running(Config(tmp_path, KEY, limits=limits)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        with pytest.raises(CommandExitException):
            await sandbox.commands.run(
                "sh -c 'for i in $(seq 60); do sleep 5 & done'", timeout=30
            )  # bash would try for 15 s
        if os.geteuid() != 0:
            assert "not enforced" in endpoint.shortfall
            return
        assert endpoint.shortfall == ""
        with pytest.raises(CommandExitException) as caught:
            await sandbox.commands.run("head -c 1G /dev/zero | tail >/dev/null", timeout=60)
        assert caught.value.exit_code == 137
        spin = "timeout 2 sh -c 'while :; do :; done'; times"
        used = (await sandbox.commands.run(spin, timeout=30)).stdout.splitlines()[-1].split()[0]
        assert float(used.partition("m")[2].rstrip("s")) < 1.6


EMPTY_FILES = """python3 -c "
import os
for folder in range(400):
    os.mkdir(f'/tmp/{folder}')
    for number in range(1000): os.close(os.open(f'/tmp/{folder}/{number}', os.O_CREAT))
" """


async def test_files_without_content_are_bounded_too(tmp_path):
    """bubblewrap cannot limit the number of inodes of a tmpfs, but the group counts the memory they take: the sandbox may die of it."""
    if os.geteuid() != 0:
        return
    limits = Limits(memory_bytes=48 << 20)
    async with running(Config(tmp_path, KEY, limits=limits)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        with pytest.raises((CommandExitException, SandboxNotRunningException)):
            await sandbox.commands.run(EMPTY_FILES, timeout=60)
        async with sandbox_of(endpoint, "base") as other:
            assert await output(other, "echo alive") == "alive\n"


async def test_a_groups_directories_go_with_their_sandbox(endpoint):
    if os.geteuid() != 0:
        return
    async with sandbox_of(endpoint, "base") as sandbox:
        await sandbox.commands.run("sleep 4321", background=True, timeout=0)
        inside: list[int] = []

        async def found() -> bool:
            inside[:] = [pid for pid in descendants(os.getpid()) if _arguments(pid) == b"sleep\x004321\x00"]
            return bool(inside)

        await eventually(found)
        name = _group_of(inside[0])
        assert name in _groups_here()
    assert name not in _groups_here()


def _arguments(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _group_of(pid: int) -> str:
    rows = (row.split(":", 2) for row in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
    return next(path for _, controllers, path in rows if "pids" in controllers.split(",")).rpartition("/")[2]


def _groups_here() -> list[str]:
    return [path.name for path in Path("/sys/fs/cgroup/pids").glob(f"pullwright-{os.getpid()}-*")]


async def test_shared_memory_and_temporary_files_have_a_bound(tmp_path):
    limits = Limits(tmp_bytes=4 << 20, shared_memory_bytes=4 << 20)
    async with running(Config(tmp_path, KEY, limits=limits)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        for place in ("/tmp", "/dev/shm"):
            with pytest.raises(CommandExitException, match="No space left"):
                await sandbox.commands.run(f"head -c 8000000 /dev/zero > {place}/big")
        assert descendants(os.getpid())
