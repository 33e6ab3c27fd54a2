"""`kill -9` at chosen requests: the product dies when it asks, or when all is done and only the answer is missing."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.emulators.anthropic.brain import Brain, BrainAnswer, BrainRequest
from tests.world import World

_CHANGING = (
    (re.compile(r"/[0-9a-f]{40}(?=/|$)"), "/{sha}"),
    (re.compile(r"/\d+(?=/|$)"), "/{number}"),
    (re.compile(r"/agent/[^/]+"), "/agent/{branch}"),
)


class When(StrEnum):
    """Which half of a request is lost."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Point:
    """One request of the product, by what it asks for and how often it was asked for before."""

    request: str
    occurrence: int = 0

    def __str__(self) -> str:
        return self.request if not self.occurrence else f"{self.request} #{self.occurrence + 1}"


def named(method: str, path: str) -> str:
    """`PATCH /repos/{name}/issues/comments/{number}`: the request without what differs from run to run."""
    for pattern, instead in _CHANGING:
        path = pattern.sub(instead, path)
    return f"{method} {re.sub(r'^/repos/[^/]+/[^/]+', '/repos/{name}', path)}"


@dataclass
class Lightning:
    """Around the stand-in of GitHub and the scripted model. `wanted` says whether a request is struck; none is struck twice."""

    when: When
    wanted: Callable[[Point], bool]
    strike: Callable[[], None] = lambda: None
    seen: Counter[str] = field(default_factory=Counter)
    struck: list[Point] = field(default_factory=list)

    def around(self, app: ASGIApp) -> ASGIApp:
        """GitHub's stand-in; only what the product itself asks for counts."""

        async def listening(scope: Scope, receive: Receive, send: Send) -> None:
            headers = dict(scope.get("headers", ()))
            if scope["type"] != "http" or headers.get(b"user-agent") != b"pullwright":
                await app(scope, receive, send)
                return
            if not self._falls_on(named(scope["method"], scope["path"])):
                await app(scope, receive, send)
                return
            if self.when is When.AFTER:
                await app(scope, receive, _nowhere)
            self.strike()
            await asyncio.sleep(0.3)  # nobody is there to be answered

        return listening

    def thinking(self, brain: Brain) -> Brain:
        """The model: the request has arrived and is paid for, its answer is lost."""
        return _Struck(self, brain)

    def _falls_on(self, request: str) -> bool:
        point = Point(request, self.seen[request])
        self.seen[request] += 1
        if point in self.struck or not self.wanted(point):
            return False
        self.struck.append(point)
        return True


@dataclass
class _Struck:
    lightning: Lightning
    brain: Brain

    def answer(self, request: BrainRequest) -> BrainAnswer:
        answer = self.brain.answer(request)
        if self.lightning._falls_on("POST /v1/messages"):
            self.lightning.strike()
        return answer


async def _nowhere(message: Message) -> None:
    """Where the answer goes."""


async def kept_up(world: World) -> None:
    """Start the product again whenever it was killed, as a service manager does."""
    while True:
        assert world.process is not None
        if await world.process.wait() != -9:
            return
        await world.start()
