"""What code in a sandbox tries (probes P01-P56, cases S01-S11). Each first succeeds outside, then fails inside."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from e2b import AsyncSandbox, CommandExitException, FileNotFoundException, TimeoutException

from bot.providers.sandbox.e2b import E2BSandboxes
from bot.providers.sandbox.port import HOME
from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.launch import find_tool
from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, Endpoint, running
from tests.attacks.conftest import Control
from tests.contracts.sandbox_server import (
    KEY,
    all_dead,
    connection,
    descendants,
    eventually,
    negated,
    output,
    sandbox_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPT = Path(__file__).with_name("probes.py")
MARKER = "launcher-secret-4b1f"
PLAIN = (
    "P01",
    "P02",
    "P03",
    "P04",
    "P05",
    "P07",
    "P08",
    "P09",
    "P10",
    "P11",
    "P12",
    "P13",
    "P14",
    "P15",
    "P16",
    "P17",
    "P18",
    "P20",
    "P26",
    "P27",
    "P28",
    "P29",
    "P30",
    "P31",
    "P36",
    "P38",
    "P39",
    "P40",
    "P41",
    "P42",
    "P43",
    "P44",
    "P45",
    "P53",
    "P54",
    "P55",
    "P56",
)
IN_A_NAMESPACE = ("P21", "P22", "P23", "P24", "P25", "P32", "P33", "P34", "P35", "P37")
"""Their controls need a network or mounts of their own, so as not to disturb this machine."""


@dataclass(frozen=True)
class World:
    """What there is to steal and to reach on this machine."""

    asked: dict[str, Any]
    outside: dict[str, object]


@contextmanager
def echoing(sock: socket.socket) -> Iterator[None]:
    def serve() -> None:
        while True:
            try:
                peer, _ = sock.accept()
            except OSError:
                return
            with peer:
                peer.sendall(peer.recv(10))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        sock.shutdown(socket.SHUT_RDWR)


def run_outside(asked: dict[str, Any], only: tuple[str, ...], *, prefix: tuple[str, ...] = ()) -> dict[str, object]:
    """The script as an ordinary process of this machine, with what a careless launcher would leave to it."""
    read, write = os.pipe()
    done = subprocess.run(
        [
            *prefix,
            sys.executable,
            "-I",
            str(SCRIPT),
            json.dumps({**asked, "only": only, "tty": True, "one": asked["victim"]}),
            MARKER,
        ],
        env={"PATH": os.environ["PATH"], "HOME": asked["home"], "TOKEN": MARKER},
        pass_fds=(read, write),
        capture_output=True,
        check=False,
        timeout=120,
    )
    os.close(read)
    os.close(write)
    assert done.returncode == 0, done.stderr.decode()
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


async def run_here(*command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """On this machine, with nothing in its way."""

    def run() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, capture_output=True, check=False, timeout=120, **options)

    return await asyncio.to_thread(run)


@contextmanager
def a_process() -> Iterator[subprocess.Popen[bytes]]:
    """One of this machine, for probes to reach for; it ends with the block."""
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "pytest-victim"], cwd="/")
    try:
        yield victim
    finally:
        victim.kill()
        victim.wait()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("machine")
    place.chmod(0o755)
    for name, mode in (("secret", 0o644), ("private", 0o600), (".netrc", 0o600)):
        (place / name).write_text("the secret")
        (place / name).chmod(mode)
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as plain,
        a_process() as victim,
    ):
        name = f"pullwright-attack-{os.getpid()}"
        abstract.bind("\0" + name)
        plain.bind(str(place / "socket"))
        (place / "socket").chmod(0o777)
        abstract.listen()
        plain.listen()
        asked = {
            "marker": MARKER[::-1],
            "secret": str(place / "secret"),
            "private": str(place / "private"),
            "home": str(place),
            "pid": victim.pid,
            "victim": victim.pid,
            "port": tcp.getsockname()[1],
            "abstract": name,
            "socket": str(place / "socket"),
        }
        with echoing(tcp), echoing(abstract), echoing(plain):
            outside = run_outside(asked, PLAIN)
            apart = ("unshare", "-Urmn", "--propagation", "private")
            outside |= run_outside({**asked, "network": True}, IN_A_NAMESPACE, prefix=apart)
            yield World(asked, outside)
        assert victim.poll() is None, "a probe has killed a process of this machine"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endpoint]:
    async with running(Config(tmp_path_factory.mktemp("home"), KEY)) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(endpoint: Endpoint) -> AsyncIterator[AsyncSandbox]:
    async with sandbox_of(endpoint, timeout=600) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def inside(world: World, sandbox: AsyncSandbox) -> dict[str, object]:
    await sandbox.files.write("/tmp/probes.py", SCRIPT.read_bytes())
    await sandbox.files.write("/tmp/asked.json", json.dumps({**world.asked, "only": [*PLAIN, *IN_A_NAMESPACE]}))
    said = await sandbox.commands.run('python3 -I /tmp/probes.py "$(cat /tmp/asked.json)"', timeout=120)
    result: dict[str, object] = json.loads(said.stdout.splitlines()[-1])
    return result


ONLY_ROOT_GETS_THROUGH = {"P03", "P08", "P26", "P27", "P42", "P45", "P53", "P56"}
"""Their control needs root's rights; run as an ordinary user, the suite can only show that the sandbox has them not."""


