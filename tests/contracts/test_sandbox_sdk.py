"""The unmodified e2b SDK against the local server, over HTTP. Nothing here skips: without bubblewrap it fails."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import signal
import socket
import tarfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from e2b import (
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    FileType,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    PtySize,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)

from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, Endpoint, running
from tests.contracts.sandbox_server import (
    KEY,
    alive,
    connection,
    descendants,
    environment_of,
    sandbox_of,
    server_process,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

RULES = """
rules:
- id: no-eval
  languages: [python]
  severity: ERROR
  message: eval runs text
  pattern: eval(...)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endpoint]:
    async with running(Config(tmp_path_factory.mktemp("home"), KEY)) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(endpoint: Endpoint) -> AsyncIterator[AsyncSandbox]:
    async with sandbox_of(endpoint) as sandbox:
        yield sandbox


# Control plane


async def test_a_sandbox_tells_what_it_is(endpoint):
    async with sandbox_of(endpoint, metadata={"task": "t 1&=ü"}) as sandbox:
        info = await sandbox.get_info()
        assert (info.sandbox_id, info.template_id, info.state) == (
            sandbox.sandbox_id,
            "pullwright",
            SandboxState.RUNNING,
        )
        assert info.metadata == {"task": "t 1&=ü"}
        assert 100 < (info.end_at - info.started_at).total_seconds() < 140
        assert await sandbox.is_running()


async def test_an_unknown_template_is_named_with_the_known_ones(endpoint):
    with pytest.raises(
        (SandboxException, NotFoundException), match=r"template 'nosuch' not found; known: base, pullwright"
    ):
        await AsyncSandbox.create("nosuch", **connection(endpoint))


async def test_a_second_client_connects_to_the_same_sandbox(endpoint, sandbox):
    await sandbox.files.write("/tmp/here", "yes")
    other = await AsyncSandbox.connect(sandbox.sandbox_id, **connection(endpoint))
    assert await other.files.read("/tmp/here") == "yes"


async def test_connecting_never_shortens_the_lease(endpoint, sandbox):
    before = (await sandbox.get_info()).end_at
    await AsyncSandbox.connect(sandbox.sandbox_id, timeout=5, **connection(endpoint))
    assert (await sandbox.get_info()).end_at == before


async def test_a_lease_can_be_shortened_and_then_expires(endpoint):
    async with sandbox_of(endpoint) as sandbox:
        await sandbox.set_timeout(1)
        await asyncio.sleep(1.5)
        assert not await sandbox.is_running()
        with pytest.raises(SandboxNotRunningException):
            await sandbox.commands.run("true")


async def test_kill_says_whether_there_was_something_to_kill(endpoint):
    async with sandbox_of(endpoint) as sandbox:
        assert await sandbox.kill() is True
        assert await sandbox.kill() is False
        with pytest.raises(SandboxNotFoundException):
            await sandbox.get_info()


async def test_connecting_to_a_dead_sandbox_says_that_it_is_not_there(endpoint):
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.connect("sb000000000000000000", **connection(endpoint))


async def test_listing_filters_by_metadata_and_pages(endpoint):
    mark = {"test": "listing & paging = é"}
    made: list[AsyncSandbox] = []
    try:
        for number in range(3):
            made += [await AsyncSandbox.create("base", metadata={**mark, "n": str(number)}, **connection(endpoint))]
        pages, found = AsyncSandbox.list(query=SandboxQuery(metadata=mark), limit=2, **connection(endpoint)), []
        while pages.has_next:
            found.append([item.metadata["n"] for item in await pages.next_items()])
        assert found == [["0", "1"], ["2"]]
        one = AsyncSandbox.list(query=SandboxQuery(metadata={**mark, "n": "1"}), **connection(endpoint))
        assert [item.sandbox_id for item in await one.next_items()] == [made[1].sandbox_id]
    finally:
        for sandbox in made:
            await sandbox.kill()


async def test_a_paused_sandbox_keeps_its_processes_and_its_files(endpoint, sandbox):
    await sandbox.files.write("/home/user/kept", "kept")
    counter = await sandbox.commands.run(
        "while :; do echo x >> /tmp/ticks; sleep 0.02; done", background=True, timeout=0
    )
    await sandbox.pause()
    assert (await sandbox.get_info()).state == SandboxState.PAUSED
    assert not await sandbox.is_running()
    resumed = await AsyncSandbox.connect(sandbox.sandbox_id, timeout=60, **connection(endpoint))
    before = len(await resumed.files.read("/tmp/ticks"))
    await asyncio.sleep(0.2)
    assert len(await resumed.files.read("/tmp/ticks")) > before
    assert await resumed.files.read("/home/user/kept") == "kept"
    await counter.disconnect()


