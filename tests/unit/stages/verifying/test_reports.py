from bot.domain.verdict import TestOutcome
from bot.providers.sandbox.port import CommandResult
from bot.stages.verifying.reports import from_junit, from_unittest, report

JUNIT = b"""<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.test_a" name="test_ok"/>
<testcase classname="tests.test_a" name="test_bad"><failure message="assert 1 == 2">Traceback</failure></testcase>
<testcase classname="tests.test_a" name="test_err"><error message="boom"/></testcase>
<testcase classname="tests.test_a" name="test_skip"><skipped/></testcase>
</testsuite></testsuites>"""

DJANGO = """test_one (queries.tests.QTests.test_one) ... ok
test_two (queries.tests.QTests.test_two)
A line of documentation. ... FAIL
test_three (queries.tests.QTests.test_three) ... skipped 'no database'
test_old (queries.tests.QTests) ... ERROR
setUpClass (queries.tests.Broken) ... ERROR

======================================================================
FAIL: test_two (queries.tests.QTests.test_two)
A line of documentation.
----------------------------------------------------------------------
Traceback (most recent call last):
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 4 tests in 0.01s
"""


def result(code: int = 0, out: str = "", *, timed_out: bool = False) -> CommandResult:
    return CommandResult(code, out, "", 1.0, timed_out)


def test_junit_gives_each_case_its_outcome_and_message():
    cases = {case.id: case for case in from_junit(JUNIT)}
    assert cases["tests.test_a::test_ok"].outcome is TestOutcome.PASSED
    assert cases["tests.test_a::test_bad"].outcome is TestOutcome.FAILED
    assert "assert 1 == 2" in cases["tests.test_a::test_bad"].message
    assert cases["tests.test_a::test_err"].outcome is TestOutcome.FAILED
    assert cases["tests.test_a::test_skip"].outcome is TestOutcome.SKIPPED


def test_a_case_that_appears_twice_counts_as_its_worse_outcome():
    twice = b'<t><testcase name="a"/><testcase name="a"><failure/></testcase></t>'
    assert [case.outcome for case in from_junit(twice)] == [TestOutcome.FAILED]


def test_entities_and_damage_in_a_report_from_the_sandbox_give_nothing():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><t><testcase name="&b;"/></t>'
    assert from_junit(bomb) == ()
    assert from_junit(JUNIT[:80]) == ()
    assert from_junit(b"\x00") == ()


def test_unittest_lines_are_read_with_documentation_between():
    cases = {case.id: case.outcome for case in from_unittest(DJANGO)}
    assert cases == {
        "queries.tests.QTests.test_one": TestOutcome.PASSED,
        "queries.tests.QTests.test_two": TestOutcome.FAILED,
        "queries.tests.QTests.test_three": TestOutcome.SKIPPED,
        "queries.tests.QTests.test_old": TestOutcome.FAILED,
        "queries.tests.Broken.setUpClass": TestOutcome.FAILED,
    }


def test_the_failure_of_a_unittest_carries_its_traceback():
    failed = next(case for case in from_unittest(DJANGO) if case.id.endswith("test_two"))
    assert "1 != 2" in failed.message


def test_without_cases_the_command_is_the_case():
    passed = report("make check", result(), None)
    failed = report("make check", result(2, "it broke"), None)
    assert [case.id for case in passed.cases] == ["command: make check"]
    assert passed.cases[0].outcome is TestOutcome.PASSED
    assert failed.cases[0].outcome is TestOutcome.FAILED
    assert "it broke" in failed.cases[0].message


def test_junit_is_preferred_to_text():
    assert len(report("x", result(1, DJANGO), JUNIT).cases) == 4
    assert len(report("x", result(1, DJANGO), b"broken").cases) == 5


def test_a_unittest_run_that_does_not_say_how_many_it_ran_broke_off():
    begun = DJANGO.partition("test_three")[0]
    assert report("manage.py test", result(1, begun), None).broke_off
    assert not report("manage.py test", result(1, DJANGO), None).broke_off
    assert not report("manage.py test", result(1, begun, timed_out=True), None).broke_off


def test_a_junit_run_broke_off_when_its_exit_says_so_and_no_case_does():
    passed = b'<t><testcase name="a"/></t>'
    assert report("pytest", result(3), passed).broke_off
    assert report("pytest", result(139), passed).broke_off
    assert not report("pytest", result(1), passed).broke_off
    assert not report("go test", result(2), JUNIT).broke_off