@pytest.mark.parametrize("probe", [*PLAIN, *IN_A_NAMESPACE])
async def test_a_probe_that_gets_through_outside_does_not_inside(
    probe: str, world: World, inside: dict[str, object], control: Control
):
    if os.geteuid() == 0 or probe not in ONLY_ROOT_GETS_THROUGH:
        control(world.outside[probe] is True, f"{probe} outside: {world.outside[probe]}")
    assert inside[probe] is False


async def test_p06_s08_a_link_planted_inside_reads_nothing_of_the_machine(
    world: World, sandbox: AsyncSandbox, control: Control, tmp_path: Path
):
    secret = world.asked["secret"]
    (tmp_path / "planted").symlink_to(secret)
    control((tmp_path / "planted").read_text() == "the secret", "a reader on the machine follows it")
    await sandbox.commands.run(
        f"ln -sfn {secret} /tmp/planted; ln -sfn {Path(secret).parent} /tmp/folder; mkdir -p /tmp/real; echo own >/tmp/real/secret"
    )
    for path in ("/tmp/planted", "/tmp/folder/secret", "/proc/1/root" + secret, "/proc/self/cwd/../../../.." + secret):
        with pytest.raises(FileNotFoundException):
            await sandbox.files.read(path)
    race = await sandbox.commands.run(
        "while :; do ln -sfn /tmp/real /tmp/swap; ln -sfn /tmp/folder /tmp/swap; done", background=True, timeout=0
    )
    seen = set()
    for _ in range(60):
        try:
            seen.add(await sandbox.files.read("/tmp/swap/secret"))
        except FileNotFoundException:
            seen.add("none")
    await race.kill()
    assert seen <= {"own\n", "none"}


DAEMON = """python3 -c "
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork(): sys.exit()
os.setsid()
if os.fork(): sys.exit()
os.closerange(0, 3)
os.execve('/bin/sleep', ['sleep', '777'], {})
"; (setsid sleep 778 & kill -STOP $!); """


async def test_p19_s06_survivors_die_at_the_deadline_and_at_the_latest_with_their_sandbox(
    endpoint: Endpoint, control: Control
):
    async with sandbox_of(endpoint) as sandbox:
        await sandbox.commands.run(DAEMON)
        control(await output(sandbox, "pgrep -fc '[s]leep 77'") == "2\n", "both outlive a command that simply ends")
        await sandbox.commands.run("pkill -KILL -f '[s]leep 77'")
        with pytest.raises(TimeoutException):
            await sandbox.commands.run(DAEMON + "sleep 60", timeout=1.5)
        await eventually(lambda: negated(output(sandbox, "pgrep -f '[s]leep 77' || true")))
        await sandbox.commands.run(DAEMON)
        alive = descendants(os.getpid())
    await eventually(
        lambda: all_dead(
            [
                pid
                for pid in alive
                if (Path("/proc") / str(pid) / "comm").exists()
                and "sleep" in (Path("/proc") / str(pid) / "comm").read_text()
            ]
        )
    )


