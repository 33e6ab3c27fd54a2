"""Joins each stage to its collaborators. A segment takes a record and gives one back; every act in it is a journal step."""

from __future__ import annotations

from dataclasses import replace

from bot.custody.workbench import Workbench, lacking
from bot.domain.change import Change, FileMode, TreeEntry
from bot.domain.decision import Decision
from bot.domain.egress import Attempt, Attempts
from bot.domain.ids import CommitId, TreeId
from bot.domain.plan import Plan
from bot.domain.repository import SETTINGS_PATH, RepositorySettings
from bot.domain.verdict import Failure, TestReport
from bot.policy.repository import SettingsFault, default_test_command, parse_settings
from bot.prompting import clean_untrusted, fence_untrusted, render
from bot.providers.llm.port import Conversation, Message
from bot.providers.sandbox.port import Sandbox
from bot.retrieval import service as retrieval
from bot.retrieval.browse import Browser
from bot.retrieval.overview import overview
from bot.stages.coding import run as coding
from bot.stages.coding.log import user_text
from bot.stages.coding.tools import TOOLS_JSON
from bot.stages.planning import run as planning
from bot.stages.planning.links import notice, other_branches
from bot.stages.planning.schema import PLAN_SCHEMA
from bot.stages.verifying import run as verifying
from bot.stages.verifying.compare import unrunnable
from bot.workflow import judging, texts
from bot.workflow.context import TaskContext
from bot.workflow.journal import TaskEnded
from bot.workflow.records import Coded, CodeOrder, Prepared, Verified, VerifyOrder

CONVENTIONS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md")
CONVENTIONS_BYTES = 3_000
PLAN_CONTEXT_TOKENS = 5_000
MAP_TOKENS = 1_200


async def prepare(context: TaskContext) -> Prepared:
    """Pin the base, read the settings from it, run its tests once."""
    context.services.preload()
    pinned = await context.journal.step("prepare:pin", lambda: pin(context), Prepared)
    settings = pinned.settings
    if settings.test is None:
        raise TaskEnded(texts.no_tests(SETTINGS_PATH))
    bench = context.bench(pinned.base, settings, "baseline")
    try:
        baseline = await context.journal.step(
            "prepare:baseline", lambda: verifying.baseline(bench, pinned.tree, settings), TestReport
        )
        egress = await _asked(context, bench, "prepare", "the tests on the base")
        _require_runnable(context, baseline, egress)
        step_baseline = baseline
        if settings.step_test is not None:
            quick = replace(settings, test=settings.step_test)
            step_baseline = await context.journal.step(
                "prepare:step-baseline", lambda: verifying.baseline(bench, pinned.tree, quick), TestReport
            )
            egress += await _asked(context, bench, "prepare:step", "the tests on the base")
            _require_runnable(context, step_baseline, egress)
    finally:
        await bench.close()
    return replace(pinned, baseline=baseline, step_baseline=step_baseline, egress=egress)


def _require_runnable(context: TaskContext, report: TestReport, egress: tuple[Attempt, ...]) -> None:
    if unrunnable(report):
        missing = lacking(egress, report.tail, "PULLWRIGHT_EGRESS", listed=context.services.egress)
        raise TaskEnded(texts.base_unrunnable(report, missing))


async def _asked(context: TaskContext, bench: Workbench, key: str, phase: str) -> tuple[Attempt, ...]:
    """What the bench's sandboxes asked the way out for, as a step: it is known only while they live."""
    return (await context.journal.step(f"{key}:egress", lambda: bench.attempts(phase), Attempts)).all


_NO_REPORT = TestReport("", 0, 0.0, ())


async def pin(context: TaskContext) -> Prepared:
    """The commit to work on, and the settings that stand in it."""
    pinned = await context.pin()
    if pinned is None:
        raise TaskEnded(texts.gone("the repository is archived or empty"))
    branch, base = pinned
    tree = await context.mirror.tree_of(base)
    paths = await _paths(context, tree)
    given = await context.settings_at(base)
    settings = parse_settings(given) if given is not None else RepositorySettings()
    if isinstance(settings, SettingsFault):
        raise TaskEnded(texts.bad_settings(SETTINGS_PATH, settings.message))
    if settings.test is None:
        settings = replace(settings, test=default_test_command(paths))
    where, conventions = await _conventions(context, base)
    rounds = context.services.loops.rounds_per_pull
    spec = context.spec
    told = notice(other_branches(spec.request, spec.subject.repository.full_name, branch), branch)
    return Prepared(branch, base, tree, settings, _NO_REPORT, _NO_REPORT, where, conventions, rounds, told)


async def _conventions(context: TaskContext, base: CommitId) -> tuple[str, str]:
    """The first instruction file of the base commit, cleaned and cut; a branch cannot change what it is judged by."""
    for path in CONVENTIONS:
        data = await context.mirror.file_at(base, path, limit=1_000_000)
        if data:
            text = clean_untrusted(data.decode("utf-8", "replace")).text
            return path, text[:CONVENTIONS_BYTES]
    return "", ""


async def _paths(context: TaskContext, tree: TreeId) -> tuple[str, ...]:
    return tuple(entry.path for entry in await context.mirror.entries(tree))


