"""One history: verbs of people and misfortune, the product's answers, and what must hold after each of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.domain.action import TellTask
from bot.domain.ids import DeliveryId
from bot.domain.repository import LandingMode
from bot.domain.task import Ending, Stage
from bot.policy.engine import Policies
from bot.providers.store.port import Delivery as Stored
from bot.stages.intake.decide import IntakeSettings
from bot.stages.intake.run import decide_delivery
from bot.workflow import records, task
from tests.histories.people import People
from tests.histories.stage import HistoryConductor, HistoryStage, Mutant, staged

_WELL = frozenset({Stage.LANDED, Stage.CANCELLED, Stage.NEEDS_HUMAN})


class Violation(AssertionError):  # noqa: N818 - what the model check looks for
    """Something happened that must never happen, or did not happen that must."""


@dataclass(frozen=True, slots=True)
class Race:
    """Something that happens just before the product calls `method`."""

    method: str
    act: Callable[[], Awaitable[object]]
    name: str = "scripted"


class History(People):
    """What people do, what the product does about it, and what has to hold: `check` runs after each verb."""

    def __init__(self, stage: HistoryStage, mode: LandingMode) -> None:
        super().__init__(stage)
        self.mode = mode
        self.conductor = HistoryConductor(stage, mode)
        self.races: list[Race] = []
        self._alarm = ""
        self._made_ready = False
        self._fault = ""
        self._loop: asyncio.Task[Ending] | None = None
        stage.before, stage.after = self._before, self._after

    # the product

    async def begin(self) -> None:
        await self.ask("rosa", "POST", f"{self.here}/issues", {"title": "A shop that sells"})
        self._loop = asyncio.get_running_loop().create_task(task.run(self.conductor))
        await self._rest()
        self.collect()

    @property
    def alive(self) -> bool:
        return self._loop is not None and not self._loop.done()

    @property
    def ending(self) -> Ending | None:
        return self._loop.result() if self._loop is not None and self._loop.done() else None

    async def close(self) -> None:
        if self._loop is not None and not self._loop.done():
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _rest(self) -> None:
        """Until the product waits for the next message, or is done."""
        assert self._loop is not None
        idle = asyncio.ensure_future(self.conductor.idle.wait())
        await asyncio.wait({idle, self._loop}, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        if self._loop.done():
            self.stage.books.ending = self._loop.result()

    async def _before(self, name: str, _args: tuple[Any, ...], _result: Any) -> None:
        if name == "pull":
            self.window.clear()
        race = next((race for race in self.races if race.method == name), None)
        if race is not None:
            self.races.remove(race)
            self.counts["races"] += 1
            self.counts[f"race_{race.name}_before_{name}"] += 1
            self.story.append(f"  (just before {name}:)")
            await race.act()

    async def _after(self, name: str, _args: tuple[Any, ...], result: Any) -> None:
        if name == "merge":
            self._on_merge(str(result))
        elif name == "mark_ready":
            self._made_ready = True

    def _check_ready(self) -> None:
        """What the product made ready and left so was approved when it last looked."""
        if self._made_ready and not self.pull.draft and self.issue.state == "open" and not self.window:
            against = self.oracle.objection(self.oracle.current(self.pull), self.pull)
            if against:
                self._fail(f"made ready and left so although {against}")
        self._made_ready = False

    def _on_merge(self, commit: str) -> None:
        """The moment after a merge by the product: was exactly this approved, by whom it takes?"""
        pull, git = self.pull, self.stage.git
        base = git.parents(commit)[0]
        digest = self.oracle.digest(pull.base_ref, base, pull.head_sha)
        against = self.oracle.objection(digest, pull)
        self.counts["landed"] += 1
        if "retarget" in self.window:
            self._alarm = f"it landed on {pull.base_ref}"
        elif against and "rewind" in self.window:
            self._alarm = "the base was rewritten below it"
        elif against and not self.window & {"withdraw", "demote"}:
            self._fail(f"landed although {against}")
        elif against:
            self.counts["withdrawn_in_the_window"] += 1
        if not self.stage.passes(git.tree_of(commit)):
            self._alarm = self._alarm or "a tree landed that fails the tests"
            if "base" not in self.window:
                self._fail("landed a tree that fails the tests")

    def _fail(self, what: str) -> None:
        self._fault = self._fault or what

    def check(self) -> None:
        """What must hold now."""
        if self._fault:
            raise Violation(f"{self._fault}\n" + "\n".join(self.story))
        landed = self.conductor.landed[-1] if self.conductor.landed else None
        if self._alarm and (landed is None or not landed.alarm):
            raise Violation(f"no alarm although {self._alarm}\n" + "\n".join(self.story))
        ending = self.ending
        if ending is not None and ending.stage not in _WELL:
            raise Violation(f"the task died: {ending.stage.value}: {ending.reason}\n" + "\n".join(self.story))
        if ending is not None and ending.stage is Stage.LANDED:
            self._check_landed()

    def _check_landed(self) -> None:
        """It says that the approved change landed; somebody else may have pressed the button."""
        pull, git = self.pull, self.stage.git
        if pull.merged_by is self.stage.world.app.bot:
            return
        if not self.conductor.landed or self.conductor.landed[-1].merged is None:
            named = re.match(
                r"It was merged on GitHub(?: by ([\w-]+))? before the gate opened",
                self.ending.reason if self.ending else "",
            )
            if named is None or named[1] not in {None, pull.merged_by.login if pull.merged_by else ""}:
                raise Violation(f"it does not say who merged it: {self.ending}\n" + "\n".join(self.story))
            return
        approval = self.stage.books.approvals[-1]
        merge = pull.merge_commit_sha or ""
        digest = self.oracle.digest(pull.base_ref, git.parents(merge)[0], pull.head_sha)
        if digest != approval.digest:
            raise Violation(f"{digest[:12]} was merged and passed for approved\n" + "\n".join(self.story))

    # deliveries

    async def deliver(self, position: int = 0, *, keep: bool = False) -> None:
        """Bring one of the waiting deliveries to the product; with `keep` it will come once more, under another id."""
        if not self.pending or not self.alive:
            return
        place = position % len(self.pending)
        one = self.pending[place]
        if not keep:
            self.pending.remove(one)
        self.counts["deliveries"] += 1
        self.counts["deliveries_doubled"] += keep
        self.counts["deliveries_reordered"] += place > 0
        self.story.append(f"> {one.event}.{one.action} {'(to come again)' if keep else ''}")
        stored = Stored(DeliveryId(one.guid), one.event, one.body, "2026-11-29T00:00:00Z")
        books: Any = self.stage.books
        action = await decide_delivery(stored, forges=self.stage.forges, tasks=books, settings=IntakeSettings())
        if isinstance(action, TellTask):
            self.conductor.idle.clear()
            self.conductor.inbox.put_nowait(records.Envelope(action.message, stored.id, stored.received_at))
            await self._rest()
            self._check_ready()
        await self.stage.world.settle()
        self.collect()

    def lose(self, position: int) -> None:
        if self.pending:
            gone = self.pending.pop(position % len(self.pending))
            self.counts["deliveries_lost"] += 1
            self.story.append(f"x {gone.event}.{gone.action} is lost")

    async def deliver_all(self) -> None:
        for _ in range(200):
            if not self.pending or not self.alive:
                return
            await self.deliver()
        raise Violation("deliveries never end\n" + "\n".join(self.story))


Playing = AbstractAsyncContextManager[History]


@asynccontextmanager
async def playing(
    root: Path,
    mode: LandingMode = LandingMode.READY,
    *,
    mutant: Mutant | None = None,
    policies: Policies | None = None,
    files: Mapping[str, str] = MappingProxyType({}),
    before: Callable[[History], None] = lambda _: None,
) -> AsyncIterator[History]:
    """A history whose task has its draft and has heard everything so far; `before` runs before the task begins."""
    async with staged(root, mutant or Mutant(), policies, files=files) as stage:
        history = History(stage, mode)
        before(history)
        try:
            await history.begin()
            await history.deliver_all()
            yield history
        finally:
            await history.close()