async def test_what_is_not_served_says_so(sandbox):
    with pytest.raises(SandboxException, match="not served"):
        await sandbox.create_snapshot()
    with pytest.raises(SandboxException, match="not served"):
        await sandbox.get_metrics()
    with pytest.raises(SandboxException, match="terminals"):
        await sandbox.pty.create(size=PtySize(rows=24, cols=80), on_data=print)


async def test_an_allow_list_is_refused_because_it_could_not_be_honoured(endpoint):
    with pytest.raises(SandboxException, match="no network"):
        await AsyncSandbox.create("base", network={"allow_out": ["example.com"]}, **connection(endpoint))


async def test_a_server_at_its_bound_asks_for_patience(tmp_path, monkeypatch):
    monkeypatch.setenv("E2B_MAX_RETRIES", "0")
    async with running(Config(tmp_path, KEY, limits=Limits(sandboxes=1))) as endpoint, sandbox_of(endpoint, "base"):
        with pytest.raises(RateLimitException):
            await AsyncSandbox.create("base", **connection(endpoint))


# Who may ask


async def test_a_wrong_api_key_is_refused(endpoint):
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create(**{**connection(endpoint), "api_key": "wrong"})


async def test_one_sandboxs_token_does_not_open_another(endpoint, sandbox):
    async with sandbox_of(endpoint, "base") as other:
        headers = {"E2b-Sandbox-Id": other.sandbox_id, "X-Access-Token": sandbox._envd_access_token}
        async with httpx.AsyncClient() as client:
            answer = await client.get(endpoint.sandbox_url + "/files", params={"path": "/etc/passwd"}, headers=headers)
            assert answer.status_code == 401
            right = {**headers, "X-Access-Token": other._envd_access_token}
            answer = await client.get(endpoint.sandbox_url + "/files", params={"path": "/etc/passwd"}, headers=right)
            assert answer.status_code == 200


async def test_an_unknown_user_is_refused(sandbox):
    with pytest.raises(AuthenticationException, match="invalid username"):
        await sandbox.commands.run("true", user="mallory")
    assert (await sandbox.commands.run("id -u", user="root")).stdout == "1000\n"


# Commands


async def test_a_command_gives_both_streams_and_its_exit_code(sandbox):
    result = await sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run("echo why >&2; exit 3")
    assert (caught.value.exit_code, caught.value.stderr, caught.value.error) == (3, "why\n", "exit status 3")


async def test_a_hundred_fast_commands_all_end(sandbox):
    results = await asyncio.gather(*(sandbox.commands.run(f"echo {number}", timeout=30) for number in range(100)))
    assert [result.stdout for result in results] == [f"{number}\n" for number in range(100)]


async def test_output_streams_while_the_command_runs(sandbox):
    seen: list[tuple[float, str]] = []
    await sandbox.commands.run(
        "echo a; sleep 0.4; echo b", on_stdout=lambda text: seen.append((time.monotonic(), text))
    )
    assert [text for _, text in seen] == ["a\n", "b\n"]
    assert seen[1][0] - seen[0][0] > 0.3


async def test_environment_and_directory_reach_the_command(endpoint):
    async with sandbox_of(endpoint, envs={"A": "sandbox", "B": "sandbox"}) as sandbox:
        result = await sandbox.commands.run("echo $A $B $HOME $USER; pwd", envs={"B": "call"}, cwd="/tmp")
        assert result.stdout == "sandbox call /home/user user\n/tmp\n"


async def test_a_missing_directory_is_an_invalid_argument(sandbox):
    with pytest.raises(InvalidArgumentException, match="does not exist"):
        await sandbox.commands.run("true", cwd="/nowhere")


async def test_a_background_command_can_be_listed_reached_and_killed(sandbox):
    handle = await sandbox.commands.run("echo begun; sleep 60", background=True, timeout=0)
    listed = await sandbox.commands.list()
    assert [(item.pid, item.cmd, item.args[-1]) for item in listed] == [
        (handle.pid, "/bin/bash", "echo begun; sleep 60")
    ]
    again = await sandbox.commands.connect(handle.pid, timeout=0)
    assert await handle.kill() is True
    for each in (handle, again):
        with pytest.raises(CommandExitException) as caught:
            await each.wait()
        assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")
    assert await sandbox.commands.kill(handle.pid) is False