async def plan(context: TaskContext, prepared: Prepared) -> Plan:
    """Ask the planner."""
    models = context.services.models
    conversation = Conversation(
        model=models.planner,
        effort=models.planner_effort,
        thinking=models.planner_thinking,
        system=(render("bot.stages.planning", "system.md.j2"),),
        schema=PLAN_SCHEMA,
        max_tokens=models.planner_tokens,
        continued=False,  # it is asked again only when its plan does not hold
    )
    paths = await _paths(context, prepared.tree)
    brief = await context.journal.step("plan:brief", lambda: _plan_brief(context, prepared), str)
    work = planning.PlanningWork("plan", conversation, brief, frozenset(paths))
    planned = await planning.run(work, journal=context.journal, model=context.model())
    if planned.plan is None:
        raise TaskEnded(planned.ending or texts.unexpected())
    plan = planned.plan
    allowed = await context.journal.step("plan:policy", lambda: judging.may_plan(context, prepared, plan), Decision)
    if not allowed.allowed:
        raise TaskEnded(texts.policy_denied(allowed))
    return plan


async def _plan_brief(context: TaskContext, prepared: Prepared) -> str:
    spec = context.spec
    asked = clean_untrusted(f"{spec.title}\n\n{spec.request}")
    shown = await retrieval.context_for(
        context.mirror,
        prepared.tree,
        asked.text,
        PLAN_CONTEXT_TOKENS,
        meaning=context.services.meaning(context.mirror.repository),
    )
    return render(
        "bot.stages.planning",
        "brief.md.j2",
        name=spec.subject.repository.full_name,
        commit=prepared.base,
        test=prepared.settings.test,
        conventions_path=prepared.conventions_path,
        conventions=prepared.conventions,
        context=shown.text,
        request=fence_untrusted("task", asked.text, context.nonce()),
        removed=asked.removed,
    )


async def code(context: TaskContext, order: CodeOrder) -> Coded:
    """Work one step of the plan."""
    prepared = order.prepared
    bench = context.bench(prepared.base, prepared.settings, order.key)
    verifier = verifying.Verifier(
        context.mirror, context.services.scanner, verifying.Checks(prepared.settings, prepared.step_baseline)
    )
    command = prepared.settings.step_test or prepared.settings.test

    async def check(sandbox: Sandbox, change: Change) -> tuple[Failure, ...]:
        return (await verifier.check(sandbox, change, command=command)).failures

    work = coding.StepWork(
        key=order.key,
        conversation=await _coder(context, prepared),
        brief=await _step_brief(context, order),
        start=order.start,
        needs_change=bool(order.step.files),
    )
    try:
        result = await coding.run(
            work,
            coding.Collaborators(context.journal, context.model(order.allowed), bench, check, Browser(context.mirror)),
        )
        egress = await _asked(context, bench, order.key, "the work on a step")
    finally:
        await bench.close()
    if result.ending is not None:
        missing = lacking(egress, "", "PULLWRIGHT_EGRESS", listed=context.services.egress)
        raise TaskEnded(replace(result.ending, next_step=f"{result.ending.next_step}{missing}".strip()))
    return Coded(result.tree, result.summary, result.attempts, result.calls, egress)


async def _coder(context: TaskContext, prepared: Prepared) -> Conversation:
    models = context.services.models
    shown = overview(await _paths(context, prepared.tree), MAP_TOKENS)
    return Conversation(
        model=models.coder,
        effort=models.coder_effort,
        thinking=models.coder_thinking,
        system=(
            render("bot.stages.coding", "system.md.j2"),
            render(
                "bot.stages.coding",
                "map.md.j2",
                name=context.spec.subject.repository.full_name,
                commit=prepared.base,
                test=prepared.settings.step_test or prepared.settings.test,
                conventions_path=prepared.conventions_path,
                conventions=prepared.conventions,
                map=shown,
            ),
        ),
        tools=TOOLS_JSON,
        max_tokens=models.coder_tokens,
    )


async def _step_brief(context: TaskContext, order: CodeOrder) -> Message:
    spec = context.spec
    asked = clean_untrusted(f"{spec.title}\n\n{spec.request}")
    return user_text(
        render(
            "bot.stages.coding",
            "step.md.j2",
            request=fence_untrusted("task", asked.text, context.nonce()),
            steps=order.plan.steps,
            step=order.step,
            done=frozenset(order.done),
        )
    )


async def verify(context: TaskContext, order: VerifyOrder) -> Verified:
    """The full check of a tree in a fresh sandbox."""
    prepared = order.prepared
    base_tree = await context.mirror.tree_of(prepared.base)
    paths = await context.mirror.diff(base_tree, order.tree)
    change = Change(prepared.base, base_tree, order.tree, paths)
    bench = context.bench(prepared.base, prepared.settings, "verify")

    shown: list[verifying.Artefacts] = []

    async def look(sandbox: Sandbox) -> None:
        limits = context.services.policies.limits
        shown[:] = [await verifying.collect(sandbox, prepared.settings, limits)]

    async def act() -> Verified:
        verdict, _ = await verifier_of(context, prepared).verify(bench, change, look)
        left = shown[0] if shown else verifying.Artefacts()
        blobs = await context.mirror.write_blobs([data for _, data in left.kept])
        names = [name for name, _ in left.kept]
        entries = tuple(TreeEntry(name, FileMode.REGULAR, blob) for name, blob in zip(names, blobs, strict=True))
        return Verified(change, verdict, entries, left.not_kept, (await bench.attempts("the full check")).all)

    try:
        return await context.journal.step("verify", act, Verified)
    finally:
        await bench.close()


def verifier_of(context: TaskContext, prepared: Prepared) -> verifying.Verifier:
    """Judges by the full test command."""
    checks = verifying.Checks(prepared.settings, prepared.baseline)
    return verifying.Verifier(context.mirror, context.services.scanner, checks)
