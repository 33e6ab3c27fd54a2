"""The time the bot adds to a task beyond the model and the commands, by stage. Prints one JSON object last.

`pullwright serve` works the task in a process of its own; GitHub, the model and the sandbox server run in the benchmark's process and
answer at once. A task lasts from the moment its label is put on until GitHub's stand-in has received the comment that says that it
waits for a review. From that are taken away the moments in which (a) a request was at the model stand-in, from its arrival to the end of
its answer, or (b) a command of the task was at the sandbox server: the tests, the security scan, the set-up, what the coder runs.
Moments that overlap count once. All else is the bot's: GitHub, git, indexing, copying files, the client libraries, the queues, the
journal; `github` and `sandbox_server` say how much of it was spent in other requests to those. `processor` is what the product's process
and its gits used. Stages are the journal's acts by the first part of their names, from the product's log; `between` is what no act covers.
A target in seconds means a machine that has nothing else to do: `load` says whether it had, and `queued` for how long threads of the
product and of the stand-ins were ready and got no processor (of commands and gits it is not known).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.timing import Door, acts, added, covered, within
from bot.demo import script
from bot.demo.brain import DemoBrain
from bot.demo.people import Person
from bot.emulators import loopback
from bot.emulators.anthropic.app import build as build_messages
from bot.emulators.anthropic.brain import Brain
from bot.emulators.anthropic.state import Config as MessagesConfig
from bot.emulators.anthropic.state import State
from bot.emulators.github import server as github
from bot.emulators.github.config import Config as GithubConfig
from bot.emulators.github.config import LabelSeed, RepositorySeed, Seed, UserSeed
from bot.sandboxd.serve import Config as SandboxConfig
from bot.sandboxd.serve import running as sandboxes
from tests.births import by_command, first_line, surroundings
from tests.scenarios.brains import FILES, StepBrain

TARGET = 3.0
REPOSITORY, LABEL = "corner-shop/bookshop", "agent"
PATIENCE = 300.0
COMMANDS = (b"semgrep", b"/.pullwright/out/")
"""What marks a command of the task, beside its tests: the scan, and what the coder runs."""


@dataclass(frozen=True, slots=True)
class Case:
    """A repository, and a task that is worked on it as often as there are rounds."""

    contents: Mapping[str, str]
    brain: Callable[[], Brain]
    title: str
    test: bytes


@dataclass(frozen=True, slots=True)
class Scene:
    """The product running, and its surroundings."""

    home: Path
    pid: int
    person: Person
    model: Door
    commands: Door
    machines: Door
    hub: Door
    last_word: Door


@asynccontextmanager
async def scene(case: Case, home: Path) -> AsyncIterator[Scene]:
    """Everything started, nothing asked for yet."""
    state, key = State(MessagesConfig(brain=case.brain(), first_byte=0.0)), "e2b_" + "0" * 40
    model = Door(lambda path, _: path == "/v1/messages")

    def commanded(path: str, body: bytes) -> bool:
        return path.endswith("/Start") and any(mark in body for mark in (*COMMANDS, case.test))

    commands, machines = Door(commanded), Door(lambda path, body: not commanded(path, body))
    hub, last_word = Door(lambda *_: True), Door(lambda _, body: b"waits for a review" in body)
    repository = RepositorySeed(
        REPOSITORY, contents=case.contents, labels=(LabelSeed(LABEL, "5319e7", "For the agent"),)
    )
    seed = Seed(users=(UserSeed("rosa", "write"),), repositories=(repository,))
    async with AsyncExitStack() as stack:
        forge = await stack.enter_async_context(
            github.running(GithubConfig(seed=seed), lambda app: hub(last_word(app)))
        )
        messages = await stack.enter_async_context(
            loopback.serving(model(build_messages(state)), on_stop=state.closing.set)
        )
        sandbox = await stack.enter_async_context(
            sandboxes(SandboxConfig(home, key), around=lambda app: machines(commands(app)))
        )
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=30, trust_env=False))
        environment = {
            **surroundings(home, forge),
            "ANTHROPIC_API_KEY": state.config.api_key,
            "ANTHROPIC_BASE_URL": messages,
            "E2B_API_KEY": key,
            "E2B_API_URL": sandbox.api_url,
            "E2B_SANDBOX_URL": sandbox.sandbox_url,
        }
        process = await by_command("serve", environment, home)
        assert isinstance(process, asyncio.subprocess.Process)
        try:
            line = await first_line(process, "serve", home)
            if not line:
                raise SystemExit((home / "serve.log").read_text("utf-8", "replace")[-3000:])
            forge.world.app.webhook_url = f"{json.loads(line)['url']}/webhook"
            person = Person("rosa", forge.users["rosa"].token, client, forge.url, REPOSITORY)
            yield Scene(home, process.pid, person, model, commands, machines, hub, last_word)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()


def processor_seconds(pid: int) -> float:
    """What the product and the gits it waited for have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(one) for one in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def queued_seconds(pid: int) -> float:
    """How long threads of a process were ready and got no processor, so far: what a busy machine adds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[1]) for one in tasks) / 1e9


async def task(here: Scene, title: str) -> dict[str, Any]:
    """One task, from its label to the comment that it waits for a review."""
    number = await here.person.open_issue(title, "Please, with a test.")
    for door in (here.model, here.commands, here.machines, here.hub, here.last_word):
        door.intervals.clear()
    pids = (here.pid, os.getpid())
    spent, queued, first = processor_seconds(here.pid), sum(map(queued_seconds, pids)), time.time()
    await here.person.label(number, LABEL)
    while not here.last_word.intervals:
        if time.time() - first > PATIENCE:
            raise SystemExit((here.home / "serve.log").read_text("utf-8", "replace")[-5000:])
        await asyncio.sleep(0.05)
    last = here.last_word.intervals[0][1]
    spent, queued = processor_seconds(here.pid) - spent, sum(map(queued_seconds, pids)) - queued
    await asyncio.sleep(0.5)  # the log's last lines
    model, commands = within(here.model.intervals, first, last), within(here.commands.intervals, first, last)
    outside = [*model, *commands]
    by_stage = acts((here.home / "serve.log").read_text("utf-8"), first, last)
    everything = [one for own in by_stage.values() for one in own]
    return {
        "seconds": last - first,
        "model": covered(model),
        "commands": covered(commands),
        "added": last - first - covered(outside),
        "processor": spent,
        "queued": queued,
        "github": added(outside, within(here.hub.intervals, first, last)),
        "sandbox_server": added(outside, within(here.machines.intervals, first, last)),
        "stages": {
            **{stage: added(outside, own) for stage, own in by_stage.items()},
            "between": last - first - covered([*outside, *everything]),
        },
        "calls": len(model),
        "commands_run": len(commands),
    }


def filler(files: int) -> dict[str, str]:
    """Modules that have nothing to do with the task."""
    return {
        f"shop/part_{number % 40}/module_{number}.py": "".join(
            f"def function_{number}_{line}(value):\n    return value + {line}\n\n\n" for line in range(12)
        )
        for number in range(files)
    }


def demo_files() -> dict[str, str]:
    root = Path(script.__file__).parent / "repository"
    paths = (path for path in sorted(root.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths}


def cases(files: int) -> dict[str, Case]:
    """What is measured."""
    unittest = b"python -m unittest"
    return {
        "small": Case(FILES, StepBrain, "Add triple", unittest),
        f"{files} files": Case({**filler(files), **FILES}, StepBrain, "Add triple", unittest),
        "five steps": Case(demo_files(), DemoBrain, script.ISSUE_TITLE, b"pytest"),
    }


def summary(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Medians of several tasks."""

    def middle(of: Callable[[Mapping[str, Any]], float]) -> float:
        return round(statistics.median(of(one) for one in tasks), 2)

    names = list(dict.fromkeys(stage for one in tasks for stage in one["stages"]))
    plain = (
        "seconds",
        "model",
        "commands",
        "added",
        "processor",
        "queued",
        "github",
        "sandbox_server",
        "calls",
        "commands_run",
    )
    return {
        **{name: middle(lambda one, name=name: one[name]) for name in plain},  # type: ignore[misc]
        "stages": {name: middle(lambda one, name=name: one["stages"].get(name, 0.0)) for name in names},  # type: ignore[misc]
        "added_in_each": [round(one["added"], 2) for one in tasks],
    }


async def measure(files: int, rounds: int, only: str) -> dict[str, Any]:
    """Each round starts the product anew on no data and works two tasks: the first meets everything cold."""
    found: dict[str, Any] = {}
    for name, case in cases(files).items():
        if only not in name:
            continue
        first, next_ = [], []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="bench-overhead-") as directory:
                async with scene(case, Path(directory)) as here:
                    first.append(await task(here, case.title))
                    next_.append(await task(here, case.title))
        found[name] = {"first": summary(first), "next": summary(next_)}
    worst = max(one["added"] for tasks in found.values() for one in tasks.values())
    return {
        "bench": "overhead",
        "rounds": rounds,
        **found,
        "target_seconds": TARGET,
        "met": worst < TARGET,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.files, given.rounds, given.only))))


if __name__ == "__main__":
    main()
