"""Segments around the pull request: publish it, examine what people did, adopt a head of somebody else, land."""

from __future__ import annotations

from bot.custody.digest import change_digest, shell_line
from bot.domain.action import CommandMessage, ReviewMessage, Verb
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.event import ReviewState as GithubReview
from bot.domain.ids import CommitId
from bot.domain.pull import Approval, Snapshot
from bot.domain.verdict import VerifiedChange
from bot.prompting import publishable
from bot.providers.forge.port import CheckConclusion, CheckReport, NewPull
from bot.stages.approving import gate
from bot.stages.approving import run as approving
from bot.stages.approving import texts as gate_texts
from bot.stages.landing import run as landing
from bot.stages.planning.texts import render_plan
from bot.stages.publishing import names
from bot.stages.publishing import run as publishing
from bot.stages.publishing import texts as publishing_texts
from bot.workflow import segments
from bot.workflow.context import TaskContext
from bot.workflow.records import (
    Adopted,
    AdoptOrder,
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

CHECK_NAME = "pullwright/gate"


async def publish(context: TaskContext, order: PublishOrder) -> Published:
    """Commit, draft pull request, its body, the waiting check; each looks before it acts."""
    title = names.title(context.spec.title)
    branch = names.branch(context.spec.subject.number, context.spec.title, context.spec.id)

    async def commit() -> publishing.PublishedCommit:
        return await publishing.publish_commit(
            VerifiedChange(order.verified.change, order.verified.verdict),
            forge=await context.forge(),
            mirror=context.mirror,
            branch=branch,
            parent=order.parent,
            message=publishing_texts.commit_message(title, context.spec.subject.number, context.spec.id),
        )

    pushed = await context.journal.step("publish:commit", commit, publishing.PublishedCommit)

    async def pull() -> Published:
        forge = await context.forge()
        await context.mirror.fetch(await context.upstream(), commits=(pushed.commit,))
        digest = await change_digest(context.mirror, order.prepared.base_ref, order.prepared.base, pushed.commit)
        body = await _body(context, order, pushed.commit, digest.value)
        if order.pull_number is None:
            new = NewPull(title, body, branch, order.prepared.base_ref)
            opened = await publishing.open_draft(forge, new)
        else:
            opened = await forge.pull(order.pull_number)
        if opened.body != body:
            await forge.update_pull_body(opened.number, body)
        await context.services.tasks.published(context.spec.id, opened.number, pushed.commit)
        published = Published(opened.number, opened.node_id, branch, pushed.commit, pushed.tree, digest.value)
        await publishing.report_check(forge, _waiting(context, published))
        return published

    return await context.journal.step("publish:pull", pull, Published)


async def _body(context: TaskContext, order: PublishOrder, head: CommitId, digest: str) -> str:
    change = order.verified.change
    view = publishing_texts.PullView(
        task=context.spec.id,
        issue_number=context.spec.subject.number,
        issue_is_pull=context.spec.subject.is_pull,
        plan_text=publishable(render_plan(order.plan)),
        verdict=order.verified.verdict,
        cost=await context.cost(),
        digest=digest,
        base_ref=order.prepared.base_ref,
        base=order.prepared.base,
        tree=change.tree,
        changed_files=len(change.paths),
        digest_command=shell_line(order.prepared.base, head, base_ref=order.prepared.base_ref),
        isolation=context.services.isolation,
    )
    return publishing_texts.pull_body(view)


def _waiting(context: TaskContext, published: Published) -> CheckReport:
    decision = Decision("approval", (Reason("review", Outcome.WAITING, "A person with write access has to approve."),))
    return _check(context, published.head, decision, "", published.digest)


def _check(context: TaskContext, head: CommitId, decision: Decision, note: str, digest: str) -> CheckReport:
    conclusion = {
        Outcome.PASSED: CheckConclusion.SUCCESS,
        Outcome.REFUSED: CheckConclusion.FAILURE,
        Outcome.WAITING: CheckConclusion.ACTION_REQUIRED,
    }[decision.outcome]
    summary = gate_texts.summary(decision, digest=digest)
    return CheckReport(
        name=CHECK_NAME,
        head=head,
        title=gate_texts.title(decision),
        summary=f"{note}\n\n{summary}".strip(),
        conclusion=conclusion,
        external_id=context.spec.id,
    )


async def _look(context: TaskContext, state: ReviewState) -> Snapshot:
    bot = await context.services.forges.bot()
    view = approving.Viewpoint(context.spec.subject.repository.id, state.published.number, bot, state.verified_trees)
    return await approving.look(
        view, forge=await context.forge(), mirror=context.mirror, upstream=await context.upstream()
    )


async def examine(context: TaskContext, order: ExamineOrder) -> Examined:
    """Read everything again and let the gate decide; a message that is an approval may become the approval record."""

    async def act() -> Examined:
        now = await _look(context, order.state)
        return await _judge(context, order, now)

    return await context.journal.step("examine", act, Examined)


async def _judge(context: TaskContext, order: ExamineOrder, now: Snapshot) -> Examined:
    moved = now.pull.head_sha if now.pull.head_sha != order.state.published.head else None
    message = order.envelope.message
    state = order.state
    if moved is None and now.pull.open and _is_approval(order):
        outcome = gate.approval_from(
            now,
            _review_of(order, now),
            received_at=order.envelope.received_at,
            delivery=order.envelope.delivery,
            policy_digest=context.services.policy_digest,
            flags=state.flags,
        )
        if isinstance(outcome, Approval):
            await context.services.approvals.record(context.spec.id, outcome)
            return Examined(gate.decide(outcome, now), outcome)
        return Examined(outcome)
    del message
    return Examined(gate.decide(state.approval, now), moved=moved, merged=now.pull.merged, open=now.pull.open)


def _is_approval(order: ExamineOrder) -> bool:
    match order.envelope.message:
        case ReviewMessage(state=GithubReview.APPROVED):
            return True
        case CommandMessage(command=command) if command.verb is Verb.APPROVE:
            return order.state.published.digest.startswith(command.argument)
        case _:
            return False


def _review_of(order: ExamineOrder, now: Snapshot) -> ReviewMessage:
    """The review that is meant: the one that arrived, or with `/agent approve` the latest approving one of that person."""
    message = order.envelope.message
    if isinstance(message, ReviewMessage):
        return message
    mine = [review for review in now.reviews if review.reviewer.id == message.actor.id]
    approving_ones = [review for review in mine if review.state is GithubReview.APPROVED]
    if not approving_ones:
        return ReviewMessage(message.actor, gate.NO_REVIEW, GithubReview.COMMENTED, None, "")
    last = approving_ones[-1]
    return ReviewMessage(last.reviewer, last.id, last.state, last.commit_id, "")


async def report_gate(context: TaskContext, state: ReviewState, examined: Examined, note: str) -> bool:
    """The decision where people see it: check run on the head, draft state, and the pull request's own sticky comment."""
    forge = await context.forge()
    pull = await forge.pull(state.published.number)
    await publishing.report_check(
        forge, _check(context, pull.head_sha, examined.decision, note, state.published.digest)
    )
    if pull.open and not pull.draft and not examined.decision.allowed:
        await forge.convert_to_draft(pull.node_id)
    bot = await context.services.forges.bot()
    marker = f"<!-- pullwright:gate:{context.spec.id} -->"
    body = f"{marker}\n{gate_texts.comment(examined.decision, digest=state.published.digest, approval=state.approval)}"
    if note:
        body += f"\n\n{note}"
    await publishing.post_sticky(forge, state.published.number, bot_login=bot.login, marker=marker, body=body)
    return True


async def adopt(context: TaskContext, order: AdoptOrder) -> Adopted:
    """Verify a head that somebody else pushed; its digest is the one to approve from now on."""

    async def read() -> Published:
        refs = {f"refs/pull/{order.published.number}/head": order.head}
        await context.mirror.fetch(await context.upstream(), refs=refs)
        digest = await change_digest(context.mirror, order.prepared.base_ref, order.prepared.base, order.head)
        tree = await context.mirror.tree_of(order.head)
        old = order.published
        await context.services.tasks.published(context.spec.id, old.number, order.head)
        return Published(old.number, old.node_id, old.branch, order.head, tree, digest.value)

    published = await context.journal.step("adopt:read", read, Published)
    verified = await segments.verify(context, VerifyOrder(order.prepared, published.tree))
    return Adopted(published, verified)


async def land(context: TaskContext, order: LandOrder) -> Landed:
    """Act on the approval; every reading and the act are one step, so that nothing old is decided on."""

    async def act() -> Landed:
        outcome = await landing.land(
            landing.LandingWork(order.approval, order.mode, names.title(context.spec.title)),
            forge=await context.forge(),
            mirror=context.mirror,
            upstream=await context.upstream(),
            look=lambda: _look(context, order.state),
            decide=lambda now: gate.decide(order.approval, now),
        )
        return Landed(outcome.decision, outcome.ready, outcome.merged, outcome.merged_tree, outcome.note, outcome.alarm)

    landed = await context.journal.step("land", act, Landed)
    if landed.merged is not None:
        await context.journal.step("land:check", lambda: _report_landed(context, order, landed), bool)
    return landed


async def _report_landed(context: TaskContext, order: LandOrder, landed: Landed) -> bool:
    conclusion = CheckConclusion.FAILURE if landed.alarm else CheckConclusion.SUCCESS
    report = CheckReport(
        CHECK_NAME,
        order.approval.head_sha,
        gate_texts.landed_title(alarm=landed.alarm),
        landed.note,
        conclusion,
        context.spec.id,
    )
    await publishing.report_check(await context.forge(), report)
    return True
