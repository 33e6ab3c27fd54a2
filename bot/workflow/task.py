"""The pipeline on one page. It orders segments and reacts to messages; every rule is in a stage.

Deterministic: no clock, no random, no I/O but through segments and steps; one sequential coroutine (specs/durable.md §4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from bot.domain.ids import CommitId, TreeId
from bot.domain.plan import Plan
from bot.domain.task import Ending, Stage
from bot.stages.approving import texts as gate_texts
from bot.stages.planning.texts import render_plan
from bot.workflow import messages, texts
from bot.workflow.building import Builder, Building
from bot.workflow.journal import TaskEnded
from bot.workflow.records import (
    Adopted,
    AdoptOrder,
    Envelope,
    Examined,
    ExamineOrder,
    Landed,
    LandOrder,
    Prepared,
    Published,
    PublishOrder,
    ReviewState,
    VerifyOrder,
)


class Conductor(Builder, Protocol):
    """What the pipeline can ask for. Each call is durable; implemented on DBOS in `engine.py`."""

    async def publish(self, key: str, order: PublishOrder) -> Published: ...
    async def examine(self, key: str, order: ExamineOrder) -> Examined: ...
    async def adopt(self, key: str, order: AdoptOrder) -> Adopted: ...
    async def land(self, key: str, order: LandOrder) -> Landed: ...
    async def report_gate(self, key: str, state: ReviewState, examined: Examined, note: str) -> None:
        """Check run, draft state and comment on the pull request, from the decision."""
        ...


async def run(conductor: Conductor) -> Ending:
    """Carry the task through its life; the ending is for the caller to write down."""
    try:
        return await _Pipeline(conductor).run()
    except TaskEnded as end:
        return end.ending


class _Pipeline(Building):
    """The whole life: what is built is published, reviewed and landed."""

    def __init__(self, conductor: Conductor) -> None:
        super().__init__(conductor)
        self.conductor = conductor
        self.heard: tuple[str, ...] = ()
        """Requests for work that were worked in; a twin of a delivery asks for nothing new."""

    async def run(self) -> Ending:
        built = await self.build()
        prepared, plan = built.prepared, built.plan
        await self.tell(Stage.PUBLISHING)
        order = PublishOrder(prepared, plan, built.verified, prepared.base)
        published = await self.conductor.publish("publish", order)
        self.progress = replace(self.progress, pull_number=published.number)
        return await self._review(prepared, plan, ReviewState(published, (published.tree,)))

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
        self, prepared: Prepared, plan: Plan, state: ReviewState, envelope: Envelope, told: str = ""
    ) -> Ending | tuple[ReviewState, Stage, str]:
        """What a message means for what stands there now; `told` is what was found out on the way to it."""
        self.counter += 1
        key = f"review:{self.counter}"
        examined = await self.conductor.examine(key, ExamineOrder(state, envelope, prepared))
        if examined.merged and (state.approval is None or examined.approval is None):
            return texts.merged_elsewhere(messages.merger(envelope))
        if not examined.open and not examined.merged:
            return texts.pull_closed()
        if examined.moved is not None and not examined.merged:
            state, said = await self._adopt(key, prepared, plan, state, examined)
            if told:  # pushed again meanwhile: of that a message of its own tells
                return state, Stage.IN_REVIEW, said
            return await self._consider(prepared, plan, state, envelope, said)
        if examined.retest is not None and examined.base is not None:
            state, fails = await self._retest(key, prepared, state, examined.retest, examined.base)
            if not fails:
                return await self._consider(prepared, plan, state, envelope, told)
            told = fails
            examined = await self.conductor.examine(f"{key}:retested", ExamineOrder(state, envelope, prepared))
        state = state.showing(examined.digest)
        holds = examined.decision.allowed or examined.keeps or examined.merged
        state = replace(state, approval=examined.approval, others=examined.others) if holds else state.void()
        mode = messages.landing_mode(envelope, state, examined, prepared)
        if state.approval is None or mode is None or not (examined.decision.allowed or examined.merged):
            said = texts.other_digest(state.approval) if messages.names_other_digest(envelope, state) else examined.note
            note = "\n\n".join(part for part in (told, said) if part)
            await self.conductor.report_gate(key, state, examined, note)
            stage = Stage.READY if state.approval is not None and examined.decision.allowed else Stage.IN_REVIEW
            return state, stage, note or gate_texts.status(examined.decision)
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
            return state, Stage.IN_REVIEW, gate_texts.status(landed.decision)
        return state, Stage.READY, landed.note or texts.ready(gate_texts.status(landed.decision), order.approval)

    async def _retest(
        self, key: str, prepared: Prepared, state: ReviewState, tree: TreeId, base: CommitId
    ) -> tuple[ReviewState, str]:
        """The base moved: run the checks on what would land. What fails is for people to read, and keeps the gate closed."""
        await self.tell(Stage.VERIFYING, "The base branch moved; checking what a merge would give now.")
        verified = await self.conductor.verify(f"{key}:retest", VerifyOrder(replace(prepared, base=base), tree))
        fails = texts.merge_fails(prepared.base_ref, verified.failures) if verified.failures else ""
        return state.checked(tree, passed=not fails), fails

    async def _adopt(
        self, key: str, prepared: Prepared, plan: Plan, state: ReviewState, examined: Examined
    ) -> tuple[ReviewState, str]:
        """Somebody else pushed: the approval is void; the new head is verified so that it can be approved."""
        head = examined.moved or state.published.head
        void = state.void()
        await self.conductor.report_gate(key, void, examined, "")
        await self.tell(Stage.VERIFYING, "Somebody pushed to the branch; checking the new head.")
        adopted = await self.conductor.adopt(f"{key}:adopt", AdoptOrder(prepared, plan, state.published, head))
        failures = adopted.verified.failures
        note = texts.adopted(adopted.published.head, adopted.published.digest, failures)
        checked = void.checked(adopted.published.tree, passed=not failures)
        return replace(checked, published=adopted.published), note

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
            state, _ = await self._adopt(key, prepared, plan, state, examined)
        if examined.hold:
            self.heard = self.heard[:-1]
            return state, Stage.IN_REVIEW, texts.held(examined.hold)
        self.progress = replace(self.progress, allowed=examined.allowed)
        revised = await self._revise(prepared, plan, state, examined.request)
        examined = await self.conductor.examine(f"{key}:after", ExamineOrder(revised[0], envelope, prepared))
        state = revised[0].showing(examined.digest)
        await self.conductor.report_gate(f"{key}:after", state, examined, "")
        return state, revised[1], revised[2]

    async def _revise(
        self, prepared: Prepared, plan: Plan, state: ReviewState, request: str
    ) -> tuple[ReviewState, Stage, str]:
        """One more step, verified like the rest, as a further commit on the branch."""
        self.counter += 1
        await self.tell(Stage.REVISING)
        step = messages.revision(self.counter, request)
        tree = await self.work(prepared, plan, step, state.published.tree)
        verified = await self.checked(prepared, plan, tree)
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
