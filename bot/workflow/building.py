"""The first half of every task, on GitHub and on a local clone alike: baseline, plan, steps, the full check.

Deterministic like `task.py`: no clock, no random, no I/O but through segments and steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from bot.domain.egress import Attempt, counted
from bot.domain.ids import StepId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan, Step
from bot.domain.task import Ending, Stage
from bot.stages.planning.texts import plan_hash, render_plan
from bot.workflow import messages, texts
from bot.workflow.journal import TaskEnded
from bot.workflow.records import Coded, CodeOrder, Envelope, Prepared, Verified, VerifyOrder

REPAIRS = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """What people are shown of the work."""

    plan: Plan | None = None
    done: tuple[StepId, ...] = ()
    working: StepId | None = None
    pull_number: int | None = None
    note: str = ""
    allowed: MicroUsd | None = None
    """What the task may have spent by now, when that is more than its budget: rounds of review have their own."""
    egress: tuple[Attempt, ...] = ()
    """What its sandboxes asked the way out for."""


class Builder(Protocol):
    """What making a change asks for. Each call is durable where tasks are (`engine.py`)."""

    async def prepare(self) -> Prepared: ...
    async def plan(self, prepared: Prepared) -> Plan: ...
    async def code(self, order: CodeOrder) -> Coded: ...
    async def verify(self, key: str, order: VerifyOrder) -> Verified: ...
    async def tell(self, stage: Stage, progress: Progress) -> None:
        """Record the stage and show it."""
        ...

    async def receive(self) -> Envelope | None:
        """The next message, or None when nobody wrote for 30 days."""
        ...


@dataclass(frozen=True, slots=True)
class Built:
    """A change that passed the full check, with the plan it follows."""

    prepared: Prepared
    plan: Plan
    verified: Verified


@dataclass
class Building:
    """Makes one change. Raises TaskEnded wherever a person has to know about an end."""

    builder: Builder
    progress: Progress = field(default_factory=Progress)
    counter: int = 0

    async def build(self) -> Built:
        """The whole change, checked."""
        await self.tell(Stage.PREPARING)
        prepared = await self.builder.prepare()
        self._asked(prepared.egress)
        await self.tell(Stage.PLANNING, prepared.notice)
        plan = await self.builder.plan(prepared)
        self.progress = replace(self.progress, plan=plan)
        if prepared.settings.plan_gate and (ending := await self._plan_approved(plan)) is not None:
            raise TaskEnded(ending)
        tree = prepared.tree
        for step in plan.steps:
            tree = await self._step(prepared, plan, step, tree)
        return Built(prepared, plan, await self.checked(prepared, plan, tree))

    async def tell(self, stage: Stage, note: str = "") -> None:
        self.progress = replace(self.progress, note=note)
        await self.builder.tell(stage, self.progress)

    async def work(self, prepared: Prepared, plan: Plan, step: Step, tree: TreeId) -> TreeId:
        """One step, from `tree`; the tree it leaves."""
        key = f"step:{step.id}"
        order = CodeOrder(key, prepared, plan, step, tree, self.progress.done, self.progress.allowed)
        coded = await self.builder.code(order)
        self._asked(coded.egress)
        return coded.tree

    async def checked(self, prepared: Prepared, plan: Plan, tree: TreeId) -> Verified:
        """The full check; what it finds goes back to the coder, at most twice."""
        for repair in range(REPAIRS + 1):
            self.counter += 1
            await self.tell(Stage.VERIFYING)
            verified = await self.builder.verify(f"verify:{self.counter}", VerifyOrder(prepared, tree))
            self._asked(verified.egress)
            if not verified.failures:
                return replace(verified, egress=self.progress.egress)
            if repair < REPAIRS:
                await self.tell(Stage.CODING, "Repairing what the full check found.")
                tree = await self.work(prepared, plan, _repair(self.counter, verified), tree)
        raise TaskEnded(texts.still_failing(tuple(failure.subject for failure in verified.failures)))

    def _asked(self, egress: tuple[Attempt, ...]) -> None:
        self.progress = replace(self.progress, egress=counted(self.progress.egress, egress))

    async def _step(self, prepared: Prepared, plan: Plan, step: Step, tree: TreeId) -> TreeId:
        self.progress = replace(self.progress, working=step.id)
        await self.tell(Stage.CODING)
        left = await self.work(prepared, plan, step, tree)
        self.progress = replace(self.progress, done=(*self.progress.done, step.id), working=None)
        return left

    async def _plan_approved(self, plan: Plan) -> Ending | None:
        """The plan is shown and nothing more is spent before somebody types its hash; or the ending meanwhile."""
        digest = plan_hash(plan)
        note = texts.plan_waits(digest, render_plan(plan))
        while True:
            await self.tell(Stage.AWAITING_PLAN_APPROVAL, note)
            envelope = await self.builder.receive()
            ending = texts.plan_stale() if envelope is None else messages.plain_ending(envelope)
            if envelope is None or ending is not None:
                return ending
            typed = messages.typed_hash(envelope)
            if typed is not None and digest.startswith(typed):
                return None
            note = texts.plan_waits(digest, render_plan(plan), other=typed or "")


def _repair(number: int, verified: Verified) -> Step:
    listed = "\n".join(f"- {f.kind.value}: {f.subject}\n{f.detail[:600]}" for f in verified.failures[:6])
    goal = f"The whole change was checked in a fresh sandbox and these checks failed:\n{listed}\nFix the cause."
    return Step(StepId(f"repair-{number}"), "Make the full check pass", goal, (), (), ())
