"""What a change broke: a pure comparison of the run before with the run after (design §6, "baseline first")."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from bot.domain.verdict import Failure, FailureKind, Finding, TestCase, TestOutcome, TestReport

_NOISE = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    (re.compile(r"/[\w./-]+/"), "…/"),
    (re.compile(r"(?<![A-Za-z_])\d+(?:\.\d+)?"), "N"),
    (re.compile(r"\b[0-9a-f]{12,}\b"), "H"),
    (re.compile(r"\s+"), " "),
)


def normalised(message: str) -> str:
    """The message without what differs between two runs of the same fault: numbers, addresses, paths, hashes, spacing."""
    for pattern, replacement in _NOISE:
        message = pattern.sub(replacement, message)
    return message.strip()[-400:]


def signature(kind: FailureKind, subject: str, message: str = "") -> str:
    """Equal when the same thing fails in the same way again."""
    basis = f"{kind.value}\0{subject}\0{normalised(message)}"
    return hashlib.sha256(basis.encode()).hexdigest()[:24]


def aligned(before: TestReport, after: TestReport) -> TestReport:
    """The run after with the ids of the run before, where only numbers or addresses in a test's parameters differ.

    Runners make ids of parameters that hold the time, a counter or an object's address; such a test is the same test.
    """
    known, now = {case.id for case in before.cases}, {case.id for case in after.cases}
    gone: dict[str, list[str]] = {}
    for case in before.cases:
        if case.id not in now and "[" in case.id:
            gone.setdefault(_stable(case.id), []).append(case.id)
    cases = []
    for case in after.cases:
        left = gone.get(_stable(case.id)) if case.id not in known and "[" in case.id else None
        cases.append(replace(case, id=left.pop(0)) if left else case)
    return replace(after, cases=tuple(cases))


def _stable(name: str) -> str:
    test, _, parameters = name.partition("[")
    return f"{test}[{normalised(parameters)}"


def compare(before: TestReport, after: TestReport) -> tuple[Failure, ...]:
    """Why the run after is not acceptable, in the order people want to read it; empty when it is."""
    if after.timed_out:
        return (_failure(FailureKind.COMMAND, after.command, "The tests did not finish in time."),)
    earlier = {case.id: case for case in before.cases}
    passed = before.ids(TestOutcome.PASSED)
    known = {case.id for case in after.cases}
    failures = [_judge(case, earlier) for case in after.cases if case.outcome is TestOutcome.FAILED]
    failures += [
        _failure(FailureKind.VANISHED_TEST, case.id, "It passed before and is skipped now.")
        for case in after.cases
        if case.outcome is TestOutcome.SKIPPED and case.id in passed
    ]
    if after.broke_off:
        failures.append(_failure(FailureKind.COMMAND, after.command, f"{_BROKE_OFF}\n{after.tail[-1200:]}"))
    elif not after.is_command or not before.is_command:
        failures += [
            _failure(FailureKind.VANISHED_TEST, name, "It passed before and did not run now.")
            for name in sorted(passed - known - _divided(after))
        ]
    found = [failure for failure in failures if failure is not None]
    if not found and after.exit_code != 0 and _unexplained(before, after):
        found.append(_failure(FailureKind.COMMAND, after.command, after.tail[-1200:]))
    return tuple(found)


_BROKE_OFF = "The test run broke off before its end, so what it did not reach is not known."


def _divided(report: TestReport) -> set[str]:
    """Names of tests that run as several cases with parameters, `name[one]` and so on; each case is judged for itself."""
    return {case.id.partition("[")[0] for case in report.cases if case.outcome is not TestOutcome.SKIPPED}


def _unexplained(before: TestReport, after: TestReport) -> bool:
    """A failing exit that no failing test explains, and that the base did not have."""
    explained = any(case.outcome is TestOutcome.FAILED for case in after.cases)
    return not explained and before.exit_code != after.exit_code


def _judge(case: TestCase, earlier: dict[str, TestCase]) -> Failure | None:
    was = earlier.get(case.id)
    if was is None:
        return _failure(FailureKind.NEW_TEST_FAILS, case.id, case.message)
    if was.outcome is TestOutcome.PASSED:
        return _failure(FailureKind.BROKE_TEST, case.id, case.message)
    return None


def from_findings(findings: tuple[Finding, ...]) -> tuple[Failure, ...]:
    """Findings that the change introduces, as failures."""
    return tuple(
        Failure(
            FailureKind.FINDING,
            f"{finding.rule} at {finding.path}:{finding.line}",
            finding.message,
            signature(FailureKind.FINDING, f"{finding.rule} {finding.path}", finding.fingerprint),
        )
        for finding in findings
    )


def _failure(kind: FailureKind, subject: str, detail: str) -> Failure:
    return Failure(kind, subject, detail[-1500:], signature(kind, subject, detail))


def unrunnable(report: TestReport) -> bool:
    """The base's own tests cannot run, or not to their end: nothing could be compared with them."""
    return report.timed_out or report.broke_off or (report.exit_code != 0 and not report.ids(TestOutcome.PASSED))