async def test_a_finished_command_still_tells_its_exit_code(sandbox):
    handle = await sandbox.commands.run("exit 7", background=True)
    with pytest.raises(CommandExitException):
        await handle.wait()
    again = await sandbox.commands.connect(handle.pid)
    with pytest.raises(CommandExitException) as caught:
        await again.wait()
    assert caught.value.exit_code == 7


async def test_standard_input_is_fed_and_closed(sandbox):
    handle = await sandbox.commands.run("cat; echo done", background=True, stdin=True)
    await handle.send_stdin("one\n")
    await sandbox.commands.send_stdin(handle.pid, "two\n")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "one\ntwo\ndone\n"


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
    await asyncio.sleep(0.1)
    assert await sandbox.commands.list() == []


async def test_the_deadline_reaches_children_with_a_session_of_their_own(sandbox):
    with pytest.raises(TimeoutException):
        await sandbox.commands.run("setsid sleep 4321 & sleep 60", timeout=0.3)
    await asyncio.sleep(0.2)
    assert "4321" not in (await sandbox.commands.run("ps -eo args")).stdout


async def test_the_deadline_holds_although_the_client_has_gone(sandbox):
    handle = await sandbox.commands.run("sleep 60", background=True, timeout=0.5)
    await handle.disconnect()
    await asyncio.sleep(1)
    assert await sandbox.commands.list() == []


async def test_a_client_that_goes_leaves_the_command_running(sandbox):
    handle = await sandbox.commands.run(
        "for i in $(seq 20); do echo $i; sleep 0.05; done; touch /tmp/finished", background=True, timeout=0
    )
    await handle.disconnect()
    await asyncio.sleep(1.6)
    assert await sandbox.files.exists("/tmp/finished")


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
    for _ in range(100):
        if await sandbox.files.exists("/tmp/through"):
            break
        await asyncio.sleep(0.1)
    assert await sandbox.files.exists("/tmp/through")


async def test_large_output_arrives_whole(sandbox):
    result = await sandbox.commands.run("head -c 20000000 /dev/zero | tr '\\0' x", timeout=60)
    assert len(result.stdout) == 20_000_000


async def test_a_survivor_that_holds_the_output_open_does_not_hold_the_result(sandbox):
    begun = time.monotonic()
    result = await sandbox.commands.run("(sleep 5; echo late > /tmp/late) & echo now", timeout=20)
    assert result.stdout == "now\n"
    assert time.monotonic() - begun < 2
    serving = await sandbox.commands.run(
        "(for i in $(seq 30); do echo noise || exit; sleep 0.05; done; echo ok > /tmp/survived) & true"
    )
    assert serving.exit_code == 0
    await asyncio.sleep(2)
    assert await sandbox.files.read("/tmp/survived") == "ok\n"


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


# Files


async def test_a_file_goes_in_and_comes_out_in_every_form(sandbox):
    data = bytes(range(256)) * 1000
    for path, options in {"a": {}, "b": {"use_octet_stream": True}, "c": {"gzip": True}}.items():
        written = await sandbox.files.write(f"deep/er/{path}", data, **options)
        assert written.path == f"/home/user/deep/er/{path}"
        assert bytes(await sandbox.files.read(f"/home/user/deep/er/{path}", format="bytes")) == data
        assert bytes(await sandbox.files.read(f"~/deep/er/{path}", format="bytes", gzip=True)) == data
    stream = await sandbox.files.read("deep/er/a", format="stream")
    assert b"".join([chunk async for chunk in stream]) == data


async def test_many_files_go_in_with_one_request(sandbox):
    files = [{"path": f"/tmp/many/{number}", "data": str(number)} for number in range(50)]
    written = await sandbox.files.write_files(files)
    assert [item.path for item in written] == [item["path"] for item in files]
    assert await sandbox.files.read("/tmp/many/49") == "49"


async def test_reading_what_is_not_there_or_not_a_file_says_which(sandbox):
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("/tmp/nothing")
    with pytest.raises(InvalidArgumentException, match="directory"):
        await sandbox.files.read("/tmp")
    await sandbox.commands.run("mkfifo /tmp/pipe")
    with pytest.raises(InvalidArgumentException, match="regular"):
        await sandbox.files.read("/tmp/pipe")


