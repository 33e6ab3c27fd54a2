"""One task of an evaluation: whether its tests prove anything, and the whole pipeline on it with one model. Nothing is printed here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.custody.clones import number_of
from bot.custody.digest import borrowed
from bot.custody.mirror import Mirror
from bot.domain.change import ChangedPath, FileMode
from bot.domain.errors import UserError
from bot.domain.event import Actor, Subject
from bot.domain.ids import CommitId, InstallationId, RepositoryId, TaskId, TreeId, UserId, short
from bot.domain.repository import RepositoryRef
from bot.domain.task import TaskSpec
from bot.domain.verdict import TestReport
from bot.evaluation.cutting import Candidate
from bot.evaluation.judging import Demand, Invalid, Outcome, Pair, Task, demand, judge, laid_over, outcome_of
from bot.policy.paths import is_test
from bot.stages.verifying import run as verifying
from bot.workflow import segments
from bot.workflow.journal import TaskEnded
from bot.workflow.local import FAULTS, LocalContext, Terminal, ending_of, propose
from bot.workflow.services import Services

_NOBODY = Actor(UserId(0), "eval", is_bot=False)

Tell = Callable[[str], None]


class _Checks(LocalContext):
    """Runs the repository's own checks on trees of a store that knows the whole history; no model is asked here."""

    def __init__(
        self, services: Services, spec: TaskSpec, mirror: Mirror, base: CommitId, settings: bytes | None
    ) -> None:
        super().__init__(services, spec, mirror.git_dir, base, settings=settings)
        self.mirror = mirror
        self._base = base

    async def pin(self) -> tuple[str, CommitId]:
        return self._base, self._base


@dataclass(frozen=True, slots=True)
class Trials:
    """Works tasks cut from one clone. `settings` are those of its newest commit, for parents that have none; `began` tells this
    evaluation's tasks from those of others in the ledger."""

    services: Services
    clone: Path
    settings: bytes | None
    began: int

    async def examine(self, one: Candidate) -> Demand | Invalid:
        """What a solution has to pass, or why the task is not valid."""
        try:
            async with borrowed(self.clone, self._number(one)) as mirror:
                before, tried = await mirror.tree_of(one.base), await _overlaid(mirror, one.base, (), one.hidden)
                trees = (before, tried, await mirror.tree_of(one.commit))
                base, hidden, after = await self._checked(one, mirror, trees)
        except FAULTS as fault:
            return Invalid(f"the checks could not run ({_why(fault)})", proven=False)
        return demand(base, hidden, after)

    async def attempt(self, task: Task, model: str, tell: Tell) -> Pair:
        """The pipeline on the task; a trial that is cancelled is a pair, too, because it cost something."""
        one = task.candidate
        spec, began = self._spec(one, model), time.monotonic()
        pair = Pair(
            one.commit, one.base, one.title, self.services.models.planner, model, spec.id, Outcome.STOPPED,
            reason="it was interrupted", wanted=one.files,
        )  # fmt: skip
        try:
            pair = await self._worked(task, spec, pair, tell)
        except asyncio.CancelledError:
            tell("stopping")
        totals = await self.services.ledger.totals(spec.id)
        seconds = pair.seconds or _since(began)
        return replace(pair, spent=totals.spent, calls=totals.calls, usage=totals.usage, seconds=seconds)

    async def _worked(self, task: Task, spec: TaskSpec, pair: Pair, tell: Tell) -> Pair:
        with TemporaryDirectory(prefix="trial-", dir=self.services.home) as home:
            models = replace(self.services.models, coder=pair.model)
            context = LocalContext(
                replace(self.services, home=Path(home), models=models),
                spec,
                self.clone,
                pair.base,
                settings=self.settings,
            )
            began = time.monotonic()
            try:
                # The one store its work is answered from holds the base and nothing else of the history.
                await context.mirror.from_directory(self.clone, pair.base, alone=True)
                proposal = await propose(context, Terminal(lambda stage, _: tell(stage.value), None))
            except FAULTS as fault:
                ending = ending_of(fault)
                calls = (await context.cost()).calls
                return replace(pair, outcome=outcome_of(ending.stage, calls), reason=ending.reason)
            pair = replace(pair, seconds=_since(began))
            tell("judging")
            change = proposal.built.verified.change
            files = tuple(path.path for path in change.paths if not is_test(path.path))
            try:
                report = await self._graded(task, context.mirror, change.paths)
            except FAULTS as fault:
                return replace(pair, outcome=Outcome.INFRASTRUCTURE, reason=_why(fault), files=files)
        missing, broken = judge(task.demand, report)
        outcome = Outcome.NOT_SOLVED if missing or broken else Outcome.SOLVED
        return replace(pair, outcome=outcome, reason="", missing=missing, broken=broken, files=files)

    async def _graded(self, task: Task, coders: Mirror, changes: tuple[ChangedPath, ...]) -> TestReport:
        """The checks on the change with the hidden tests over it, in a store and a sandbox that the coder never had."""
        one = task.candidate
        sides = (change.new for change in changes)
        contents = await coders.blobs(
            side.blob for side in sides if side is not None and side.mode is not FileMode.GITLINK
        )
        async with borrowed(self.clone, self._number(one)) as mirror:
            await mirror.write_blobs(tuple(contents.values()))
            tree = await _overlaid(mirror, one.base, changes, one.hidden)
            (report,) = await self._checked(one, mirror, (tree,))
        return report

    async def _checked(self, one: Candidate, mirror: Mirror, trees: tuple[TreeId, ...]) -> tuple[TestReport, ...]:
        """One run of the checks for each tree, by the settings that stand in the parent, each in a fresh sandbox."""
        context = _Checks(self.services, self._spec(one, "checks"), mirror, one.base, self.settings)
        settings = (await segments.pin(context)).settings
        if settings.test is None:
            raise UserError("no test command is known for its parent")
        bench = context.bench(one.base, settings, "checks")
        try:
            return tuple([await verifying.baseline(bench, tree, settings) for tree in trees])
        finally:
            await bench.close()

    def _number(self, one: Candidate) -> RepositoryId:
        """Each parent counts as a repository of its own: what set-up left on a later one would hold the solution."""
        told = f"{number_of(self.clone)}:{one.base}"
        return RepositoryId(int(sha256(told.encode()).hexdigest()[:15], 16))

    def _spec(self, one: Candidate, model: str) -> TaskSpec:
        number = self._number(one)
        reference = RepositoryRef(number, f"local/{self.clone.resolve().name}", InstallationId(0))
        return TaskSpec(
            TaskId(f"eval:{short(one.commit)}:{model}:{self.began}"),
            Subject(reference, 0, is_pull=False),
            _NOBODY,
            one.title,
            one.words,
            self.services.budget,
        )


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)


def _why(fault: Exception) -> str:
    reason = fault.ending.reason if isinstance(fault, TaskEnded) else str(fault)
    return reason.strip().split("\n", 1)[0][:300]


async def _overlaid(
    mirror: Mirror, base: CommitId, changes: tuple[ChangedPath, ...], hidden: tuple[ChangedPath, ...]
) -> TreeId:
    put, removed = laid_over(changes, hidden)
    return await mirror.write_tree(await mirror.tree_of(base), put=put, removed=removed)
