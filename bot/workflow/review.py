"""Segments around the pull request: publish it, examine what people did, adopt a head of somebody else, land."""

from __future__ import annotations

import time
from dataclasses import replace

from bot.custody.digest import change_digest
from bot.domain.action import CommandMessage, ReviewMessage, Verb
from bot.domain.decision import Decision
from bot.domain.event import ReviewState as GithubReview
from bot.domain.ids import CommitId, Digest, NodeId
from bot.domain.money import MicroUsd
from bot.domain.pull import Approval, Snapshot
from bot.domain.verdict import VerifiedChange
from bot.policy.loops import held
from bot.providers.forge.port import CheckConclusion, CheckReport, NewPull
from bot.stages.approving import gate
from bot.stages.approving import run as approving
from bot.stages.approving import texts as gate_texts
from bot.stages.approving.checks import base_moved
from bot.stages.approving.requests import asked
from bot.stages.landing import run as landing
from bot.stages.publishing import names
from bot.stages.publishing import run as publishing
from bot.stages.publishing import texts as publishing_texts
from bot.workflow import judging, messages, segments, showing, texts
from bot.workflow.context import TaskContext
from bot.workflow.journal import TaskEnded
from bot.workflow.records import (
    Adopted,
    AdoptOrder,
    Examined,
    ExamineOrder,
    Landed,
    LandOrder,
    Published,
    PublishOrder,
    ReviewState,
    VerifyOrder,
)


async def publish(context: TaskContext, order: PublishOrder) -> Published:
    """Commit, draft pull request, its body, the waiting check; each looks before it acts."""
    title = names.title(context.spec.title)
    branch = names.branch(context.spec.subject.number, context.spec.title, context.spec.id)

    async def commit() -> publishing.PublishedCommit:
        decision = await judging.may_publish(context, order, branch)
        if not decision.allowed:
            raise TaskEnded(texts.policy_denied(decision))
        if await (await context.forge()).branch_head(order.prepared.base_ref) is None:
            raise TaskEnded(texts.base_gone(order.prepared.base_ref))
        return await publishing.publish_commit(
            VerifiedChange(order.verified.change, order.verified.verdict),
            forge=await context.forge(),
            mirror=context.mirror,
            branch=branch,
            parent=order.parent,
            message=publishing_texts.commit_message(title, context.spec.subject.number, context.spec.id),
        )

    pushed = await context.journal.step("publish:commit", commit, publishing.PublishedCommit)
    if pushed.moved and order.pull_number is None:
        raise TaskEnded(texts.branch_taken(branch))
    if pushed.moved:
        return Published(order.pull_number or 0, NodeId(""), branch, pushed.commit, pushed.tree, Digest(""), moved=True)

    async def pull() -> Published:
        forge = await context.forge()
        ref, base = order.prepared.base_ref, order.prepared.base
        if order.pull_number is not None:  # the base may have moved, or be another one by now
            there = await approving.with_fresh_base(await forge.pull(order.pull_number), forge)
            ref, base = there.base_ref, there.base_sha
        await context.mirror.fetch(await context.upstream(), commits=(pushed.commit, base))
        digest = await change_digest(context.mirror, ref, base, pushed.commit)
        draft = Published(0, NodeId(""), branch, pushed.commit, pushed.tree, digest.value, base, ref)
        body = await showing.body(context, order.prepared, order.plan, order.verified, draft, order.allowed)
        if order.pull_number is None:
            new = NewPull(title, body, branch, order.prepared.base_ref)
            opened = await publishing.open_draft(forge, new)
        else:
            opened = await forge.pull(order.pull_number)
        if opened.body != body:
            await forge.update_pull_body(opened.number, body)
        await context.services.tasks.published(context.spec.id, opened.number, pushed.commit)
        published = replace(draft, number=opened.number, node_id=opened.node_id)
        await publishing.report_check(forge, showing.waiting(context, published))
        return published

    return await context.journal.step("publish:pull", pull, Published)


async def _look(context: TaskContext, state: ReviewState, base: CommitId, asked_by: str = "") -> judging.Sight:
    """A fresh snapshot and what rules may ask about it; `asked_by` is somebody whose permission matters, too."""
    bot = await context.services.forges.bot()
    people = {asked_by, *(record.reviewer.login for record in state.approvals())} - {""}
    policies = await judging.rules(context, base)
    view = approving.Viewpoint(
        context.spec.subject.repository.id,
        state.published.number,
        bot,
        state.verified_trees,
        state.failed_trees,
        tuple(sorted(people)),
        code_owners=judging.asks_for_owners(policies),
    )
    now = await approving.look(
        view, forge=await context.forge(), mirror=context.mirror, upstream=await context.upstream()
    )
    return await judging.sight(context, now, policies)


