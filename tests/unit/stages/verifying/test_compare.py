from collections.abc import Mapping
from dataclasses import replace

from bot.domain.verdict import FailureKind, Finding, TestCase, TestOutcome, TestReport
from bot.stages.verifying.compare import aligned, compare, from_findings, normalised, signature, unrunnable

P, F, S = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED


def run(exit_code: int = 0, *, timed_out: bool = False, **cases: TestOutcome) -> TestReport:
    made = tuple(TestCase(name, outcome, "it failed" if outcome is F else "") for name, outcome in cases.items())
    return TestReport("pytest", exit_code, 1.0, made, timed_out, "tail")


def named(cases: Mapping[str, TestOutcome], exit_code: int = 0) -> TestReport:
    """A run whose cases have names that are no identifiers."""
    made = tuple(TestCase(name, outcome, "it failed" if outcome is F else "") for name, outcome in cases.items())
    return TestReport("pytest", exit_code, 1.0, made, False, "tail")


def command(exit_code: int) -> TestReport:
    outcome = P if exit_code == 0 else F
    return TestReport("make", exit_code, 1.0, (TestCase("command: make", outcome),))


def kinds(before: TestReport, after: TestReport) -> list[FailureKind]:
    return [failure.kind for failure in compare(before, after)]


def test_nothing_broken_is_no_failure():
    assert kinds(run(a=P), run(a=P, b=P)) == []


def test_a_test_that_passed_and_fails_is_broken():
    assert kinds(run(a=P), run(1, a=F)) == [FailureKind.BROKE_TEST]


def test_a_test_that_failed_before_may_still_fail():
    assert kinds(run(1, a=P, b=F), run(1, a=P, b=F)) == []


def test_a_test_that_vanished_is_a_failure():
    assert kinds(run(a=P, b=P), run(a=P)) == [FailureKind.VANISHED_TEST]


def test_a_test_may_become_cases_with_parameters():
    assert kinds(run(a=P), named({"a[one]": P, "a[two]": P})) == []
    assert kinds(run(a=P), named({"a[one]": P, "a[two]": F}, 1)) == [FailureKind.NEW_TEST_FAILS]


def test_a_case_with_parameters_may_not_vanish_nor_all_be_skipped():
    assert kinds(named({"a[one]": P, "a[two]": P}), named({"a[one]": P})) == [FailureKind.VANISHED_TEST]
    assert kinds(run(a=P), named({"a[one]": S})) == [FailureKind.VANISHED_TEST]


def test_a_case_whose_parameters_hold_the_time_is_the_same_case():
    before = named({"a[09:15:01 2026-11-29]": P, "a[<Thing at 0x7f01>]": F, "b": P})
    after = named({"a[09:15:59 2026-11-29]": P, "a[<Thing at 0x7f02>]": F, "b": P}, 1)
    assert aligned(before, after).cases == before.cases
    assert kinds(before, aligned(before, after)) == []


def test_only_as_many_cases_are_taken_for_the_same_as_there_were():
    before, after = named({"a[x1]": P, "a[x2]": P}), named({"a[x1]": P, "a[y2]": P})
    assert kinds(before, aligned(before, after)) == [FailureKind.VANISHED_TEST]


def test_a_test_that_is_skipped_now_is_a_failure():
    assert kinds(run(a=P), run(a=S)) == [FailureKind.VANISHED_TEST]


def test_a_test_that_failed_before_may_vanish():
    assert kinds(run(1, a=P, b=F), run(a=P)) == []


def test_a_new_test_has_to_pass():
    assert kinds(run(a=P), run(1, a=P, b=F)) == [FailureKind.NEW_TEST_FAILS]


def test_a_run_out_of_time_is_one_failure():
    assert kinds(run(a=P), run(-1, timed_out=True)) == [FailureKind.COMMAND]


def test_a_failing_exit_that_no_test_explains_is_a_failure():
    assert kinds(run(a=P), run(3, a=P)) == [FailureKind.COMMAND]


def test_the_bases_own_failing_exit_is_not_held_against_the_change():
    assert kinds(run(3, a=P), run(3, a=P)) == []


def test_a_bare_command_is_compared_by_its_exit():
    assert kinds(command(0), command(0)) == []
    assert kinds(command(0), command(1)) == [FailureKind.BROKE_TEST]
    assert kinds(command(1), command(1)) == []


def test_tests_that_give_way_to_a_bare_command_have_vanished():
    assert FailureKind.VANISHED_TEST in kinds(run(a=P), command(0))


def test_a_base_whose_tests_do_not_run_cannot_be_compared_with():
    assert unrunnable(command(1))
    assert unrunnable(run(2, a=F))
    assert not unrunnable(run(1, a=P, b=F))


def test_a_base_whose_tests_break_off_cannot_be_compared_with():
    assert unrunnable(replace(run(3, a=P), broke_off=True))


def test_a_run_that_breaks_off_is_one_failure_and_not_as_many_as_it_did_not_reach():
    after = replace(run(139, a=P), broke_off=True)
    assert kinds(run(a=P, b=P, c=P), after) == [FailureKind.COMMAND]
    assert kinds(run(a=P, b=P, c=P), replace(after, cases=run(139, a=F).cases)) == [
        FailureKind.BROKE_TEST,
        FailureKind.COMMAND,
    ]


def test_the_same_fault_has_the_same_signature_whatever_its_numbers():
    one = signature(FailureKind.BROKE_TEST, "t", "at 0x7f3a in /tmp/x1/a.py line 10 after 0.31s")
    two = signature(FailureKind.BROKE_TEST, "t", "at 0x11 in /tmp/zzz/a.py line 99 after 12.2s")
    assert one == two
    assert one != signature(FailureKind.BROKE_TEST, "t", "something else")
    assert normalised("a  b\n c") == "a b c"


def test_findings_become_failures_with_place_and_advice():
    finding = Finding("weak-hash", "a.py", 3, "Use sha256.", "f:1")
    (failure,) = from_findings((finding,))
    assert failure.subject == "weak-hash at a.py:3"
    assert failure.detail == "Use sha256."
