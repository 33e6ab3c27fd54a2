"""`pullwright eval`: tasks cut from a clone's history, each worked by two models and judged by the tests of the commit."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from bot.commands.kept import Kept
from bot.commands.serve import sandboxes
from bot.commands.trials import Trials
from bot.custody.digest import borrowed, root_of
from bot.custody.faults import LineFault
from bot.custody.git import GitError
from bot.custody.grammar import visible
from bot.custody.history import walk
from bot.domain.errors import UserError
from bot.domain.ids import CommitId, short
from bot.domain.money import ZERO, MicroUsd, from_dollars
from bot.domain.repository import SETTINGS_PATH
from bot.evaluation import report
from bot.evaluation.cutting import Candidate, Unfit, cut
from bot.evaluation.judging import Demand, Invalid, Outcome, Pair, Task, affordable
from bot.evaluation.report import Evaluation, Survey
from bot.providers.llm.pricing import PriceBook, UnknownPriceError
from bot.settings import Settings, load_policies
from bot.wiring import local

MOST_COMMITS = 1_000
_TRIED = 4
"""Commits whose tests are tried, for each task that is wanted: each costs three runs of the checks."""
_VENDOR = "anthropic"
_INTERRUPTED = "it was interrupted"
_EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. `models` empty: the coder's and the planner's; `budget` None: as much as all pairs may cost at worst.

    `agreed` is shown what it costs at worst before anything is spent; `announce` gets the JSON, last.
    """

    directory: Path
    announce: Callable[[str], None]
    agreed: Callable[[str], bool]
    commits: int = 5
    models: tuple[str, ...] = ()
    budget: MicroUsd | None = None
    keep: Path | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """What both halves need."""

    settings: Settings
    request: Request
    models: tuple[str, ...]
    kept: Kept
    screen: Console

    def tell(self, text: str) -> None:
        self.screen.print(visible(text), markup=False, soft_wrap=True)

    def telling(self, prefix: str) -> Callable[[str], None]:
        return lambda text: self.tell(prefix + text)

    def done(self, commit: CommitId, model: str) -> Pair | None:
        """The pair, if an earlier run judged it."""
        pair = self.before(commit, model)
        return pair if pair is not None and pair.outcome.counts else None

    def before(self, commit: CommitId, model: str) -> Pair | None:
        """What an earlier run kept of it, judged or not."""
        return self.kept.pair(commit, self.settings.planner_model, model)

    @property
    def each(self) -> MicroUsd:
        return from_dollars(str(self.settings.budget_usd))


def run(settings: Settings, request: Request) -> int:
    """0: every pair was judged; 1: some were not; 130: interrupted. Raises UserError."""
    settings.required_for_models()
    models = request.models or tuple(dict.fromkeys((settings.coder_model, settings.planner_model)))
    _require_known((settings.planner_model, *models))
    work = _Work(settings, request, models, Kept.at(request.keep), Console(stderr=True, highlight=False))
    found = asyncio.run(_cut(work))
    survey, tasks = asyncio.run(_examined(work, found)) if found.candidates else (_nothing(found), {})
    work.tell(report.surveyed(survey))
    if not survey.fit:
        hint = f"It takes a commit with a test that fails before it, and tests that run in a sandbox ({SETTINGS_PATH} says how)."
        raise UserError(f"No commit of {request.directory} makes a task. {report.refused(survey)}", hint)
    pairs = Evaluation(survey, settings.planner_model, models, ZERO).wanted()
    before = MicroUsd(sum(pair.cost for key in pairs if (pair := work.before(*key)) is not None))
    to_run = sum(work.done(*key) is None for key in pairs)
    worst = MicroUsd(before + to_run * work.each)
    budget = worst if request.budget is None else request.budget
    if to_run and not request.agreed(report.offered(to_run, work.each, before, min(worst, budget))):
        work.tell("Nothing was spent.")
        return 1
    asked = Evaluation(survey, settings.planner_model, models, budget)
    return _show(work, asyncio.run(_worked(work, found, asked, tasks)))


def _nothing(found: _Cut) -> Survey:
    return Survey(found.looked, found.unfit, (), ())


def _require_known(models: tuple[str, ...]) -> None:
    book = PriceBook.load()
    known = sorted({row.model for row in book.rows if row.vendor == _VENDOR})
    for model in models:
        try:
            fine = book.of(model).vendor == _VENDOR
        except UnknownPriceError:
            fine = False
        if not fine:
            raise UserError(f"{visible(model)} is no model that can be asked.", f"Known are {', '.join(known)}.")


@dataclass(frozen=True, slots=True)
class _Cut:
    """What a clone's history offers, before any test was run; `settings` are those of its newest commit."""

    clone: Path
    settings: bytes | None
    looked: int
    unfit: Mapping[Unfit, int]
    candidates: tuple[Candidate, ...]


