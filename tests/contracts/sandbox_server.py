"""The sandbox server for the contract tests: in this process, or as a process of its own that may be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from e2b import AsyncSandbox

from bot.sandboxd.serve import Config, Endpoint, running

KEY = "key-of-the-test-server"

_PROGRAM = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from bot.sandboxd.serve import Config, serve_forever
config = Config(Path(sys.argv[1]), sys.argv[2])
asyncio.run(serve_forever(config, lambda endpoint: print(json.dumps(dataclasses.asdict(endpoint)), flush=True)))
"""


def connection(endpoint: Endpoint) -> dict[str, Any]:
    return {"api_url": endpoint.api_url, "sandbox_url": endpoint.sandbox_url, "api_key": endpoint.api_key}


@asynccontextmanager
async def sandbox_of(endpoint: Endpoint, template: str = "pullwright", **options: Any) -> AsyncIterator[AsyncSandbox]:
    sandbox = await AsyncSandbox.create(
        template, timeout=options.pop("timeout", 120), **options, **connection(endpoint)
    )
    try:
        yield sandbox
    finally:
        await sandbox.kill()


@asynccontextmanager
async def server_process(home: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Endpoint]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROGRAM, str(home), KEY),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "SERVER_SECRET": "only-the-server-knows"},
    )
    assert process.stdout is not None
    try:
        yield process, Endpoint(**json.loads(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.wait()
        process._transport.close()  # type: ignore[attr-defined]


def descendants(pid: int) -> list[int]:
    """Every live process under `pid`, as this machine sees them."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found = [pid]
    for parent in found:
        found += [child for child, its in parents.items() if its == parent]
    return found[1:]


def _alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def environment_of(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")


async def eventually(check: Callable[[], Awaitable[bool]], *, seconds: float = 30) -> None:
    """Wait until `check` holds; a loaded machine makes a test slow, not red."""
    async with asyncio.timeout(seconds):
        while not await check():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.05)


async def negated(value: Awaitable[object]) -> bool:
    return not await value


async def output(sandbox: AsyncSandbox, command: str) -> str:
    return (await sandbox.commands.run(command)).stdout


async def longer(sandbox: AsyncSandbox, path: str, than: int) -> bool:
    return len(await sandbox.files.read(path)) > than


async def at_least(pid: int, number: int) -> bool:
    return len(descendants(pid)) >= number


async def all_dead(pids: list[int]) -> bool:
    return not any(_alive(pid) for pid in pids)


def fixtures() -> tuple[Any, Any]:
    """One server for a test module, and a fresh sandbox for each test: bind to `endpoint` and `sandbox`."""

    @pytest_asyncio.fixture(scope="module", loop_scope="module", name="endpoint")
    async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Endpoint]:
        async with running(Config(tmp_path_factory.mktemp("home"), KEY)) as endpoint:
            yield endpoint

    @pytest_asyncio.fixture(loop_scope="module", name="sandbox")
    async def fresh(endpoint: Endpoint) -> AsyncIterator[AsyncSandbox]:
        async with sandbox_of(endpoint) as sandbox:
            yield sandbox

    return served, fresh