async def test_directories_are_made_listed_and_removed(sandbox):
    assert await sandbox.files.make_dir("/tmp/d/e") is True
    assert await sandbox.files.make_dir("/tmp/d/e") is False
    await sandbox.files.write("/tmp/d/f", "12345")
    await sandbox.commands.run("ln -s f /tmp/d/link")
    entries = {entry.name: entry for entry in await sandbox.files.list("/tmp/d")}
    assert sorted(entries) == ["e", "f", "link"]
    assert (entries["e"].type, entries["f"].type, entries["f"].size) == (FileType.DIR, FileType.FILE, 5)
    assert entries["link"].symlink_target == "/tmp/d/f"
    await sandbox.files.write("/tmp/d/e/deep", "")
    assert "deep" in [entry.name for entry in await sandbox.files.list("/tmp/d", depth=2)]
    await sandbox.files.remove("/tmp/d")
    await sandbox.files.remove("/tmp/d")
    assert await sandbox.files.exists("/tmp/d") is False
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.list("/etc/passwd")


async def test_a_file_is_renamed_and_described(sandbox):
    await sandbox.files.write("/tmp/old", "1")
    await sandbox.commands.run("chmod 750 /tmp/old")
    entry = await sandbox.files.rename("/tmp/old", "/tmp/made/new")
    assert (entry.path, oct(entry.mode), entry.permissions, entry.owner) == (
        "/tmp/made/new",
        "0o750",
        "-rwxr-x---",
        "user",
    )
    assert await sandbox.files.exists("/tmp/old") is False
    assert (await sandbox.files.get_info("/tmp/made/new")).size == 1
    with pytest.raises(FileNotFoundException):
        await sandbox.files.get_info("/tmp/old")


