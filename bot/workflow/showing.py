"""What the pull request shows: its body, the check run on its head, the gate's own comment."""

from __future__ import annotations

import structlog

from bot.custody.digest import change_digest, shell_line
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.ids import CommitId, TaskId
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan
from bot.prompting import publishable
from bot.providers.forge.port import CheckConclusion, CheckReport, ForgeGone, ForgeRefused
from bot.stages.approving import texts as gate_texts
from bot.stages.planning.texts import render_plan
from bot.stages.publishing import names
from bot.stages.publishing import run as publishing
from bot.stages.publishing import texts as publishing_texts
from bot.workflow import judging
from bot.workflow.context import TaskContext
from bot.workflow.records import Examined, Prepared, Published, ReviewState, Verified

CHECK_NAME = "pullwright/gate"

log = structlog.get_logger()


async def body(
    context: TaskContext,
    prepared: Prepared,
    plan: Plan,
    verified: Verified,
    published: Published,
    allowed: MicroUsd | None = None,
) -> str:
    """The pull request's body: what was checked, and the digest an approval stands for."""
    change = verified.change
    artefacts = await _artefacts(context, prepared, verified)
    base, base_ref = published.base or prepared.base, published.base_ref or prepared.base_ref
    digest = await change_digest(context.mirror, base_ref, base, published.head)
    view = publishing_texts.PullView(
        task=context.spec.id,
        issue_number=context.spec.subject.number,
        issue_is_pull=context.spec.subject.is_pull,
        plan_text=publishable(render_plan(plan)),
        verdict=verified.verdict,
        cost=await context.cost(allowed),
        digest=published.digest,
        base_ref=base_ref,
        base=base,
        tree=change.tree,
        changed_files=len(change.paths),
        digest_command=shell_line(base, published.head, base_ref=base_ref),
        isolation=context.services.isolation,
        notice=publishable(prepared.notice),
        artefacts=artefacts,
        egress=verified.egress,
        flags=await judging.flags_between(context, digest.merge_base_tree, digest.head_tree),
    )
    return publishing_texts.pull_body(view)


async def _artefacts(context: TaskContext, prepared: Prepared, verified: Verified) -> str:
    """Stores what the checks left to be seen, where the policy allows it, and gives the paragraph that links to it."""
    entries, spec = verified.artefacts, context.spec
    if not entries:
        return publishing_texts.artefact_section("", CommitId(""), (), verified.not_kept)
    branch = names.artefacts_branch(spec.subject.number, spec.id)
    decision = await judging.may_store(context, entries, branch, prepared.base)
    if not decision.allowed:
        refused = tuple(reason.text for reason in decision.against())
        return publishing_texts.artefact_section("", CommitId(""), (), (*refused, *verified.not_kept))
    forge = await context.forge()
    message = f"What the checks of {spec.id} show\n"
    commit = await publishing.publish_artefacts(
        entries, forge=forge, mirror=context.mirror, branch=branch, message=message
    )
    page = (await forge.repository()).clone_url.removesuffix(".git")
    named = tuple(entry.path for entry in entries)
    return publishing_texts.artefact_section(page, commit, named, verified.not_kept)


def gate_marker(task: TaskId) -> str:
    """The hidden line by which the gate's comment is found again."""
    return f"<!-- pullwright:gate:{task} -->"


def waiting(context: TaskContext, published: Published) -> CheckReport:
    """The check of a head nobody has reviewed yet."""
    decision = Decision("approval", (Reason("review", Outcome.WAITING, "A person with write access has to approve."),))
    return check(context, published.head, decision, "", published.digest)


def check(context: TaskContext, head: CommitId, decision: Decision, note: str, digest: str) -> CheckReport:
    """The check run that says what the gate decided."""
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


async def report_gate(context: TaskContext, state: ReviewState, examined: Examined, note: str) -> bool:
    """The decision where people see it: check run on the head, draft state, and the pull request's own sticky comment."""
    forge = await context.forge()
    pull = await forge.pull(state.published.number)
    await publishing.report_check(forge, check(context, pull.head_sha, examined.decision, note, state.published.digest))
    if pull.open and not examined.decision.allowed:
        await publishing.take_back(forge, pull)
    bot = await context.services.forges.bot()
    marker = gate_marker(context.spec.id)
    body = f"{marker}\n{gate_texts.comment(examined.decision, digest=state.published.digest, approval=state.approval)}"
    if note:
        body += f"\n\n{note}"
    if examined.since:
        body += f"\n\n{examined.since}"
    if state.approval is not None:
        body += "".join(f"\n\n{gate_texts.receipt(record)}" for record in state.approvals())
    await publishing.post_sticky(forge, state.published.number, bot_login=bot.login, marker=marker, body=body)
    return True


async def let_go(context: TaskContext, number: int) -> None:
    """Close the gate of a task that ended: nobody would see a retarget or a push any more, and a green check would stay green."""
    try:
        forge = await context.forge()
        pull = await forge.pull(number)
        if pull.merged:
            return
        said = gate_texts.LET_GO
        report = CheckReport(
            CHECK_NAME, pull.head_sha, said.partition(".")[0], said, CheckConclusion.FAILURE, context.spec.id
        )
        await publishing.report_check(forge, report)
        if pull.open:
            await publishing.take_back(forge, pull)
        bot = await context.services.forges.bot()
        marker = gate_marker(context.spec.id)
        comment = await publishing.find_own(forge, number, bot_login=bot.login, marker=marker)
        if comment is not None:
            await forge.update_comment(comment.id, f"{marker}\n**Gate: closed.** {said}\n")
    except (ForgeRefused, ForgeGone) as refusal:
        log.info("gate not closed", task=context.spec.id, reason=str(refusal))
