"""The pipeline on one page. It orders segments and reacts to messages; every rule is in a stage.

Deterministic: no clock, no random, no I/O but through segments and steps; one sequential coroutine (specs/durable.md §4).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from bot.domain.ids import StepId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan, Step
from bot.domain.task import Ending, Stage, TaskSpec
from bot.stages.planning.texts import plan_hash, render_plan
from bot.workflow import messages, texts
from bot.workflow.journal import TaskEnded
from bot.workflow.records import (
    Adopted,
    AdoptOrder,
    Coded,
    CodeOrder,
    Envelope,
    Examined,
    ExamineOrder,
    Landed,
    LandOrder,
    Prepared,
    Published,
    PublishOrder,
    ReviewState,
    Verified,
    VerifyOrder,
)

REPAIRS = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """What the sticky comment shows of the work."""

    plan: Plan | None = None
    done: tuple[StepId, ...] = ()
    working: StepId | None = None
    pull_number: int | None = None
    note: str = ""
    allowed: MicroUsd | None = None
    """What the task may have spent by now, when that is more than its budget: rounds of review have their own."""


class Conductor(Protocol):
    """What the pipeline can ask for. Each call is durable; implemented on DBOS in `engine.py`."""

    async def prepare(self) -> Prepared: ...
    async def plan(self, prepared: Prepared) -> Plan: ...
    async def code(self, order: CodeOrder) -> Coded: ...
    async def verify(self, key: str, order: VerifyOrder) -> Verified: ...
    async def publish(self, key: str, order: PublishOrder) -> Published: ...
    async def examine(self, key: str, order: ExamineOrder) -> Examined: ...
    async def adopt(self, key: str, order: AdoptOrder) -> Adopted: ...
    async def land(self, key: str, order: LandOrder) -> Landed: ...
    async def tell(self, stage: Stage, progress: Progress) -> None:
        """Record the stage and bring the sticky comment up to date."""
        ...

    async def report_gate(self, key: str, state: ReviewState, examined: Examined, note: str) -> None:
        """Check run, draft state and comment on the pull request, from the decision."""
        ...

    async def receive(self) -> Envelope | None:
        """The next message, or None when nobody wrote for 30 days."""
        ...


async def run(spec: TaskSpec, conductor: Conductor) -> Ending:
    """Carry the task through its life; the ending is for the caller to write down."""
    try:
        return await _Pipeline(spec, conductor).run()
    except TaskEnded as end:
        return end.ending


@dataclass
class _Pipeline:
    spec: TaskSpec
    conductor: Conductor
    progress: Progress = field(default_factory=Progress)
    counter: int = 0
    heard: tuple[str, ...] = ()
    """Requests for work that were worked in; a twin of a delivery asks for nothing new."""

    async def run(self) -> Ending:
        await self.tell(Stage.PREPARING)
        prepared = await self.conductor.prepare()
        await self.tell(Stage.PLANNING)
        plan = await self.conductor.plan(prepared)
        self.progress = replace(self.progress, plan=plan)
        if prepared.settings.plan_gate and (ending := await self._plan_approved(plan)) is not None:
            return ending
        tree = prepared.tree
        for step in plan.steps:
            tree = await self._code(prepared, plan, step, tree)
        verified = await self._verified(prepared, plan, tree)
        await self.tell(Stage.PUBLISHING)
        published = await self.conductor.publish("publish", PublishOrder(prepared, plan, verified, prepared.base))
        self.progress = replace(self.progress, pull_number=published.number)
        return await self._review(prepared, plan, ReviewState(published, (published.tree,)))

    async def _plan_approved(self, plan: Plan) -> Ending | None:
        """The plan is shown and nothing more is spent before somebody types its hash; or the ending meanwhile."""
        digest = plan_hash(plan)
        note = texts.plan_waits(digest, render_plan(plan))
        while True:
            await self.tell(Stage.AWAITING_PLAN_APPROVAL, note)
            envelope = await self.conductor.receive()
            ending = texts.plan_stale() if envelope is None else messages.plain_ending(envelope)
            if envelope is None or ending is not None:
                return ending
            typed = messages.typed_hash(envelope)
            if typed is not None and digest.startswith(typed):
                return None
            note = texts.plan_waits(digest, render_plan(plan), other=typed or "")

    async def tell(self, stage: Stage, note: str = "") -> None:
        self.progress = replace(self.progress, note=note)
        await self.conductor.tell(stage, self.progress)

    async def _code(self, prepared: Prepared, plan: Plan, step: Step, tree: TreeId) -> TreeId:
        self.progress = replace(self.progress, working=step.id)
        await self.tell(Stage.CODING)
        order = CodeOrder(f"step:{step.id}", prepared, plan, step, tree, self.progress.done, self.progress.allowed)
        coded = await self.conductor.code(order)
        self.progress = replace(self.progress, done=(*self.progress.done, step.id), working=None)
        return coded.tree

    async def _verified(self, prepared: Prepared, plan: Plan, tree: TreeId) -> Verified:
        """The full check; what it finds goes back to the coder, at most twice."""
        for repair in range(REPAIRS + 1):
            self.counter += 1
            await self.tell(Stage.VERIFYING)
            verified = await self.conductor.verify(f"verify:{self.counter}", VerifyOrder(prepared, tree))
            if not verified.failures:
                return verified
            if repair < REPAIRS:
                step = _repair(self.counter, verified)
                await self.tell(Stage.CODING, "Repairing what the full check found.")
                order = CodeOrder(
                    f"step:{step.id}", prepared, plan, step, tree, self.progress.done, self.progress.allowed
                )
                tree = (await self.conductor.code(order)).tree
        raise TaskEnded(texts.still_failing(tuple(failure.subject for failure in verified.failures)))

    async def _review(self, prepared: Prepared, plan: Plan, state: ReviewState) -> Ending:
        """Wait for people, and act on what they say."""
        stage, note = Stage.IN_REVIEW, ""
        while True:
            await self.tell(stage, note)
            envelope = await self.conductor.receive()
            if envelope is None:
                return texts.stale()
            ending = messages.plain_ending(envelope)
            if ending is not None:
                return await self._merged_meanwhile(prepared, plan, state, envelope) or ending
            if messages.is_own_echo(envelope, state):
                continue
            if messages.asks_for_plan(envelope):
                note = render_plan(plan)
                continue
            if messages.asks_for_work(envelope):
                if (asked := messages.asked(envelope)) in self.heard:
                    continue
                self.heard = (*self.heard, asked)
                if len(self.heard) > prepared.rounds:
                    return texts.too_many_rounds(prepared.rounds)
                step = await self._work_in(prepared, plan, state, envelope)
            else:
                step = await self._consider(prepared, plan, state, envelope)
            if isinstance(step, Ending):
                return step
            state, stage, note = step

    async def _merged_meanwhile(
        self, prepared: Prepared, plan: Plan, state: ReviewState, envelope: Envelope
    ) -> Ending | None:
        """When a merge closed the issue, what became of the merge counts."""
        if not messages.may_be_a_merge(envelope):
            return None
        self.counter += 1
        examined = await self.conductor.examine(f"review:{self.counter}", ExamineOrder(state, envelope, prepared))
        step = await self._consider(prepared, plan, state, envelope) if examined.merged else None
        return step if isinstance(step, Ending) else None

    async def _consider(
        self, prepared: Prepared, plan: Plan, state: ReviewState, envelope: Envelope
    ) -> Ending | tuple[ReviewState, Stage, str]:
        self.counter += 1
        key = f"review:{self.counter}"
        examined = await self.conductor.examine(key, ExamineOrder(state, envelope, prepared))
        if examined.merged and (state.approval is None or examined.approval is None):
            return texts.merged_elsewhere(envelope.message.actor.login)
        if not examined.open and not examined.merged:
            return texts.pull_closed()
        if examined.moved is not None and not examined.merged:
            adopted = await self._adopt(key, prepared, plan, state, examined)
            again = messages.approves(envelope, adopted[0].published.head)
            return await self._consider(prepared, plan, adopted[0], envelope) if again else adopted
        if examined.retest is not None and examined.base is not None:
            tested = await self._retest(key, prepared, state, examined)
            if tested is not None:
                return await self._consider(prepared, plan, tested, envelope)
        holds = examined.decision.allowed or examined.keeps or examined.merged
        state = replace(state, approval=examined.approval, others=examined.others) if holds else state.void()
        mode = messages.landing_mode(envelope, state, examined, prepared)
        if state.approval is None or mode is None or not (examined.decision.allowed or examined.merged):
            note = texts.other_digest(state.approval) if messages.names_other_digest(envelope, state) else examined.note
            await self.conductor.report_gate(key, state, examined, note)
            stage = Stage.READY if state.approval is not None and examined.decision.allowed else Stage.IN_REVIEW
            return state, stage, note
        return await self._land(LandOrder(state, state.approval, mode, prepared.base), key, examined)

    async def _land(self, order: LandOrder, key: str, examined: Examined) -> Ending | tuple[ReviewState, Stage, str]:
        state = order.state
        await self.conductor.report_gate(key, state, examined, "")
        await self.tell(Stage.LANDING)
        landed = await self.conductor.land(f"{key}:land", order)
        if landed.merged is not None:
            return Ending(Stage.NEEDS_HUMAN if landed.alarm else Stage.LANDED, landed.note, "")
        if not landed.decision.allowed:
            state = state.void()
            await self.conductor.report_gate(f"{key}:after", state, replace(examined, decision=landed.decision), "")
            return state, Stage.IN_REVIEW, ""
        return state, Stage.READY, landed.note

    async def _retest(self, key: str, prepared: Prepared, state: ReviewState, examined: Examined) -> ReviewState | None:
        """The base moved: run the checks on what would land. None when they fail, so that the gate stays closed."""
        if examined.retest is None or examined.base is None:
            return None
        await self.tell(Stage.VERIFYING, "The base branch moved; checking what a merge would give now.")
        moved = replace(prepared, base=examined.base)
        verified = await self.conductor.verify(f"{key}:retest", VerifyOrder(moved, examined.retest))
        if verified.failures:
            return None
        return replace(state, verified_trees=(*state.verified_trees, examined.retest))

    async def _adopt(
        self, key: str, prepared: Prepared, plan: Plan, state: ReviewState, examined: Examined
    ) -> tuple[ReviewState, Stage, str]:
        """Somebody else pushed: the approval is void; the new head is verified so that it can be approved."""
        head = examined.moved or state.published.head
        void = state.void()
        await self.conductor.report_gate(key, void, examined, "")
        await self.tell(Stage.VERIFYING, "Somebody pushed to the branch; checking the new head.")
        adopted = await self.conductor.adopt(f"{key}:adopt", AdoptOrder(prepared, plan, state.published, head))
        passed = not adopted.verified.failures
        trees = (*state.verified_trees, adopted.published.tree) if passed else state.verified_trees
        note = texts.adopted(adopted.published.head, adopted.published.digest, passed=passed)
        return replace(void, published=adopted.published, verified_trees=trees), Stage.IN_REVIEW, note

    async def _work_in(
        self, prepared: Prepared, plan: Plan, state: ReviewState, envelope: Envelope
    ) -> Ending | tuple[ReviewState, Stage, str]:
        """Work on what stands there now: a head of somebody else is taken in first."""
        self.counter += 1
        key = f"review:{self.counter}"
        examined = await self.conductor.examine(key, ExamineOrder(state, envelope, prepared))
        if examined.merged or not examined.open or not examined.request:
            return await self._consider(prepared, plan, state, envelope)
        if examined.moved is not None:
            state, _, _ = await self._adopt(key, prepared, plan, state, examined)
        if examined.hold:
            self.heard = self.heard[:-1]
            return state, Stage.IN_REVIEW, texts.held(examined.hold)
        self.progress = replace(self.progress, allowed=examined.allowed)
        revised = await self._revise(prepared, plan, state, examined.request)
        examined = await self.conductor.examine(f"{key}:after", ExamineOrder(revised[0], envelope, prepared))
        await self.conductor.report_gate(f"{key}:after", revised[0], examined, "")
        return revised

    async def _revise(
        self, prepared: Prepared, plan: Plan, state: ReviewState, request: str
    ) -> tuple[ReviewState, Stage, str]:
        """One more step, verified like the rest, as a further commit on the branch."""
        self.counter += 1
        await self.tell(Stage.REVISING)
        step = messages.revision(self.counter, request)
        order = CodeOrder(
            f"step:{step.id}", prepared, plan, step, state.published.tree, self.progress.done, self.progress.allowed
        )
        tree = (await self.conductor.code(order)).tree
        verified = await self._verified(prepared, plan, tree)
        await self.tell(Stage.PUBLISHING)
        order_ = PublishOrder(
            prepared, plan, verified, state.published.head, state.published.number, self.progress.allowed
        )
        published = await self.conductor.publish(f"publish:{self.counter}", order_)
        if published.moved:
            return state.void(), Stage.IN_REVIEW, texts.overtaken()
        note = "The review is worked in; please look at the new digest."
        trees = (*state.verified_trees, published.tree)
        return replace(state.void(), published=published, verified_trees=trees), Stage.IN_REVIEW, note


def _repair(number: int, verified: Verified) -> Step:
    listed = "\n".join(f"- {f.kind.value}: {f.subject}\n{f.detail[:600]}" for f in verified.failures[:6])
    goal = f"The whole change was checked in a fresh sandbox and these checks failed:\n{listed}\nFix the cause."
    return Step(StepId(f"repair-{number}"), "Make the full check pass", goal, (), (), ())
