"""What people and programs read of an evaluation. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from bot.domain.ids import CommitId, short
from bot.domain.money import MicroUsd, dollars, show
from bot.evaluation.cutting import Candidate, Unfit
from bot.evaluation.judging import Outcome, Pair, Total, total

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found in the history: `fit` are the valid tasks, `invalid` those that their tests cannot judge, with the reason."""

    looked: int
    unfit: Mapping[Unfit, int]
    invalid: tuple[tuple[Candidate, str], ...]
    fit: tuple[Candidate, ...]
    untried: int = 0
    """Commits that might make a task as well."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that is known at the end. `not_run` are pairs of commit and model, `why` says why they were not."""

    survey: Survey
    planner: str
    models: tuple[str, ...]
    budget: MicroUsd
    pairs: tuple[Pair, ...] = ()
    not_run: tuple[tuple[CommitId, str], ...] = ()
    why: str = ""

    def wanted(self) -> tuple[tuple[CommitId, str], ...]:
        """Every pair, task by task, so that an early end leaves models that did the same tasks."""
        return tuple((one.commit, model) for one in self.survey.fit for model in self.models)

    def totals(self) -> tuple[Total, ...]:
        return tuple(total(model, self.pairs) for model in self.models)


def surveyed(survey: Survey) -> str:
    """How many commits were looked at, and why others make no task."""
    more = f", {survey.untried} more might" if survey.untried else ""
    lines = [f"{survey.looked} commits looked at: {len(survey.fit)} make a task{more}. {refused(survey)}".strip()]
    lines += [f"  {short(one.commit)} is not counted: {why}. {one.title}" for one, why in survey.invalid]
    lines += [f"  {short(one.commit)} {one.title}" for one in survey.fit]
    return "\n".join(lines)


def refused(survey: Survey) -> str:
    """Why commits make no task, by how many; empty when all do."""
    counts = [f"{number} {reason}" for reason, number in sorted(survey.unfit.items(), key=lambda item: -item[1])]
    proved = f"{len(survey.invalid)} cannot be judged by their tests" if survey.invalid else ""
    told = ", ".join([*counts, *([proved] if proved else [])])
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def offered(pairs: int, each: MicroUsd, before: MicroUsd, worst: MicroUsd) -> str:
    """What is about to be spent, before it is; `worst` includes what earlier runs spent."""
    earlier = f", with {show(before)} of earlier runs" if before else ""
    return f"{pairs} pairs of task and model to run, at most {show(each)} each. All of it costs at most {show(worst)}{earlier}."


def outcome(pair: Pair) -> str:
    """One pair in a line."""
    match pair.outcome:
        case Outcome.SOLVED:
            return "solved"
        case Outcome.NOT_SOLVED:
            own = f"{len(pair.missing)} of the commit's tests fail" if pair.missing else ""
            others = f"{len(pair.broken)} others break" if pair.broken else ""
            first = ", ".join((*pair.missing, *pair.broken)[:_SHOWN])
            return f"not solved: {', '.join(part for part in (own, others) if part)} ({first})"
        case _:
            return f"{pair.outcome.value}: {pair.reason}"


def tables(found: Evaluation) -> tuple[Table, Table]:
    """Every pair, and what they add up to by model."""
    pairs = _table("task", "model", "outcome", "cost", "calls", "time", "files")
    for pair in found.pairs:
        same = len(set(pair.files) & set(pair.wanted))
        pairs.add_row(
            short(pair.commit),
            pair.model,
            pair.outcome.value,
            show(pair.cost),
            str(pair.calls),
            f"{pair.seconds:.0f} s",
            f"{same}/{len(pair.wanted)}" + (f" +{len(pair.files) - same}" if len(pair.files) > same else ""),
        )
    totals = _table("model", "solved", "cost", "per solved", "calls", "median time")
    for one in found.totals():
        totals.add_row(
            one.model,
            f"{one.solved} of {one.judged}",
            show(one.spent),
            show(one.per_solved) if one.per_solved is not None else "–",
            str(one.calls),
            f"{one.seconds:.0f} s" if one.seconds is not None else "–",
        )
    return pairs, totals


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"task", "model", "outcome"} else "right", no_wrap=True)
    return table


def remarks(found: Evaluation) -> str:
    """What the tasks were, why pairs were not solved, which were not run, and why."""
    lines = [f"{short(one.commit)} {one.title}" for one in found.survey.fit]
    lines += [
        f"{short(pair.commit)} × {pair.model}: {outcome(pair)}"
        for pair in found.pairs
        if pair.outcome is not Outcome.SOLVED
    ]
    if found.not_run:
        named = ", ".join(f"{short(commit)} × {model}" for commit, model in found.not_run)
        lines.append(f"Not run, because {found.why}: {named}.")
    return "\n".join(lines)


def told(found: Evaluation) -> dict[str, object]:
    """All of it, for programs."""
    survey = found.survey
    return {
        "looked_at": survey.looked,
        "unfit": {reason.name.lower(): number for reason, number in survey.unfit.items()},
        "invalid": [{"commit": one.commit, "title": one.title, "reason": why} for one, why in survey.invalid],
        "tasks": [_told_task(one) for one in survey.fit],
        "planner": found.planner,
        "models": list(found.models),
        "budget_usd": dollars(found.budget),
        "pairs": [_told_pair(pair) for pair in found.pairs],
        "totals": [_told_total(one) for one in found.totals()],
        "not_run": [{"commit": commit, "model": model, "reason": found.why} for commit, model in found.not_run],
        "cost_usd": dollars(MicroUsd(sum(pair.cost for pair in found.pairs))),
    }


def _told_task(one: Candidate) -> Mapping[str, object]:
    hidden: Sequence[str] = [change.path for change in one.hidden]
    return {"commit": one.commit, "base": one.base, "words": one.words, "hidden": hidden, "files": list(one.files)}


def _told_pair(pair: Pair) -> Mapping[str, object]:
    usage = pair.usage
    return {
        "commit": pair.commit,
        "model": pair.model,
        "task": pair.task,
        "outcome": pair.outcome.value.replace(" ", "_"),
        "reason": pair.reason,
        "missing": list(pair.missing),
        "broken": list(pair.broken),
        "files": list(pair.files),
        "wanted": list(pair.wanted),
        "cost_usd": dollars(pair.cost),
        "calls": pair.calls,
        "seconds": pair.seconds,
        "tokens": {
            "uncached": usage.input,
            "written": usage.write_5m + usage.write_1h,
            "read": usage.read,
            "output": usage.output,
            "thinking": usage.thinking,
        },
    }


def _told_total(one: Total) -> Mapping[str, object]:
    return {
        "model": one.model,
        "judged": one.judged,
        "solved": one.solved,
        "cost_usd": dollars(one.spent),
        "usd_per_solved": dollars(one.per_solved) if one.per_solved is not None else None,
        "calls": one.calls,
        "median_seconds": one.seconds,
    }
