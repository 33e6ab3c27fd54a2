"""What a sandbox cannot reach, each with its control outside, and what its template brings. Nothing here skips: without bubblewrap it fails."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path

import pytest
from e2b import (
    AsyncSandbox,
    CommandExitException,
    FileNotFoundException,
    InvalidArgumentException,
)

from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.serve import Config, running
from tests.contracts.sandbox_server import (
    KEY,
    all_dead,
    at_least,
    connection,
    descendants,
    environment_of,
    eventually,
    fixtures,
    output,
    sandbox_of,
    server_process,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()

RULES = """
rules:
- id: no-eval
  languages: [python]
  severity: ERROR
  message: eval runs text
  pattern: eval(...)
"""


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
    other = await sandbox.commands.run("sleep 60", background=True)
    with pytest.raises(InvalidArgumentException, match="regular"):
        await sandbox.files.write(f"/proc/{other.pid}/oom_score_adj", "100", use_octet_stream=True)


ON_PROCESS = """
import os, resource, sys
def denied(act):
    try: act()
    except PermissionError: return True
    return False
pid = int(sys.argv[1])
print([name for name, act in {
    "memory": lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)),
    "descriptors": lambda: os.listdir(f"/proc/{pid}/fd"),
    "environment": lambda: os.close(os.open(f"/proc/{pid}/environ", os.O_RDONLY)),
    "limits": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 4096)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "its group's priority": lambda: os.setpriority(os.PRIO_PGRP, pid, 19),
    "its user's priority": lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19),
    "class": lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
    "processors": lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
}.items() if not denied(act)])
"""


async def test_the_agent_is_out_of_reach_of_what_it_runs_although_both_are_one_user(sandbox):
    await sandbox.files.write("/tmp/on.py", ON_PROCESS)
    other = await sandbox.commands.run("sleep 60", background=True)
    reached = await output(sandbox, f"python3 /tmp/on.py {other.pid}")
    assert reached == "['memory', 'descriptors', 'environment', 'limits', 'priority', 'class', 'processors']\n"
    assert await output(sandbox, "python3 /tmp/on.py 1") == "[]\n"
    assert await output(sandbox, "echo still") == "still\n"


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
            await eventually(partial(at_least, process.pid, 5))
            inside = descendants(process.pid)
            process.send_signal(number)
            await process.wait()
            await eventually(partial(all_dead, inside))
            await handle.disconnect()


async def apart(server: int) -> bool:
    inside = descendants(server)
    sessions, groups = {os.getsid(pid) for pid in inside}, {os.getpgid(pid) for pid in inside}
    return bool(inside) and os.getsid(server) not in sessions and os.getpgid(server) not in groups


async def test_a_signal_to_the_servers_process_group_does_not_reach_the_sandboxes_first(tmp_path):
    async with server_process(tmp_path) as (process, endpoint), sandbox_of(endpoint, "base"):
        await eventually(partial(apart, process.pid))  # one that was just started leaves the session in a moment


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
        "/opt/semgrep/bin/semgrep scan --experimental --metrics=off "
        "--disable-version-check --config rules.yml --json --quiet bad.py",
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


# As root this is a user whom only its own namespace takes for an ordinary one: the probe finds that it may write kernel settings.
ORDINARY = """
import asyncio, ctypes, os, sys
from pathlib import Path
user, group, libc = os.getuid(), os.getgid(), ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000) == 0
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"1000 {user} 1")
Path("/proc/self/gid_map").write_text(f"1000 {group} 1")
if sys.argv[1] == "none": Path("/proc/sys/user/max_user_namespaces").write_text("0")
assert os.fork() or not os.execv(sys.executable, [sys.executable, "-c", sys.argv[3], sys.argv[2]])
os.wait()
"""
SERVES = """
import asyncio, sys
from pathlib import Path
from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.serve import Config, running
async def main():
    try:
        async with running(Config(Path(sys.argv[1]), "key")) as endpoint: print("serves:", endpoint.shortfall)
    except IsolationUnavailable as refused: print("refuses:", refused)
asyncio.run(main())
"""


@pytest.mark.parametrize("namespaces", ["some", "none"])
async def test_a_machine_without_user_namespaces_is_refused_with_what_to_do(tmp_path, namespaces):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ORDINARY, namespaces, str(tmp_path), SERVES), stdout=asyncio.subprocess.PIPE
    )
    said = (await process.communicate())[0].decode()
    if namespaces == "some":
        assert "allow user namespaces" not in said, "the control: with them it gets as far as the probe"
        assert said.startswith("serves" if os.geteuid() else "refuses: Isolation does not hold")
    else:
        assert said.startswith("refuses: This machine does not let an unprivileged user make namespaces")
        assert "allow user namespaces" in said
        assert said.count("\n") == 1


async def test_without_a_system_call_filter_it_serves_only_when_that_was_asked_for_by_name(tmp_path):
    with pytest.raises(IsolationUnavailable, match="no system call filter"):
        async with running(Config(tmp_path, KEY, machine="riscv64")):
            pass
    async with (
        running(Config(tmp_path, KEY, machine="riscv64", weaker=True)) as endpoint,
        sandbox_of(endpoint, "base") as sandbox,
    ):
        assert "runs without a system call filter" in endpoint.shortfall
        assert await output(sandbox, "grep Seccomp: /proc/self/status | cut -f2") == "0\n"
        assert await output(sandbox, "cat /etc/shadow 2>&1 | grep -c 'No such\\|denied'") == "1\n"
    async with running(Config(tmp_path, KEY, weaker=True)) as endpoint:
        assert "filter" not in endpoint.shortfall
