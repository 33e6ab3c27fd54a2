"""What a sandbox costs, how many fit, and what is left of them afterwards. Prints one JSON object last.

`--cycles` sandboxes are made and killed, some by clients that vanish; servers are killed with SIGKILL; then processes, mounts,
groups, uids and files of this machine are compared with what was there before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from e2b import AsyncSandbox

from bot.sandboxd.serve import Config, Endpoint, running

KEY = "key-of-the-bench"
_AT_ONCE = 8
_GROUPS = ("*/pullwright-*", "*/*/pullwright-*", "*/*/*/pullwright-*")
_PROGRAM = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from bot.sandboxd.serve import Config, serve_forever
asyncio.run(serve_forever(Config(Path(sys.argv[1]), sys.argv[2]), lambda e: print(json.dumps(dataclasses.asdict(e)), flush=True)))
"""
_VANISHING = """
import asyncio, os, sys
from e2b import AsyncSandbox
async def main():
    sandbox = await AsyncSandbox.create("base", timeout=3, api_url=sys.argv[1], sandbox_url=sys.argv[1], api_key=sys.argv[2])
    await sandbox.commands.run("setsid sleep 600 & sleep 600", background=True, timeout=0)
    os._exit(0)
asyncio.run(main())
"""


async def create(endpoint: Endpoint, template: str = "pullwright") -> AsyncSandbox:
    return await AsyncSandbox.create(
        template, timeout=300, api_url=endpoint.api_url, sandbox_url=endpoint.sandbox_url, api_key=endpoint.api_key
    )


async def milliseconds(act: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await act()
    return (time.perf_counter() - started) * 1000


def figures(samples: list[float]) -> dict[str, float]:
    ordered = sorted(samples)
    return {"median": round(statistics.median(ordered), 2), "p95": round(ordered[int(len(ordered) * 0.95)], 2)}


async def plain() -> None:
    """The same command without any sandbox, as the SDK would have it run."""
    process = await asyncio.create_subprocess_exec(
        *("/bin/bash", "-l", "-c", "true"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},  # no profile of the person who measures
    )
    await process.communicate()


async def costs(endpoint: Endpoint, rounds: int) -> dict[str, object]:
    """Creates, then commands in turn with plain subprocesses, so that both meet the same load."""
    creates, kills, bare, inside = [], [], [], []
    for _ in range(rounds // 4):
        started = time.perf_counter()
        sandbox = await create(endpoint)
        creates.append((time.perf_counter() - started) * 1000)
        kills.append(await milliseconds(sandbox.kill))
    sandbox = await create(endpoint)
    for _ in range(rounds):
        bare.append(await milliseconds(plain))
        inside.append(await milliseconds(lambda: sandbox.commands.run("true")))
    await sandbox.kill()
    overhead = statistics.median(inside) - statistics.median(bare)
    return {
        "create_ms": figures(creates),
        "kill_ms": figures(kills),
        "subprocess_ms": figures(bare),
        "command_ms": figures(inside),
        "overhead_ms": round(overhead, 2),
    }


async def many(endpoint: Endpoint, number: int) -> dict[str, object]:
    """That many sandboxes alive together, each doing something."""
    started = time.perf_counter()
    made = await asyncio.gather(*(create(endpoint) for _ in range(number)))
    created = time.perf_counter() - started
    outputs = await asyncio.gather(*(sandbox.commands.run(f"echo {n}", timeout=60) for n, sandbox in enumerate(made)))
    right = [result.stdout for result in outputs] == [f"{n}\n" for n in range(number)]
    await asyncio.gather(*(sandbox.kill() for sandbox in made))
    return {"sandboxes": number, "right": right, "create_all_s": round(created, 2)}


async def cycles(endpoint: Endpoint, number: int) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one() -> None:
        async with gate:
            sandbox = await create(endpoint, "base")
            await sandbox.kill()

    await asyncio.gather(*(one() for _ in range(number)))


async def vanish(endpoint: Endpoint, number: int) -> None:
    """Clients that make a sandbox, start something in it and are gone; its lease of three seconds ends it."""
    for _ in range(number):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", _VANISHING, endpoint.api_url, KEY)
        await process.wait()
    await asyncio.sleep(4)


async def killed(home: Path, number: int) -> set[int]:
    """Servers that die by SIGKILL with sandboxes alive; the next one to start sweeps up after them. Their pids."""
    pids = set()
    for _ in range(number):
        server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _PROGRAM, str(home), KEY), stdout=asyncio.subprocess.PIPE
        )
        if server.stdout is None:
            raise RuntimeError("no output")
        endpoint = Endpoint(**json.loads(await server.stdout.readline()))
        sandbox = await create(endpoint, "base")
        await sandbox.commands.run("setsid sleep 600 & sleep 600", background=True, timeout=0)
        pids.add(server.pid)
        server.send_signal(signal.SIGKILL)
        await server.wait()
    async with running(Config(home, KEY)):
        await asyncio.sleep(1)
    return pids


