"""What has to pass, whether it does, and what that adds up to. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.domain.change import ChangedPath, TreeEntry
from bot.domain.ids import CommitId, TaskId
from bot.domain.money import ZERO, MicroUsd
from bot.domain.spending import Usage
from bot.domain.task import Stage
from bot.domain.verdict import TestOutcome, TestReport
from bot.evaluation.cutting import Candidate
from bot.stages.verifying.compare import aligned, unrunnable


@dataclass(frozen=True, slots=True)
class Demand:
    """Tests that have to pass, by id: `own` are the commit's, `others` pass without it. `reference` is the run on the commit itself."""

    own: frozenset[str]
    others: frozenset[str]
    reference: TestReport


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why a commit cannot be judged by its tests. `proven` False: they could not be run, and may be another time."""

    reason: str
    proven: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """A task that is valid."""

    candidate: Candidate
    demand: Demand


class Outcome(StrEnum):
    """How one task went with one model. The last two say nothing about the model."""

    SOLVED = "solved"
    NOT_SOLVED = "not solved"
    NO_CHANGE = "no change"
    INFRASTRUCTURE = "infrastructure"
    STOPPED = "stopped"

    @property
    def counts(self) -> bool:
        """Whether the model was judged."""
        return self not in {Outcome.INFRASTRUCTURE, Outcome.STOPPED}


@dataclass(frozen=True, slots=True)
class Pair:
    """One task with one coder model. It is kept as a file, so a field is only ever added with a default."""

    commit: CommitId
    base: CommitId
    title: str
    planner: str
    model: str
    task: TaskId
    outcome: Outcome
    reason: str = ""
    missing: tuple[str, ...] = ()
    """Tests of the commit that do not pass."""
    broken: tuple[str, ...] = ()
    """Tests that passed before and do not now."""
    files: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    """Paths that the change and the commit changed, tests left out."""
    spent: MicroUsd = ZERO
    earlier: MicroUsd = ZERO
    """What tries before this one cost, that said nothing about the model."""
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)

    @property
    def cost(self) -> MicroUsd:
        return MicroUsd(self.spent + self.earlier)


@dataclass(frozen=True, slots=True)
class Total:
    """What the pairs of one model add up to; `judged` leaves out those that say nothing about it, `spent` does not."""

    model: str
    judged: int
    solved: int
    spent: MicroUsd
    per_solved: MicroUsd | None
    calls: int
    seconds: float | None


def demand(base: TestReport, hidden: TestReport, after: TestReport) -> Demand | Invalid:
    """What a solution has to pass, from three runs: on the parent, on the parent with the commit's tests, on the commit; or why
    the task is not valid.

    Everything that passes on the commit has to. A test is the commit's own when it does not pass with the commit's tests alone; when
    those keep the runner from collecting anything, those of the tests that passed on the parent are still others.
    """
    if unrunnable(base):
        return Invalid(f"the tests do not run on its parent{_last(base)}", proven=False)
    if unrunnable(after):
        return Invalid(f"the tests do not run on the commit itself{_last(after)}", proven=False)
    before, tried = aligned(after, base), aligned(after, hidden)
    required = after.ids(TestOutcome.PASSED)
    fresh = required - tried.ids(TestOutcome.PASSED)
    if not fresh:
        return Invalid("its tests pass without it")
    known = {case.id for case in tried.cases}
    own = frozenset(test for test in fresh if test in known or test not in before.ids(TestOutcome.PASSED)) or fresh
    return Demand(own, required - own, after)


def _last(report: TestReport) -> str:
    """The end of what a run said, in brackets; nothing when it said nothing."""
    said = report.tail.strip().rsplit("\n", 1)[-1].strip("= ")[:200]
    return f" ({said})" if said else ""


def judge(wanted: Demand, report: TestReport) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests of the commit that do not pass, and the others that do not; solved when there are neither."""
    passed = aligned(wanted.reference, report).ids(TestOutcome.PASSED)
    return tuple(sorted(wanted.own - passed)), tuple(sorted(wanted.others - passed))


def laid_over(
    changes: Iterable[ChangedPath], hidden: Iterable[ChangedPath]
) -> tuple[tuple[TreeEntry, ...], tuple[str, ...]]:
    """What to put into the base's tree and what to take out, so that it is the change with the hidden tests over it."""
    last = {change.path: change.new for change in (*changes, *hidden)}
    put = tuple(entry for entry in last.values() if entry is not None)
    return put, tuple(path for path, entry in last.items() if entry is None)


def outcome_of(stage: Stage, calls: int) -> Outcome:
    """How a trial went that ended without a change. Without a call it was not tried, unless the budget forbade the first one."""
    if stage in {Stage.INFRASTRUCTURE, Stage.CANCELLED} or (calls == 0 and stage is not Stage.OVER_BUDGET):
        return Outcome.INFRASTRUCTURE
    return Outcome.NO_CHANGE


def affordable(spent: Iterable[MicroUsd], one: MicroUsd, budget: MicroUsd) -> bool:
    """Whether one more pair may begin: at worst it costs all of its own budget."""
    return sum(spent) + one <= budget


def total(model: str, pairs: Sequence[Pair]) -> Total:
    """The figures of one model."""
    mine = [pair for pair in pairs if pair.model == model]
    judged = [pair for pair in mine if pair.outcome.counts]
    solved = sum(pair.outcome is Outcome.SOLVED for pair in judged)
    of_judged = sum(pair.spent for pair in judged)
    return Total(
        model=model,
        judged=len(judged),
        solved=solved,
        spent=MicroUsd(sum(pair.cost for pair in mine)),
        per_solved=MicroUsd(round(of_judged / solved)) if solved else None,
        calls=sum(pair.calls for pair in judged),
        seconds=statistics.median(pair.seconds for pair in judged) if judged else None,
    )