async def examine(context: TaskContext, order: ExamineOrder, rule: gate.Rule = gate.decide) -> Examined:
    """Read everything again and let the gate decide; a message that is an approval may become the approval record."""

    async def act() -> Examined:
        seen = await _look(context, order.state, order.prepared.base, order.envelope.message.actor.login)
        examined = replace(await _judge(context, order, seen, rule), request=await _request(context, order))
        if not examined.decision.allowed:
            examined = replace(examined, since=await judging.since(context, order.state, seen.now))
        return await _within_limits(context, order, examined) if examined.request else examined

    return await context.journal.step("examine", act, Examined)


async def _within_limits(context: TaskContext, order: ExamineOrder, examined: Examined) -> Examined:
    """The loop breakers' word on a round of review; and its own budget, on top of what was spent so far."""
    services, spec = context.services, context.spec
    actor, repository, now = order.envelope.message.actor, spec.subject.repository.id, int(time.time())
    key = f"{spec.id}:{messages.asked(order.envelope)}"
    tally = await services.requests.tally(actor.id, repository, at=now, but=key)
    hold = held(services.loops, tally, f"@{actor.login}", spec.budget)
    if not hold:
        await services.requests.note(key, user=actor.id, repository=repository, at=now)
    spent = (await services.ledger.totals(spec.id)).spent
    return replace(examined, hold=hold, allowed=MicroUsd(spent + spec.budget))


async def _request(context: TaskContext, order: ExamineOrder) -> str:
    """What the message asks for, with everything said in its review; the message's own text as it was when it came."""
    message, number = order.envelope.message, order.state.published.number
    if not messages.asks_for_work(order.envelope) or not isinstance(message, ReviewMessage | CommandMessage):
        return ""
    if message.review_id is None:
        return asked(message, "", (), context.nonce())
    words = await (await context.forge()).review_words(number, message.review_id)
    return asked(message, words.text, words.comments, context.nonce())


async def _judge(context: TaskContext, order: ExamineOrder, seen: judging.Sight, rule: gate.Rule) -> Examined:
    """The gate's word; a message that gives an approval which holds becomes the approval record."""
    state = order.state
    now = seen.now
    moved = now.pull.head_sha if now.pull.head_sha != state.published.head else None
    given = None if moved is not None or not now.pull.open else _approval(order, seen)
    if isinstance(given, Approval) and given.review_id != gate.NO_REVIEW:
        given = gate.as_shown(given, state.published.digest)
    if isinstance(given, Approval):
        allowed = judging.may_approve(context, seen, given)
        if allowed.allowed:
            await context.services.approvals.record(context.spec.id, given)
        else:
            given = allowed
    records = _records(state, given)
    approval, others, decision = _best(context, seen, records, rule)
    note = ""
    if isinstance(given, Decision) and not records:
        decision = given
    elif isinstance(given, Decision):
        note = texts.not_counted(given)
    if now.pull.merged and any(reason.rule in gate.QUORUM for reason in decision.against()):
        approval = None  # somebody merged before everybody had approved
    untested = now.merge_tree is not None and now.merge_tree not in now.verified_trees
    return Examined(
        decision,
        approval=approval,
        moved=moved,
        retest=now.merge_tree if untested and base_moved(approval, now) and now.pull.open else None,
        base=now.pull.base_sha,
        merged=now.pull.merged,
        open=now.pull.open,
        keeps=approval is not None and gate.keeps(decision),
        others=others,
        given=isinstance(given, Approval),
        digest=now.digest.value if moved is None else None,
        note=note,
    )


def _records(state: ReviewState, given: Approval | Decision | None) -> tuple[Approval, ...]:
    """The approvals there are, the newest first; of one person only the newest, of an older change none."""
    if not isinstance(given, Approval):
        return state.approvals()
    same = (given.digest, given.head_sha)
    kept = (one for one in state.approvals() if one.reviewer.id != given.reviewer.id)
    return (given, *(one for one in kept if (one.digest, one.head_sha) == same))


def _best(
    context: TaskContext, seen: judging.Sight, records: tuple[Approval, ...], rule: gate.Rule
) -> tuple[Approval | None, tuple[Approval, ...], Decision]:
    """The first approval that opens the gate, else that keeps standing, else the newest; the others; and the decision."""
    found: list[tuple[Approval | None, tuple[Approval, ...], Decision]] = []
    for record in records or (None,):
        others = tuple(one for one in records if one is not record)
        found.append((record, others, rule(record, seen.now, _terms(context, seen, record, others))))
    best = [one for one in found if one[2].allowed] or [one for one in found if gate.keeps(one[2])] or found
    return best[0]


