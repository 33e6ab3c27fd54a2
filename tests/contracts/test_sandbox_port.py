"""The sandbox role, held by E2BSandboxes over the local server. Nothing here skips: without bubblewrap it fails."""

from __future__ import annotations

import asyncio
import io
import tarfile
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.domain.errors import Transient, UserError
from bot.providers.sandbox.e2b import E2BSandboxes
from bot.providers.sandbox.port import HOME, WORK, Sandbox, Sandboxes, SandboxLost
from bot.sandboxd.egress.proxy import Outside
from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, Endpoint, running
from tests.contracts.sandbox_server import KEY, eventually, fixtures

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, _ = fixtures()


def sandboxes_of(endpoint: Endpoint) -> E2BSandboxes:
    return E2BSandboxes(endpoint.api_key, endpoint.api_url, endpoint.sandbox_url)


@pytest_asyncio.fixture(loop_scope="module")
async def sandboxes(endpoint: Endpoint) -> AsyncIterator[Sandboxes]:
    yield sandboxes_of(endpoint)


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(sandboxes: Sandboxes) -> AsyncIterator[Sandbox]:
    sandbox = await sandboxes.create(template="pullwright", labels={"test": "port"}, lifetime_seconds=300)
    try:
        yield sandbox
    finally:
        await sandbox.kill()


async def test_a_command_ends_with_its_code_and_its_output(sandbox):
    result = await sandbox.run("echo $A; pwd; echo no >&2; exit 3", timeout_seconds=30, cwd=HOME, env={"A": "b"})
    assert (result.exit_code, result.stdout, result.stderr) == (3, "b\n/home/user\n", "no\n")
    assert not result.timed_out
    assert result.seconds < 30


async def test_an_archive_goes_in_and_is_unpacked_where_the_work_stands(sandbox):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("a/b.txt")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
    await sandbox.write("/tmp/tree.tar", buffer.getvalue())
    await sandbox.run(f"mkdir -p {WORK} && tar -xf /tmp/tree.tar -C {WORK}", timeout_seconds=30, cwd=HOME)
    assert (await sandbox.run("cat a/b.txt", timeout_seconds=30)).stdout == "hello"
    assert await sandbox.read(f"{WORK}/a/b.txt", limit=5) == b"hello"


async def test_a_file_above_the_limit_is_an_error_and_not_a_cut(sandbox):
    await sandbox.write("/tmp/six", b"123456")
    with pytest.raises(ValueError, match="larger than 5"):
        await sandbox.read("/tmp/six", limit=5)
    with pytest.raises(FileNotFoundError):
        await sandbox.read("/tmp/none", limit=5)
    with pytest.raises(ValueError, match="directory"):
        await sandbox.read("/tmp", limit=5)


async def test_what_stands_in_the_way_inside_is_a_value_or_a_sandbox_lost(sandbox):
    gone = await sandbox.run("true", timeout_seconds=30, cwd="/home/user/removed")
    assert (gone.exit_code, gone.timed_out) == (126, False)
    assert "'/home/user/removed' does not exist" in gone.stderr
    plant = "echo x > /tmp/shut; chmod 0 /tmp/shut; ln -s /etc /tmp/etc; ln -s r /tmp/r"
    await sandbox.run(plant, timeout_seconds=30, cwd=HOME)
    for path in ("/tmp/shut", "/tmp/r", "/tmp/" + "x" * 300):
        with pytest.raises(ValueError, match="not a file that can be read"):
            await sandbox.read(path, limit=5)
    for path in ("/tmp/etc/new", "/tmp/shut/x"):
        with pytest.raises(SandboxLost, match="cannot be used any more"):
            await sandbox.write(path, b"x")


async def test_the_deadline_is_a_value_with_the_output_so_far(sandbox):
    result = await sandbox.run("echo begun; sleep 60", timeout_seconds=2, cwd=HOME)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 124, "begun\n")
    assert 1.5 < result.seconds < 40


async def test_output_keeps_its_beginning_and_its_end(sandbox):
    result = await sandbox.run(
        "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last", timeout_seconds=60, cwd=HOME, output_bytes=1000
    )
    assert result.stdout.startswith("first\nxxx")
    assert result.stdout.endswith("xxx" + "last\n")
    assert "[2999011 bytes left out]" in result.stdout
    assert len(result.stdout) < 1100


async def test_a_command_longer_than_an_argument_may_be_runs_all_the_same(sandbox):
    before = await sandbox.run("ls -a /tmp", timeout_seconds=30, cwd=HOME)
    result = await sandbox.run("echo " + "x" * 200_000 + "; exit 4", timeout_seconds=30, cwd=HOME, output_bytes=1 << 20)
    assert (result.exit_code, len(result.stdout)) == (4, 200_001)
    assert (await sandbox.run("ls -a /tmp", timeout_seconds=30, cwd=HOME)).stdout == before.stdout


async def test_leaving_a_command_early_kills_it(sandbox):
    running = asyncio.create_task(sandbox.run("sleep 543 & sleep 543", timeout_seconds=600, cwd=HOME))

    async def sleeping() -> bool:
        return "543" in (await sandbox.run("pgrep -f '[s]leep 543'; ps -eo args", timeout_seconds=30, cwd=HOME)).stdout

    await eventually(sleeping)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    async def over() -> bool:
        return not (await sandbox.run("pgrep -f '[s]leep 543'", timeout_seconds=30, cwd=HOME)).stdout

    await eventually(over)


