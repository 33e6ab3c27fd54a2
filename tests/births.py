"""Two ways in which a process of the product comes to life for a story: by its command, and as a fork of one that has imported it.

Importing the product and its vendors' clients costs more processor time than most stories; a fork runs the same `main` with an
environment, a folder and descriptors of its own. Stories about the process itself start it by its command.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a fork imports this module: it needs no stand-in
    from bot.emulators.github import Endpoint

ROOT = Path(__file__).parents[1]
_SECONDS = 60
_forks = multiprocessing.get_context("forkserver")
gc.set_threshold(50_000)  # first of all in the process that imports for the forks, as `pullwright` sets it
_forks.set_forkserver_preload(
    [
        "tests.births",
        "bot.commands.serve",
        "bot.providers.llm.anthropic",
        "bot.sandboxd.app",
        "dbos._sys_db_sqlite",
        "numpy.ma",
    ]
)


def surroundings(home: Path, hub: Endpoint) -> dict[str, str]:
    """The environment of a product on this stand-in of GitHub, with its data in `home`, and the App's key as a file there."""
    key = home / "app.pem"
    key.touch(mode=0o600)
    key.write_text(hub.private_key_pem, "ascii")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PULLWRIGHT_HOME": str(home / "data"),
        "PULLWRIGHT_APP_ID": str(hub.app_id),
        "PULLWRIGHT_PRIVATE_KEY_FILE": str(key),
        "PULLWRIGHT_WEBHOOK_SECRET": hub.webhook_secret,
        "PULLWRIGHT_GITHUB_API_URL": hub.url,
        "PULLWRIGHT_PORT": "0",
    }


class Child(Protocol):
    """A process that was started, as asyncio has them; `returncode` is -N for signal N and None while it lives."""

    @property
    def returncode(self) -> int | None: ...
    def send_signal(self, signal: int, /) -> None: ...
    async def wait(self) -> int: ...


Birth = Callable[[str, Mapping[str, str], Path], Awaitable[Child]]
"""From a command's name, its whole environment and its folder, where standard output goes to NAME.out and errors to NAME.log."""


async def by_command(name: str, environment: Mapping[str, str], folder: Path) -> Child:
    """`pullwright NAME`, as its users start it."""
    with (folder / f"{name}.out").open("wb") as output, (folder / f"{name}.log").open("ab") as errors:
        return await asyncio.create_subprocess_exec(
            ROOT / ".venv" / "bin" / "pullwright", name, env=environment, stdout=output, stderr=errors, cwd=folder
        )


async def forked(name: str, environment: Mapping[str, str], folder: Path) -> Child:
    """The same from its `main` on."""
    (folder / f"{name}.out").write_bytes(b"")
    process = _forks.Process(target=_live, args=(name, dict(environment), folder), daemon=True)
    await asyncio.to_thread(process.start)  # the first one waits for the imports
    return _Forked(process)


async def first_line(child: Child, name: str, folder: Path) -> str:
    """What the process says when it is ready; "" when it ended instead. Raises TimeoutError."""
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        line, end, _ = (folder / f"{name}.out").read_text("utf-8").partition("\n")
        if end:
            return line
        if child.returncode is not None:
            return ""
        await asyncio.sleep(0.02)
    raise TimeoutError(f"pullwright {name} said nothing for {_SECONDS} seconds")


class _Forked:
    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, signal: int, /) -> None:
        if self.returncode is None:
            assert self._process.pid is not None
            os.kill(self._process.pid, signal)

    async def wait(self) -> int:
        await asyncio.to_thread(wait, [self._process.sentinel])  # join() would read the exit code, which only one may
        code = self.returncode
        assert code is not None
        return code


def _live(name: str, environment: dict[str, str], folder: Path) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in ((1, f"{name}.out"), (2, f"{name}.log")):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["pullwright", name]
    from bot.cli import main

    main()