async def test_s01_the_servers_environment_is_nowhere_inside(
    world: World, endpoint: Endpoint, control: Control, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LAUNCHER_TOKEN", MARKER)
    careless = ("bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--clearenv")
    shown = await run_here(*careless, "grep", "-c", MARKER, "/proc/1/environ")
    control(shown.stdout == b"1\n", "bubblewrap with --clearenv alone shows it as process 1's")
    async with sandbox_of(endpoint, "base") as sandbox:
        seen = await output(sandbox, f"cat /proc/[0-9]*/environ 2>/dev/null | grep -ac {MARKER[:12]}[-] || true")
        assert seen == "0\n"


async def test_s02_kernel_settings_are_out_of_reach_although_the_server_may_be_root(
    inside: dict[str, object], world: World, control: Control
):
    control(world.outside["P45"] is True or os.geteuid() != 0, "root outside may open core_pattern for writing")
    assert inside["P45"] is False


async def test_s03_a_socket_of_the_machine_in_a_shared_directory_is_not_shared(
    world: World, inside: dict[str, object], control: Control
):
    control(world.outside["P31"] is True, "the socket answers outside")
    assert inside["P31"] is False


async def test_s04_strange_socket_families_are_refused(
    world: World, inside: dict[str, object], sandbox: AsyncSandbox, control: Control
):
    open_outside = ("P27", "P28", "P29") if os.geteuid() == 0 else ("P28", "P29")
    control(all(world.outside[probe] is True for probe in open_outside), "packet, vsock and netlink open outside")
    assert [inside[probe] for probe in ("P27", "P28", "P29")] == [False] * 3
    code = "import socket; socket.socket(38, socket.SOCK_SEQPACKET)"
    with pytest.raises(CommandExitException):
        await sandbox.commands.run(f"python3 -c '{code}'")


async def test_s05_nothing_types_into_a_terminal_with_or_without_a_session(
    world: World, inside: dict[str, object], control: Control
):
    control(world.outside["P53"] is True or os.geteuid() != 0, "TIOCSTI works on this kernel, for root at least")
    assert inside["P53"] is False


FILL = {
    "P46": "python3 -c 'import os\nfor _ in range(60):\n  if not os.fork(): os._exit(__import__(\"time\").sleep(2) or 0)'",
    "P47": "head -c 400M /dev/zero | tail >/dev/null",
    "P48": "head -c 8M /dev/zero > /dev/shm/fill && rm /dev/shm/fill",
    "P49": "head -c 8M /dev/zero > /tmp/fill.$$ && rm /tmp/fill.$$",
    "P50": "head -c 8M /dev/zero > $HOME/fill && rm $HOME/fill",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def narrow(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endpoint]:
    limits = Limits(
        processes=40, memory_bytes=256 << 20, cpus=1, shared_memory_bytes=4 << 20, tmp_bytes=4 << 20, home_bytes=4 << 20
    )
    async with running(Config(tmp_path_factory.mktemp("home"), KEY, limits=limits)) as endpoint:
        yield endpoint


@pytest.mark.parametrize("probe", FILL)
async def test_s07_using_up_the_machine_stops_at_the_sandboxs_bound(
    probe: str, narrow: Endpoint, control: Control, tmp_path: Path
):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    outside = await run_here("bash", "-o", "pipefail", "-c", FILL[probe], env=env)
    control(outside.returncode == 0, "this machine lets it")
    async with sandbox_of(narrow, "base") as sandbox:
        with pytest.raises(CommandExitException):
            await sandbox.commands.run("set -o pipefail; " + FILL[probe], timeout=60)
        assert await output(sandbox, "echo alive") == "alive\n"


async def test_s07_p51_a_flood_of_output_is_cut_while_it_streams(endpoint: Endpoint, control: Control):
    flood = "head -c 50M /dev/zero | tr '\\0' x"
    control(len((await run_here("bash", "-c", flood)).stdout) == 50 << 20, "an ordinary reader takes it all")
    sandbox = await E2BSandboxes(KEY, endpoint.api_url, endpoint.sandbox_url).create(
        template="base", labels={"t": "flood"}, lifetime_seconds=120
    )
    try:
        result = await sandbox.run(flood, timeout_seconds=60, cwd=HOME, output_bytes=10_000)
    finally:
        await sandbox.kill()
    assert len(result.stdout) < 11_000
    assert "left out" in result.stdout


async def test_s07_p52_spinning_ends_at_the_deadline(endpoint: Endpoint, control: Control):
    spin = "for i in 1 2 3; do (while :; do :; done) & done; wait"
    control((await run_here("timeout", "2", "bash", "-c", spin)).returncode == 124, "it goes on as long as it is let")
    async with sandbox_of(endpoint, "base") as sandbox:
        with pytest.raises(TimeoutException):
            await sandbox.commands.run(spin, timeout=1)
        await eventually(lambda: negated(output(sandbox, "ps -eo stat | grep ^R | tail -n +2; true")))


async def test_s09_two_sandboxes_share_nothing(endpoint: Endpoint, control: Control):
    async with sandbox_of(endpoint) as one, sandbox_of(endpoint) as two:
        await one.commands.run("echo mine > /tmp/shared; echo mine > /dev/shm/shared; ipcmk -M 100 >/dev/null")
        await one.commands.run(
            "python3 -m http.server 8099 --bind 127.0.0.1 >/dev/null 2>&1", background=True, timeout=0
        )
        await one.commands.run("exec -a victim-of-two sleep 600", background=True, timeout=0)
        look = "cat /tmp/shared /dev/shm/shared 2>/dev/null; ipcs -m | grep -c 0x; pgrep -f '[v]ictim-of' >/dev/null && echo seen; (exec 3<>/dev/tcp/127.0.0.1/8099) 2>/dev/null && echo dialled; true"
        await eventually(lambda: _has(one, look, "dialled"))
        control(await output(one, look) == "mine\nmine\n1\nseen\ndialled\n", "its own sandbox has them all")
        assert await output(two, look) == "0\n"


async def _has(sandbox: AsyncSandbox, command: str, word: str) -> bool:
    return word in await output(sandbox, command)


async def test_s10_without_bubblewrap_it_refuses_to_start(control: Control, tmp_path: Path):
    control(shutil.which("bwrap"), "bubblewrap is here")
    with pytest.raises(IsolationUnavailable, match="install the package `bubblewrap`"):
        find_tool("bwrap", path=str(tmp_path))


async def test_s10_without_user_namespaces_it_refuses_to_start(control: Control, tmp_path: Path):
    """A namespace whose allowance of further ones is nought stands for a machine that has them switched off."""
    program = "import asyncio, sys; from pathlib import Path; from bot.sandboxd.serve import Config, serve_forever; asyncio.run(serve_forever(Config(Path(sys.argv[1]), 'k'), lambda e: sys.exit(print('SERVES'))))"
    start = [sys.executable, "-c", program, str(tmp_path)]
    here = await run_here(*start)
    control(b"SERVES" in here.stdout, "with them it serves")
    without = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh", *start]
    there = await run_here(*without)
    assert b"SERVES" not in there.stdout
    assert b"IsolationUnavailable" in there.stderr
    assert there.stderr.strip().splitlines()[-1].count(b"IsolationUnavailable") == 1


async def test_s11_creation_is_always_closed_and_orphans_are_reaped(endpoint: Endpoint, control: Control):
    sandboxes = E2BSandboxes(KEY, endpoint.api_url, endpoint.sandbox_url)
    made = await sandboxes.create(template="base", labels={"task": "s11"}, lifetime_seconds=60)
    info = await AsyncSandbox.connect(str(made.id), **connection(endpoint))
    control(
        (await made.run("env", timeout_seconds=20, cwd=HOME)).stdout.count("=") > 3,
        "there is an environment to look at",
    )
    assert (await info.get_info()).allow_internet_access is False
    said = (await made.run("env", timeout_seconds=20, cwd=HOME)).stdout
    assert not any(word in said.upper() for word in ("KEY=", "TOKEN=", "SECRET="))
    assert await sandboxes.reap({"task": "s11"}) == 1