async def _cut(work: _Work) -> _Cut:
    """Commits from the newest on, until there are enough that might make a task."""
    directory, policies = work.request.directory, load_policies(work.settings.policies)
    looked, unfit, candidates, settings = 0, Counter[Unfit](), list[Candidate](), None
    try:
        async with borrowed(clone := root_of(directory)) as mirror:
            async for facts in walk(mirror, MOST_COMMITS):
                if not looked:
                    settings = await mirror.file_at(facts.id, SETTINGS_PATH, limit=100_000)
                looked += 1
                one = cut(facts, policies)
                if isinstance(one, Unfit):
                    unfit[one] += 1
                else:
                    candidates.append(one)
                if len(candidates) >= _TRIED * work.request.commits:
                    break
    except LineFault as fault:
        said, hint = _UNREADABLE.get(fault.rule, (f"cannot be read: {fault.meaning}", ""))
        raise UserError(f"{directory} {said}", hint) from None
    except GitError as fault:
        raise UserError(f"The history of {directory} cannot be read: {fault}", "Fetch what is missing.") from fault
    return _Cut(clone, settings, looked, unfit, tuple(candidates))


_UNREADABLE = {
    "not_a_repository": ("is no git repository.", "DIR is a clone with its history."),
    "commit_absent": ("has no commit.", "DIR is a clone with its history."),
}


@asynccontextmanager
async def _trials(work: _Work, found: _Cut) -> AsyncIterator[Trials]:
    async with sandboxes(work.settings) as endpoint, local(work.settings, endpoint) as services:
        yield Trials(services, found.clone, found.settings, int(time.time()))


async def _examined(work: _Work, found: _Cut) -> tuple[Survey, Mapping[CommitId, Task]]:
    """Which candidates are valid, the newest first, until they are enough. No model is asked."""
    invalid, fit, tasks = list[tuple[Candidate, str]](), list[Candidate](), dict[CommitId, Task]()
    async with _trials(work, found) as trials:
        for one in found.candidates:
            proved = await _what_it_proves(work, trials, one)
            if isinstance(proved, Invalid):
                invalid.append((one, proved.reason))
                continue
            fit.append(one)
            tasks[one.commit] = Task(one, proved)
            if len(fit) == work.request.commits:
                break
    untried = len(found.candidates) - len(fit) - len(invalid)
    return Survey(found.looked, found.unfit, tuple(invalid), tuple(fit), untried), tasks


async def _what_it_proves(work: _Work, trials: Trials, one: Candidate) -> Demand | Invalid:
    found = work.kept.found(one.commit)
    if found is None:
        work.tell(f"{short(one.commit)} {one.title}: do its tests prove anything?")
        found = await trials.examine(one)
        if isinstance(found, Demand) or found.proven:
            work.kept.put_found(one.commit, found)
    return found


async def _worked(work: _Work, source: _Cut, found: Evaluation, tasks: Mapping[CommitId, Task]) -> Evaluation:
    """All pairs, task by task, as far as the budget goes and until somebody interrupts."""
    wanted, why = found.wanted(), ""
    pairs = {key: pair for key in wanted if (pair := work.done(*key)) is not None}
    spent = {key: pair.cost for key in wanted if (pair := work.before(*key)) is not None}
    try:
        async with _trials(work, source) as trials:
            for number, (commit, model) in enumerate(wanted, 1):
                if (commit, model) in pairs:
                    continue
                if not affordable(spent.values(), work.each, found.budget):
                    why = "the budget for all would be passed"
                    break
                tell = work.telling(f"[{number}/{len(wanted)}] {short(commit)} {model}: ")
                trial = await trials.attempt(tasks[commit], model, tell)
                pair = replace(trial, earlier=spent.get((commit, model), ZERO))
                pairs[commit, model], spent[commit, model] = pair, pair.cost
                work.kept.put_pair(pair)
                tell(report.outcome(pair))
                if pair.outcome is Outcome.STOPPED:
                    why = _INTERRUPTED
                    break
    except asyncio.CancelledError:
        why = _INTERRUPTED
    done = tuple(pairs[key] for key in wanted if key in pairs)
    return replace(found, pairs=done, not_run=tuple(key for key in wanted if key not in pairs), why=why)


def _show(work: _Work, found: Evaluation) -> int:
    screen = Console(stderr=work.request.as_json, highlight=False)
    for table in report.tables(found):
        screen.print(table, "")
    if remarks := report.remarks(found):
        screen.print(visible(remarks), markup=False, soft_wrap=True)
    if work.request.as_json:
        work.request.announce(json.dumps(report.told(found)))
    if found.why == _INTERRUPTED:
        return _EXIT_INTERRUPTED
    return 1 if found.not_run or any(not pair.outcome.counts for pair in found.pairs) else 0
