"""`pullwright run`: the pipeline on a local clone. Shows plan, evidence, diff, cost and digest; commits what is approved by its digest."""

from __future__ import annotations

import asyncio
import getpass
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bot.commands.serve import sandboxes
from bot.custody.clones import current_branch, give_branch, number_of
from bot.custody.faults import LineFault, UpstreamFault
from bot.domain.errors import UserError
from bot.domain.event import Actor, Subject
from bot.domain.ids import InstallationId, TaskId, UserId, short
from bot.domain.money import dollars, from_dollars
from bot.domain.repository import RepositoryRef
from bot.domain.task import Ending, Stage, TaskSpec
from bot.settings import Settings
from bot.stages.planning.texts import plan_hash, render_plan
from bot.stages.publishing.texts import HEADLINES, Cost, cost_line, evidence
from bot.wiring import local
from bot.workflow.building import Progress
from bot.workflow.local import FAULTS, HASH, LocalContext, Proposal, Terminal, ending_of, propose

TITLE = 80


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. `base` is a branch of the clone; empty: the one that is checked out. `announce` gets the JSON, last."""

    clone: Path
    task: str
    announce: Callable[[str], None]
    base: str = ""
    as_json: bool = False


_TRIES = 3


class _Screen:
    """Everything for people; on standard error when a program reads standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self.console = Console(stderr=as_json, highlight=False)
        self._began = time.monotonic()
        self._told: set[str] = set()

    def tell(self, stage: Stage, progress: Progress) -> None:
        titles = {step.id: step.title for step in progress.plan.steps} if progress.plan else {}
        if progress.plan is not None:
            self._once(f"Plan {short(plan_hash(progress.plan))}:\n\n{render_plan(progress.plan)}\n")
        self._once(HEADLINES[stage])
        for step in progress.done:
            self._once(f"done: {titles.get(step, step)}")
        if progress.working is not None:
            self._once(f"working on: {titles.get(progress.working, progress.working)}")

    def show(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    async def ask(self, question: str) -> str:
        """One line from standard input; a program reads the question on standard error."""
        self.console.print(question, end="", markup=False, soft_wrap=True)
        typed: str = await asyncio.to_thread(sys.stdin.readline)
        return typed.strip().lower()

    def _once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self.console.print(f"  [dim]{time.monotonic() - self._began:5.1f} s[/dim]  ", end="")
            self.show(line)


async def run(settings: Settings, request: Request) -> int:
    """0: proposed, and committed if approved; 1: ended without a change. Raises UserError."""
    settings.required_for_models()
    spec, branch = _spec(settings, request)
    screen = _Screen(as_json=request.as_json)
    screen.show(f"The last commit of {branch}; files that are not committed are not looked at.")
    async with sandboxes(settings) as endpoint, local(settings, endpoint) as services:
        context = LocalContext(services, spec, request.clone, branch)
        try:
            proposal = await propose(context, Terminal(screen.tell, screen.ask))
        except FAULTS as fault:
            if isinstance(fault, UpstreamFault) and fault.rule == "commit_absent":
                hint = "Commit something first, or name another branch: --base main."
                raise UserError(f"{branch} has no commit in {request.clone}.", hint) from fault
            return await _ended(context, screen, request, ending_of(fault))
        return await _offer(context, screen, request, proposal)


def _spec(settings: Settings, request: Request) -> tuple[TaskSpec, str]:
    if not request.task.strip():
        raise UserError("The task is empty.", 'Say what is wanted: pullwright run --repo DIR "Add a …".')
    try:
        branch = request.base or current_branch(request.clone)
    except (LineFault, OSError, ValueError):
        raise UserError(f"{request.clone} is no git repository.", "--repo names a clone.") from None
    if branch is None:
        raise UserError("No branch is checked out.", "Name one: --base main.")
    number = number_of(request.clone)
    reference = RepositoryRef(number, f"local/{request.clone.resolve().name}", InstallationId(0))
    title = request.task.strip().splitlines()[0][:TITLE]
    spec = TaskSpec(
        TaskId(f"run:{number}:{int(time.time())}"),
        Subject(reference, 0, is_pull=False),
        Actor(UserId(0), getpass.getuser(), is_bot=False),
        title,
        request.task.strip(),
        from_dollars(str(settings.budget_usd)),
    )
    return spec, branch


async def _ended(context: LocalContext, screen: _Screen, request: Request, ending: Ending) -> int:
    cost = await context.cost()
    if request.as_json:
        told = {"task": context.spec.id, "ended": ending.stage.value, "reason": ending.reason, "branch": None}
        request.announce(json.dumps({**told, **_costs(cost)}))
    screen.show(f"\n{ending.reason}\n\n{cost_line(cost)}")
    return 1


async def _offer(context: LocalContext, screen: _Screen, request: Request, proposal: Proposal) -> int:
    """Show the change and commit it to a branch of its own if its digest is typed."""
    built, cost = proposal.built, await context.cost()
    verdict = built.verified.verdict
    screen.show(f"\n{proposal.diff}\n{evidence(verdict)}\n- {cost_line(cost)}\n")
    screen.show(f"Tree: {verdict.tree}\nChange digest: {proposal.digest}")
    approved = await _approved(screen, proposal)
    if approved:
        base = built.prepared.base
        await give_branch(context.mirror, request.clone, proposal.branch, proposal.commit, base=base)
        screen.show(f"Committed. git switch {proposal.branch}")
    if request.as_json:
        request.announce(json.dumps(_told(context, proposal, cost, committed=approved)))
    return 0


async def _approved(screen: _Screen, proposal: Proposal) -> bool:
    """Whether the change's digest was typed. What was paid for is not lost by a slip of the fingers; an empty line leaves it."""
    for _ in range(_TRIES):
        typed = await screen.ask(f"Its first 12 characters commit this to {proposal.branch}; nothing leaves it: ")
        if HASH.fullmatch(typed) and proposal.digest.startswith(typed):
            return True
        if not typed:
            break
        screen.show("That is not this change's digest.")
    screen.show("Nothing was committed.")
    return False


def _told(context: LocalContext, proposal: Proposal, cost: Cost, *, committed: bool) -> dict[str, object]:
    prepared, verdict = proposal.built.prepared, proposal.built.verified.verdict
    return {
        "task": context.spec.id,
        "base": {"ref": prepared.base_ref, "commit": prepared.base},
        "plan": render_plan(proposal.built.plan),
        "digest": proposal.digest,
        "tree": verdict.tree,
        "commit": proposal.commit if committed else None,
        "branch": proposal.branch if committed else None,
        "diff": proposal.diff,
        **_costs(cost),
    }


def _costs(cost: Cost) -> dict[str, object]:
    return {"cost_usd": dollars(cost.spent), "calls": cost.calls}