async def test_a_full_disk_is_said_and_bounded(tmp_path):
    limits = Limits(home_bytes=4 << 20)
    async with running(Config(tmp_path, KEY, limits=limits)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        with pytest.raises(NotEnoughSpaceException):
            await sandbox.files.write("big", b"x" * (8 << 20), use_octet_stream=True)
        with pytest.raises(CommandExitException, match="No space left"):
            await sandbox.commands.run("head -c 8000000 /dev/zero > big2")


async def test_a_name_that_is_not_utf8_can_be_listed(sandbox):
    await sandbox.commands.run(r"mkdir /tmp/odd; touch $'/tmp/odd/\xff'")
    assert [entry.name for entry in await sandbox.files.list("/tmp/odd")] == ["\ufffd"]


async def test_a_tree_of_six_thousand_files_goes_in_quickly(sandbox):
    buffer, body = io.BytesIO(), os.urandom(6_700)
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(6_000):
            member = tarfile.TarInfo(f"d{number % 60}/f{number}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    await sandbox.files.write("/tmp/tree.tar", buffer.getvalue(), use_octet_stream=True)
    result = await sandbox.commands.run("mkdir repo && tar -xf /tmp/tree.tar -C repo && find repo -type f | wc -l")
    assert result.stdout == "6000\n"


# Isolation, each with its control outside


async def test_files_of_the_machine_are_not_there(sandbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    assert secret.read_text() == "the secret"
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read(str(secret))
    with pytest.raises(CommandExitException):
        await sandbox.commands.run(f"cat {secret} || cat /proc/1/root{secret}")


async def test_a_planted_link_leads_to_the_sandboxs_own_file(sandbox, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("outside")
    await sandbox.commands.run(f"mkdir -p {tmp_path} && ln -s {outside} /tmp/link")
    await sandbox.files.write("/tmp/link", "inside")
    assert outside.read_text() == "outside"
    assert await sandbox.files.read("/tmp/link") == "inside"


async def test_writing_to_proc_is_not_done_with_the_servers_rights(sandbox):
    with pytest.raises(InvalidArgumentException, match="regular"):
        await sandbox.files.write("/proc/self/oom_score_adj", "100", use_octet_stream=True)


async def test_the_network_is_closed(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 2).close()
        with pytest.raises(CommandExitException):
            await sandbox.commands.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}")
    devices = (await sandbox.commands.run("cat /proc/net/dev")).stdout.splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]


async def test_the_servers_environment_is_not_visible(tmp_path):
    async with server_process(tmp_path) as (process, endpoint):
        assert "only-the-server-knows" in environment_of(process.pid)
        async with sandbox_of(endpoint, "base") as sandbox:
            assert (
                await sandbox.commands.run("cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c ^HOME=")
            ).stdout > "0"
            with pytest.raises(CommandExitException) as caught:
                await sandbox.commands.run(
                    "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | grep -a 'only-the-[s]erver'"
                )
            assert caught.value.exit_code == 1


async def test_privileges_are_gone_and_cannot_be_had_back(sandbox):
    status = (await sandbox.commands.run("cat /proc/self/status")).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    for command in (
        "unshare -U true",
        "unshare -Ur true",
        "mount -t tmpfs x /tmp",
        "touch /usr/x",
        "touch /etc/x",
        "touch /x",
        "touch /dev/x",
    ):
        with pytest.raises(CommandExitException):
            await sandbox.commands.run(command)


async def test_each_live_sandbox_has_a_user_of_its_own_on_the_machine(endpoint, sandbox):
    if os.geteuid() != 0:
        return
    async with sandbox_of(endpoint, "base"):
        uids = {line for pid in descendants(os.getpid()) for line in _uids(pid)}
        assert len(uids) >= 2
        assert "0" not in uids


def _uids(pid: int) -> list[str]:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    name, uid = (
        status.splitlines()[0].split("\t")[1],
        next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1],
    )
    return [uid] if name.startswith(("bwrap", "python3")) and pid != os.getpid() else []


async def test_nothing_outlives_the_server_however_it_ends(tmp_path):
    for number in (signal.SIGTERM, signal.SIGKILL):
        async with server_process(tmp_path) as (process, endpoint):
            sandbox = await AsyncSandbox.create("base", timeout=60, **connection(endpoint))
            handle = await sandbox.commands.run("setsid sleep 600 & sleep 600", background=True, timeout=0)
            inside = descendants(process.pid)
            assert len(inside) >= 4
            process.send_signal(number)
            await process.wait()
            for _ in range(50):
                if not any(alive(pid) for pid in inside):
                    break
                await asyncio.sleep(0.1)
            assert not any(alive(pid) for pid in inside)
            await handle.disconnect()


async def test_a_signal_to_the_servers_process_group_does_not_reach_the_sandboxes_first(tmp_path):
    async with server_process(tmp_path) as (process, endpoint), sandbox_of(endpoint, "base"):
        assert {os.getsid(pid) for pid in descendants(process.pid)}.isdisjoint({os.getsid(process.pid)})
        assert {os.getpgid(pid) for pid in descendants(process.pid)}.isdisjoint({os.getpgid(process.pid)})


# Templates


async def test_the_default_template_brings_python_and_pytest(sandbox):
    await sandbox.files.write("repo/test_it.py", "def test_it(): assert True\n")
    result = await sandbox.commands.run(
        "python -c 'import sys; print(sys.prefix)' && python3 --version && pytest -q", cwd="/home/user/repo"
    )
    assert result.stdout.startswith("/opt/tools\nPython 3.")
    assert "1 passed" in result.stdout


async def test_the_default_template_brings_semgrep_that_needs_no_network(sandbox):
    await sandbox.files.write("repo/rules.yml", RULES)
    await sandbox.files.write("repo/bad.py", "eval(input())\n")
    result = await sandbox.commands.run(
        "/opt/semgrep/bin/semgrep --version && "
        "/opt/semgrep/bin/semgrep scan --metrics=off --disable-version-check --config rules.yml --json --quiet bad.py",
        cwd="/home/user/repo",
        timeout=120,
    )
    assert '"check_id":"no-eval"' in result.stdout


async def test_the_base_template_has_no_tools(endpoint):
    async with sandbox_of(endpoint, "base") as sandbox:
        assert (await sandbox.commands.run("ls /opt 2>/dev/null | wc -l")).stdout == "0\n"
        assert (await sandbox.commands.run("git --version")).exit_code == 0


async def test_an_operators_template_file_binds_a_directory_nobody_else_may_enter(tmp_path):
    shut = tmp_path / "shut"
    (shut / "kit" / "bin").mkdir(parents=True)
    tool = shut / "kit" / "bin" / "hello"
    tool.write_text("#!/bin/sh\necho hello $WHO\n")
    tool.chmod(0o755)
    shut.chmod(0o700)
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "kit.toml").write_text(
        f'extends = "base"\npath = ["/opt/kit/bin"]\n[env]\nWHO = "you"\n[[binds]]\nsource = "{shut / "kit"}"\ntarget = "/opt/kit"\n'
    )
    async with running(Config(tmp_path, KEY)) as endpoint, sandbox_of(endpoint, "kit") as sandbox:
        assert (await sandbox.commands.run("hello")).stdout == "hello you\n"
        with pytest.raises(CommandExitException):
            await sandbox.commands.run("touch /opt/kit/x")
