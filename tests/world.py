"""The tester with verbs: the whole product against strict stand-ins, over HTTP, with people acting through GitHub's API.

The product runs as its users run it: `pullwright serve` in a process of its own, configured by the environment, so that it can be
killed at any moment and started again on the same data (tests/births.py has the two ways to start it).
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
from starlette.types import ASGIApp

from bot.demo.people import Person, Refused
from bot.emulators.anthropic import server as anthropic
from bot.emulators.anthropic.brain import Brain
from bot.emulators.anthropic.state import Config as AnthropicConfig
from bot.emulators.github import server as github
from bot.emulators.github.config import Config as GithubConfig
from bot.emulators.github.config import LabelSeed, RepositorySeed, Seed, UserSeed
from tests.births import Birth, Child, first_line, forked, surroundings
from tests.contracts.recording import Recorder

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
REPOSITORY = "corner-shop/bookshop"
LABEL = "agent"
DEMO_REPOSITORY = ROOT / "bot" / "demo" / "repository"
PATIENCE = 120.0

USERS = (
    UserSeed("rosa", "write"),
    UserSeed("robin", "write"),
    UserSeed("carl", "write"),
    UserSeed("tess", "triage"),
    UserSeed("rudi", "read"),
    UserSeed("nobody", "none"),
)


class NeverHappenedError(AssertionError):
    """What a test waited for did not come; carries what the product said last."""


@dataclass
class World:
    """One repository, its people, the stand-ins and the product."""

    hub: github.Endpoint
    model: anthropic.Endpoint
    home: Path
    client: httpx.AsyncClient
    environment: dict[str, str]
    repository: str
    birth: Birth
    process: Child | None = None
    url: str = ""
    people: dict[str, Person] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Person:
        people = self.__dict__.get("people", {})
        if name in people:
            person: Person = people[name]
            return person
        raise AttributeError(name)

    def at(self, repository: str) -> World:
        """The same product and people, at another of the repositories."""
        people = {
            login: Person(login, person.token, self.client, self.hub.url, repository)
            for login, person in self.people.items()
        }
        return replace(self, repository=repository, people=people)

    # the product's process

    async def start(self) -> None:
        """Start `pullwright serve` and point the App's webhook at it."""
        self.process, line = await self.command("serve")
        if not line:
            raise NeverHappenedError(f"the product did not start:\n{self.log()}")
        self.url = json.loads(line)["url"]
        self.environment["PULLWRIGHT_PORT"] = self.url.rpartition(":")[2]
        self.hub.world.app.webhook_url = f"{self.url}/webhook"

    async def command(self, name: str) -> tuple[Child, str]:
        """One of the product's processes, with the world's environment, and the line by which it says that it is ready."""
        child = await self.birth(name, self.environment, self.home)
        try:
            return child, await first_line(child, name, self.home)
        except TimeoutError:
            child.send_signal(signal.SIGKILL)
            raise

    async def kill(self) -> None:
        """`kill -9`."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> None:
        """End it as an operator would; it has to end well."""
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), 20)
        except TimeoutError:
            await self.kill()
            raise NeverHappenedError(f"the product did not end:\n{self.log()}") from None
        if self.process.returncode != 0:
            raise NeverHappenedError(f"the product ended with {self.process.returncode}:\n{self.log()}")

    def log(self) -> str:
        """The end of the product's log."""
        path = self.home / "serve.log"
        return path.read_text("utf-8", "replace")[-6000:] if path.exists() else ""

    # waiting

    async def until(self, what: str, probe: Callable[[], Awaitable[T | None]], patience: float = PATIENCE) -> T:
        """Poll until the probe gives something, ever less often: each look costs the processor that the product needs."""
        begun = time.monotonic()
        while (waited := time.monotonic() - begun) < patience:
            found = await probe()
            if found is not None:
                return found
            if self.process is not None and self.process.returncode not in {None, -9}:
                raise NeverHappenedError(f"the product ended while waiting for {what}:\n{self.log()}")
            await asyncio.sleep(min(1.0, 0.15 + waited / 20))
        raise NeverHappenedError(f"{what} never happened\n{await self.said()}\n{self.log()}")

    async def said(self) -> str:
        """Every comment there is, for a failing test's message."""
        lines = []
        for number in range(1, 5):
            try:
                comments = await self.rosa.comments(number)
                lines += [f"#{number} {comment['user']['login']}: {comment['body']}" for comment in comments]
            except (Refused, httpx.HTTPError) as error:
                lines.append(f"#{number}: {error}")
                break
        return "\n".join(lines)

    # verbs

    async def ask(self, title: str, body: str = "", *, by: str = "rosa") -> int:
        """Open an issue and label it."""
        number = await self.people[by].open_issue(title, body)
        await self.people[by].label(number, LABEL)
        return number

    async def sticky(self, number: int) -> str:
        """The product's sticky comment on an issue, or ""."""
        for comment in await self.rosa.comments(number):
            if comment["user"]["login"].endswith("[bot]") and "pullwright:task:" in comment["body"]:
                return str(comment["body"])
        return ""

    async def says(self, number: int, text: str, patience: float = PATIENCE) -> str:
        """Wait until the sticky comment contains this text."""

        async def probe() -> str | None:
            body = await self.sticky(number)
            return body if text in body else None

        return await self.until(f"sticky comment with {text!r}", probe, patience)

    async def draft(self, patience: float = PATIENCE) -> dict[str, Any]:
        """Wait for the draft pull request to be open for review."""

        async def probe() -> dict[str, Any] | None:
            pulls = await self.rosa.pulls()
            if not pulls:
                return None
            pull = await self.rosa.pull(pulls[0]["number"])
            checks = await self.rosa.checks(pull["head"]["sha"])
            return pull if any(check["name"] == "pullwright/gate" for check in checks) else None

        return await self.until("the draft pull request", probe, patience)

    async def drafted(self, title: str = "Add triple") -> tuple[int, int]:
        """An issue worked to its draft pull request; both numbers."""
        issue = await self.ask(title, "Please add calc.triple with a test.")
        return issue, (await self.draft())["number"]

    async def pull_when(
        self, number: int, what: str, holds: Callable[[dict[str, Any]], bool], patience: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait for a state of the pull request."""

        async def probe() -> dict[str, Any] | None:
            pull = await self.rosa.pull(number)
            return pull if holds(pull) else None

        return await self.until(what, probe, patience)

    async def gate_says(self, number: int, text: str) -> str:
        """Wait until the gate's comment on the pull request contains this text."""

        async def probe() -> str | None:
            for comment in await self.rosa.comments(number):
                if "pullwright:gate:" in comment["body"] and text in comment["body"]:
                    return str(comment["body"])
            return None

        return await self.until(f"gate comment with {text!r}", probe)

    async def check(self, commit: str) -> dict[str, Any]:
        """The product's check run on a commit."""
        return next(check for check in await self.rosa.checks(commit) if check["name"] == "pullwright/gate")

    async def quiet(self, seconds: float = 2) -> None:
        """Let everything that is on its way arrive; for tests that say that something does not happen."""
        await self.hub.settle()
        await asyncio.sleep(seconds)

    async def webhook(self, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Send something to the product's webhook by hand."""
        return await self.client.post(f"{self.url}/webhook", content=body, headers=dict(headers))


def digest_in(pull: Mapping[str, Any]) -> str:
    """The change digest that the pull request's body shows."""
    line = next(line for line in pull["body"].splitlines() if line.startswith("| change digest |"))
    return str(line.split("`")[1])


@asynccontextmanager
async def world(
    brain: Brain,
    home: Path,
    *,
    files: Path = DEMO_REPOSITORY,
    contents: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    started: bool = True,
    more: Mapping[str, Mapping[str, str]] | None = None,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    birth: Birth = forked,
) -> AsyncIterator[World]:
    """The stand-ins up, the product started. `files` is the repository's content; `settings` more environment for the product.

    `more` are further repositories by full name (`World.at`); `around` may put a listener around GitHub's stand-in. At the end, all
    that the product asked of GitHub and was answered has to fit GitHub's own description.
    """
    recorder = Recorder()
    label = LabelSeed(LABEL, "5319e7", "Hand this to the agent")
    first = RepositorySeed(
        REPOSITORY, files=str(files) if contents is None else None, contents=contents or {}, labels=(label,)
    )
    others = [RepositorySeed(name, contents=content, labels=(label,)) for name, content in (more or {}).items()]
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(
            github.running(
                GithubConfig(seed=Seed(users=USERS, repositories=(first, *others))), lambda app: recorder(around(app))
            )
        )
        model = await stack.enter_async_context(anthropic.running(AnthropicConfig(brain=brain)))
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=30, trust_env=False))
        environment = {
            **surroundings(home, hub),
            "PULLWRIGHT_EXECUTOR_ID": "world",
            "PULLWRIGHT_POLLING_SECONDS": "1",
            "ANTHROPIC_API_KEY": model.api_key,
            "ANTHROPIC_BASE_URL": model.url,
            "PYTHONWARNINGS": "ignore",
            **(settings or {}),
        }
        made = World(hub, model, home, client, environment, REPOSITORY, birth)
        made.people = {
            login: Person(login, user.token, client, hub.url, REPOSITORY) for login, user in hub.users.items()
        }
        stack.push_async_callback(made.stop)
        if started:
            await made.start()
        yield made
    assert not recorder.faults, "\n".join(recorder.faults)