def belongings(servers: set[int]) -> dict[str, int]:
    """What a sandbox could leave behind on this machine: of these servers, or of nobody."""
    ours = {str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}
    sockets = [
        line.split() for line in Path("/proc/net/unix").read_text().splitlines() if "@pullwright-sandbox-" in line
    ]
    claims = sum(f"socket:[{fields[6]}]" in ours for fields in sockets)
    made = [path.name.split("-")[1] for pattern in _GROUPS for path in Path("/sys/fs/cgroup").glob(pattern)]
    groups = sum(int(pid) in servers for pid in made)
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": _children(),
        "processes": _strays(),
        "uids": claims,
        "groups": groups,
        "mounts": len(Path("/proc/self/mounts").read_text().splitlines()),
        "files": sum(1 for _ in Path("/tmp").glob("pullwright-*")),
    }


def _strays() -> int:
    """Processes of sandbox users that are ours or have lost their server; those of other servers here are not counted."""
    table = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit():
                told = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                # Not the folder's owner: that is root for what may not be looked into. The dead wait for init, not for us.
                if not told["State"].strip().startswith("Z"):
                    table[int(folder.name)] = (int(told["Uid"].split()[0]), int(told["PPid"]))
        except OSError:
            continue
    strays = 0
    for uid, parent in table.values():
        if 61_200 <= uid < 63_200:
            top = parent
            while top in table and 61_200 <= table[top][0] < 63_200:
                top = table[top][1]
            strays += top in {1, os.getpid()}
    return strays


def _children() -> int:
    return sum(len(path.read_text().split()) for path in Path("/proc/self/task").glob("*/children"))


async def measure(given: argparse.Namespace) -> dict[str, object]:
    with TemporaryDirectory(prefix="bench-sandbox-") as directory:
        home = Path(directory)
        async with running(
            Config(home, KEY)
        ) as endpoint:  # whatever a first use opens for good is open before the count
            await cycles(endpoint, 2)
        before = belongings({os.getpid()})
        async with running(Config(home, KEY)) as endpoint:
            costly = await costs(endpoint, given.rounds)
            together = await many(endpoint, given.many)
            started = time.perf_counter()
            await cycles(endpoint, given.cycles)
            seconds = time.perf_counter() - started
            await vanish(endpoint, given.vanish)
            servers = await killed(home, given.kill)
        after = belongings({os.getpid(), *servers})
    left = {name: max(0, after[name] - before[name]) for name in after}
    return {
        "bench": "sandbox",
        "user": os.geteuid(),
        **costly,
        "many": together,
        "cycles": {
            "number": given.cycles,
            "vanished": given.vanish,
            "killed": given.kill,
            "seconds": round(seconds, 1),
        },
        "left": left,
        "shortfall": endpoint.shortfall,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rounds", 100), ("many", 50), ("cycles", 500), ("vanish", 5), ("kill", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(asyncio.run(measure(parser.parse_args()))))


if __name__ == "__main__":
    main()