def _terms(
    context: TaskContext, seen: judging.Sight, approval: Approval | None, others: tuple[Approval, ...]
) -> gate.Terms:
    policies = seen.policies
    terms = gate.Terms(
        policy_digest=policies.digest,
        requester=context.spec.requester,
        two_person=policies.limits.two_person,
        others=others,
        approvals=policies.limits.approvals,
        code_owners=policies.limits.code_owners,
    )
    if approval is None:
        return terms
    return replace(terms, policy=judging.may_land(context, seen, approval, gate.standing(approval, seen.now, terms)))


def _approval(order: ExamineOrder, seen: judging.Sight) -> Approval | Decision | None:
    """What the message is worth as an approval; None when it is none."""
    envelope = order.envelope
    match envelope.message:
        case ReviewMessage(state=GithubReview.APPROVED) as message:
            return gate.approval_from(
                seen.now,
                message,
                received_at=envelope.received_at,
                delivery=envelope.delivery,
                policy_digest=seen.policies.digest,
            )
        case CommandMessage(command=command) as message if command.verb is Verb.APPROVE:
            return gate.approval_from_command(
                seen.now,
                message,
                received_at=envelope.received_at,
                delivery=envelope.delivery,
                policy_digest=seen.policies.digest,
            )
        case _:
            return None


async def read_head(context: TaskContext, order: AdoptOrder) -> Published:
    """The head as it is now: the one that was seen, or a later one when somebody pushed again meanwhile."""
    old = order.published
    forge = await context.forge()
    pull = await approving.with_fresh_base(await forge.pull(old.number), forge)
    await approving.fetch_head(context.mirror, await context.upstream(), pull)
    digest = await change_digest(context.mirror, pull.base_ref, pull.base_sha, pull.head_sha)
    tree = await context.mirror.tree_of(pull.head_sha)
    await context.services.tasks.published(context.spec.id, old.number, pull.head_sha)
    return Published(
        old.number, old.node_id, old.branch, pull.head_sha, tree, digest.value, pull.base_sha, pull.base_ref
    )


async def adopt(context: TaskContext, order: AdoptOrder) -> Adopted:
    """Verify a head that somebody else pushed; if it passes, its digest is the one to approve from now on."""
    published = await context.journal.step("adopt:read", lambda: read_head(context, order), Published)
    verified = await segments.verify(context, VerifyOrder(order.prepared, published.tree))

    async def show() -> bool:
        body = await showing.body(context, order.prepared, order.plan, verified, published)
        await (await context.forge()).update_pull_body(published.number, body)
        return True

    if not verified.failures:
        await context.journal.step("adopt:body", show, bool)
    return Adopted(published, verified)


async def land(context: TaskContext, order: LandOrder, rule: gate.Rule = gate.decide) -> Landed:
    """Act on the approval; every reading and the act are one step, so that nothing old is decided on."""

    seen: list[judging.Sight] = []

    async def look() -> Snapshot:
        base = order.base or order.approval.base_sha
        seen[:] = [await _look(context, replace(order.state, approval=order.approval), base)]
        return seen[0].now

    def decide(now: Snapshot) -> Decision:
        return rule(order.approval, now, _terms(context, seen[0], order.approval, order.state.others))

    async def act() -> Landed:
        outcome = await landing.land(
            landing.LandingWork(order.approval, order.mode, names.title(context.spec.title), publishing.NOT_READY),
            forge=await context.forge(),
            mirror=context.mirror,
            upstream=await context.upstream(),
            look=look,
            decide=decide,
        )
        return Landed(outcome.decision, outcome.ready, outcome.merged, outcome.merged_tree, outcome.note, outcome.alarm)

    landed = await context.journal.step("land", act, Landed)
    if landed.merged is not None:
        await context.journal.step("land:check", lambda: _report_landed(context, order, landed), bool)
    return landed


async def _report_landed(context: TaskContext, order: LandOrder, landed: Landed) -> bool:
    conclusion = CheckConclusion.FAILURE if landed.alarm else CheckConclusion.SUCCESS
    report = CheckReport(
        showing.CHECK_NAME,
        order.approval.head_sha,
        gate_texts.landed_title(alarm=landed.alarm),
        landed.note,
        conclusion,
        context.spec.id,
    )
    await publishing.report_check(await context.forge(), report)
    return True
