"""What has to pass, whether it does, and what that adds up to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.change import ChangedPath, FileMode, TreeEntry
from bot.domain.ids import BlobId, CommitId, TaskId
from bot.domain.money import MicroUsd, from_dollars
from bot.domain.task import Stage
from bot.domain.verdict import TestCase, TestOutcome, TestReport
from bot.evaluation.judging import (
    Demand,
    Invalid,
    Outcome,
    Pair,
    affordable,
    demand,
    judge,
    laid_over,
    outcome_of,
    total,
)

P, F, S = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED


def report(**outcomes: TestOutcome) -> TestReport:
    cases = tuple(TestCase(name, outcome) for name, outcome in outcomes.items())
    return TestReport("pytest", int(F in outcomes.values()), 1.0, cases)


def cut_short(**outcomes: TestOutcome) -> TestReport:
    return replace(report(**outcomes), broke_off=True)


BASE, HIDDEN, AFTER = report(old=P, flaky=F), report(old=P, new=F, flaky=F), report(old=P, new=P, flaky=F)


def demanded(base: TestReport, hidden: TestReport, after: TestReport) -> Demand:
    found = demand(base, hidden, after)
    assert isinstance(found, Demand)
    return found


def test_what_passes_on_the_commit_has_to_pass_and_what_fails_there_has_not():
    found = demanded(BASE, HIDDEN, AFTER)
    assert found.own == {"new"}
    assert found.others == {"old"}


def test_a_test_that_the_commit_changed_is_its_own():
    found = demanded(report(old=P, kept=P), report(old=F, kept=P), report(old=P, kept=P))
    assert found.own == {"old"}
    assert found.others == {"kept"}


def test_tests_that_cannot_be_collected_make_a_task_and_leave_the_others_others():
    found = demanded(report(old=P), cut_short(collection=F), report(old=P, new=P))
    assert found.own == {"new"}
    assert found.others == {"old"}


def test_when_only_known_tests_could_not_be_collected_they_are_the_commits_own():
    assert demanded(report(old=P), report(collection=F), report(old=P)).own == {"old"}


def test_a_test_that_was_skipped_and_is_not_any_more_is_the_commits_own():
    assert demanded(report(old=P, new=S), report(old=P, new=S), report(old=P, new=P)).own == {"new"}


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ((report(old=F), HIDDEN, AFTER), "the tests do not run on its parent"),
        ((BASE, HIDDEN, cut_short(old=P)), "the tests do not run on the commit itself"),
        ((BASE, HIDDEN, replace(AFTER, timed_out=True)), "the tests do not run on the commit itself"),
        ((BASE, AFTER, AFTER), "its tests pass without it"),
        ((BASE, HIDDEN, report(old=P, new=F)), "its tests pass without it"),
    ],
)
def test_tests_that_prove_nothing_make_no_task(runs: tuple[TestReport, TestReport, TestReport], reason: str):
    assert demand(*runs) == Invalid(reason, proven="run" not in reason)


@pytest.mark.parametrize(
    ("result", "missing", "broken"),
    [
        (AFTER, (), ()),
        (report(old=P, new=P, flaky=F, more=F), (), ()),
        (report(old=P, new=F), ("new",), ()),
        (report(old=P), ("new",), ()),
        (report(old=P, new=S), ("new",), ()),
        (report(old=F, new=P), (), ("old",)),
        (report(**{"command: pytest": P}), ("new",), ("old",)),
    ],
)
def test_solved_is_when_every_one_of_them_passes(result: TestReport, missing: tuple[str, ...], broken: tuple[str, ...]):
    assert judge(demanded(BASE, HIDDEN, AFTER), result) == (missing, broken)


def test_ids_that_hold_an_address_are_the_same_test():
    base, hidden, after, result = (
        report(**{"old[<o at 0x7f01>]": P, "new": new}) if number else report(**{"old[<o at 0x7a22>]": P})
        for number, new in enumerate((F, F, P, P))
    )
    found = demanded(base, hidden, after)
    assert found.own == {"new"}
    assert judge(found, report(**{"old[<o at 0x5511>]": P, "new": P})) == ((), ())
    assert judge(found, result) == ((), ())


def test_a_repository_that_tells_only_how_its_command_ended_can_be_judged():
    passed, failed = report(**{"command: make test": P}), report(**{"command: make test": F})
    found = demanded(passed, failed, passed)
    assert judge(found, passed) == ((), ())
    assert judge(found, failed) == (("command: make test",), ())


def test_hidden_tests_lie_over_the_change():
    def entry(path: str, letter: str) -> TreeEntry:
        return TreeEntry(path, FileMode.REGULAR, BlobId(letter * 40))

    changes = (
        ChangedPath("calc.py", None, entry("calc.py", "a")),
        ChangedPath("gone.py", entry("gone.py", "a"), None),
        ChangedPath("test_calc.py", None, entry("test_calc.py", "a")),
        ChangedPath("test_mine.py", None, entry("test_mine.py", "a")),
    )
    hidden = (
        ChangedPath("test_calc.py", None, entry("test_calc.py", "b")),
        ChangedPath("test_mine.py", entry("test_mine.py", "c"), None),
    )
    put, removed = laid_over(changes, hidden)
    assert put == (entry("calc.py", "a"), entry("test_calc.py", "b"))
    assert removed == ("gone.py", "test_mine.py")


@pytest.mark.parametrize(
    ("stage", "calls", "outcome"),
    [
        (Stage.NEEDS_HUMAN, 3, Outcome.NO_CHANGE),
        (Stage.POLICY_DENIED, 3, Outcome.NO_CHANGE),
        (Stage.OVER_BUDGET, 3, Outcome.NO_CHANGE),
        (Stage.OVER_BUDGET, 0, Outcome.NO_CHANGE),
        (Stage.NEEDS_HUMAN, 0, Outcome.INFRASTRUCTURE),
        (Stage.INFRASTRUCTURE, 3, Outcome.INFRASTRUCTURE),
    ],
)
def test_what_could_not_be_tried_says_nothing_about_a_model(stage: Stage, calls: int, outcome: Outcome):
    assert outcome_of(stage, calls) is outcome
    assert outcome.counts is (outcome is Outcome.NO_CHANGE)


def test_a_pair_begins_only_when_its_worst_case_is_in_the_budget():
    spent, half = [from_dollars("0.20"), from_dollars("0.30")], from_dollars("0.50")
    assert affordable(spent, half, from_dollars("1"))
    assert not affordable(spent, half, MicroUsd(from_dollars("1") - 1))
    assert not affordable([], half, MicroUsd(0))


def pair(outcome: Outcome, micro: int, seconds: float, model: str = "a", earlier: int = 0) -> Pair:
    commit = CommitId("c" * 40)
    return Pair(
        commit, commit, "Add triple", "p", model, TaskId("eval"), outcome,
        spent=MicroUsd(micro), earlier=MicroUsd(earlier), calls=2, seconds=seconds,
    )  # fmt: skip


def test_totals_count_the_money_of_all_and_the_work_of_those_that_were_judged():
    pairs = [
        pair(Outcome.SOLVED, 100, 10.0, earlier=7),
        pair(Outcome.NOT_SOLVED, 200, 30.0),
        pair(Outcome.NO_CHANGE, 60, 20.0),
        pair(Outcome.INFRASTRUCTURE, 1000, 900.0),
        pair(Outcome.SOLVED, 5, 1.0, model="b"),
    ]
    found = total("a", pairs)
    assert (found.judged, found.solved, found.spent) == (3, 1, 1367)
    assert (found.per_solved, found.calls, found.seconds) == (360, 6, 20.0)
    assert total("c", pairs).per_solved is None