async def test_a_killed_sandbox_is_lost_for_every_method_and_may_be_killed_again(sandboxes):
    sandbox = await sandboxes.create(template="base", labels={"test": "lost"}, lifetime_seconds=60)
    waiting = asyncio.create_task(sandbox.run("sleep 60", timeout_seconds=60, cwd=HOME))
    await asyncio.sleep(0.2)
    await sandbox.kill()
    await sandbox.kill()
    with pytest.raises(SandboxLost):
        await waiting
    with pytest.raises(SandboxLost):
        await sandbox.run("true", timeout_seconds=5, cwd=HOME)
    with pytest.raises(SandboxLost):
        await sandbox.write("/tmp/x", b"")
    with pytest.raises(SandboxLost):
        await sandbox.read("/tmp/x", limit=1)


async def test_reaping_ends_those_with_all_the_labels_and_no_other(sandboxes):
    made = [
        await sandboxes.create(template="base", labels={"task": task, "kind": "reap"}, lifetime_seconds=60)
        for task in ("1", "1", "2")
    ]
    assert await sandboxes.reap({"task": "1", "kind": "reap"}) == 2
    assert await sandboxes.reap({"task": "1", "kind": "reap"}) == 0
    assert (await made[2].run("echo alive", timeout_seconds=30, cwd=HOME)).stdout == "alive\n"
    assert await sandboxes.reap({"kind": "reap"}) == 1
    with pytest.raises(ValueError, match="label"):
        await sandboxes.reap({})


async def test_the_sandboxes_of_tasks_are_counted(sandboxes, sandbox):
    assert await sandboxes.live() == 0
    made = await sandboxes.create(template="base", labels={"pullwright-task": "t"}, lifetime_seconds=60)
    assert await sandboxes.live() == 1
    await made.kill()
    assert await sandboxes.live() == 0


async def test_sandboxes_of_a_service_that_is_gone_are_not_counted():
    with pytest.raises(Transient):
        await E2BSandboxes("key", "http://127.0.0.1:1", "http://127.0.0.1:1").live()


async def test_what_the_operator_must_put_right_is_told_as_such(endpoint, sandboxes):
    with pytest.raises(UserError, match="no sandbox template 'nosuch'"):
        await sandboxes.create(template="nosuch", labels={}, lifetime_seconds=60)
    wrong = E2BSandboxes("wrong", endpoint.api_url, endpoint.sandbox_url)
    with pytest.raises(UserError, match="refused our key"):
        await wrong.create(template="base", labels={}, lifetime_seconds=60)
    assert "wrong" not in repr(wrong)


async def test_what_passes_by_itself_is_transient(tmp_path):
    async with running(Config(tmp_path, KEY, limits=Limits(sandboxes=1))) as endpoint:
        sandboxes = sandboxes_of(endpoint)
        kept = await sandboxes.create(template="base", labels={}, lifetime_seconds=60)
        with pytest.raises(Transient, match="busy") as caught:
            await sandboxes.create(template="base", labels={}, lifetime_seconds=60)
        assert caught.value.retry_after
    begun = time.monotonic()
    with pytest.raises(Transient):
        await sandboxes.create(template="base", labels={}, lifetime_seconds=60)
    with pytest.raises(Transient):
        await kept.run("true", timeout_seconds=5, cwd=HOME)
    assert time.monotonic() - begun < 60


async def test_a_disk_too_small_for_the_files_is_told_as_such(tmp_path):
    async with running(Config(tmp_path, KEY, limits=Limits(home_bytes=2 << 20))) as endpoint:
        sandbox = await sandboxes_of(endpoint).create(template="base", labels={}, lifetime_seconds=60)
        with pytest.raises(UserError, match="disk is full"):
            await sandbox.write(f"{HOME}/big", bytes(4 << 20))


async def test_hosts_are_opened_at_creation_and_shut_again(tmp_path):
    asked: list[str] = []

    async def nowhere(host: str, port: int) -> list[str]:
        asked.append(f"{host}:{port}")
        return []

    try_both = "for h in files.example.org other.example.org; do curl -sv https://$h/ 2>&1 | grep -o ' 40[0-9] .*\\| 502 .*'; done; true"
    async with running(Config(tmp_path, KEY, outside=Outside(resolve=nowhere))) as endpoint:
        sandbox = await sandboxes_of(endpoint).create(
            template="base", labels={}, lifetime_seconds=60, egress=["files.example.org:443"]
        )
        before = (await sandbox.run(try_both, timeout_seconds=60, cwd=HOME)).stdout
        assert asked == ["files.example.org:443"]
        assert "502 files.example.org has no address" in before
        assert "add other.example.org:443 to PULLWRIGHT_EGRESS" in before
        await sandbox.allow([])
        after = (await sandbox.run(try_both, timeout_seconds=60, cwd=HOME)).stdout
        assert "add files.example.org:443 to PULLWRIGHT_EGRESS" in after
        assert asked == ["files.example.org:443"]
        await sandbox.kill()
