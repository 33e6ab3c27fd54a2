"""Reads what a test run left behind into test cases. Most exact first: JUnit XML, then unittest's verbose text, then the exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from bot.domain.verdict import TestCase, TestOutcome, TestReport
from bot.providers.sandbox.port import CommandResult

MESSAGE_LENGTH = 1500
TAIL_LENGTH = 4000
MOST_CASES = 200_000

_UNITTEST = re.compile(
    r"^(?P<method>[\w<>\[\]-]+) \((?P<where>[\w.<>-]+)\)(?P<doc>\n[^\n]{0,300})?(?: \([^\n]{0,500}\))? \.\.\. (?P<outcome>ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b",
    re.MULTILINE,
)
_OUTCOMES = {
    "ok": TestOutcome.PASSED,
    "FAIL": TestOutcome.FAILED,
    "ERROR": TestOutcome.FAILED,
    "unexpected success": TestOutcome.FAILED,
    "skipped": TestOutcome.SKIPPED,
    "expected failure": TestOutcome.SKIPPED,
}
_END = re.compile(r"^Ran \d+ tests? in ", re.MULTILINE)
"""What unittest and Django print when every test has had its turn."""
_ENDED = {0, 1}
"""Exit codes of a run that came to its end; pytest's 2, 3 and 4 and what a signal leaves say that it did not."""
_BLOCK = re.compile(
    r"^={20,}\n(?:FAIL|ERROR): (?P<method>[\w<>\[\]-]+) \((?P<where>[\w.<>-]+)\)[^\n]*\n(?P<body>.*?)(?=^={20,}\n|^-{20,}\nRan |\Z)",
    re.MULTILINE | re.DOTALL,
)


def report(command: str, result: CommandResult, junit: bytes | None) -> TestReport:
    """The report of one run: per test where the runner told us, otherwise the command itself as the one case."""
    output = "\n".join(part for part in (result.stdout, result.stderr) if part)
    cases = from_junit(junit) if junit else ()
    broke_off = bool(cases) and not _any_failed(cases) and result.exit_code not in _ENDED
    if not cases:
        cases = from_unittest(output)
        broke_off = bool(cases) and result.exit_code != 0 and not _END.search(output)
    if not cases:
        outcome = TestOutcome.PASSED if result.exit_code == 0 and not result.timed_out else TestOutcome.FAILED
        cases = (
            TestCase(f"command: {command}", outcome, "" if outcome is TestOutcome.PASSED else output[-MESSAGE_LENGTH:]),
        )
    return TestReport(
        command=command,
        exit_code=result.exit_code,
        seconds=round(result.seconds, 3),
        cases=cases,
        timed_out=result.timed_out,
        tail=output[-TAIL_LENGTH:],
        broke_off=broke_off and not result.timed_out,
    )


def _any_failed(cases: tuple[TestCase, ...]) -> bool:
    return any(case.outcome is TestOutcome.FAILED for case in cases)


def from_junit(data: bytes) -> tuple[TestCase, ...]:
    """Cases of a JUnit XML file; empty when it is damaged or not one. The file comes from the sandbox: no entities, capped."""
    try:
        root = ElementTree.fromstring(data, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return ()
    merged: dict[str, TestCase] = {}
    for count, element in enumerate(root.iter("testcase")):
        if count >= MOST_CASES:
            return ()
        case = _junit_case(element)
        earlier = merged.get(case.id)
        if earlier is None or _worse(case.outcome, earlier.outcome):
            merged[case.id] = case
    return tuple(merged.values())


def _junit_case(element: Element) -> TestCase:
    where = element.get("classname", "") or element.get("file", "")
    name = element.get("name", "")
    outcome, message = TestOutcome.PASSED, ""
    for child in element:
        if child.tag in {"failure", "error"}:
            outcome = TestOutcome.FAILED
            message = f"{child.get('message', '')}\n{child.text or ''}".strip()
        elif child.tag == "skipped" and outcome is TestOutcome.PASSED:
            outcome = TestOutcome.SKIPPED
    return TestCase(f"{where}::{name}" if where else name, outcome, _cut(message))


def _worse(one: TestOutcome, other: TestOutcome) -> bool:
    order = (TestOutcome.SKIPPED, TestOutcome.PASSED, TestOutcome.FAILED)
    return order.index(one) > order.index(other)


def from_unittest(output: str) -> tuple[TestCase, ...]:
    """Cases of `python -m unittest -v` and of runners that print like it (Django's with `--verbosity 2`)."""
    details = dict(_details(output))
    merged: dict[str, TestCase] = {}
    for found in _UNITTEST.finditer(output):
        identifier = _unittest_id(found["method"], found["where"])
        outcome = _OUTCOMES[found["outcome"]]
        case = TestCase(identifier, outcome, details.get(identifier, "") if outcome is TestOutcome.FAILED else "")
        earlier = merged.get(identifier)
        if earlier is None or _worse(case.outcome, earlier.outcome):
            merged[identifier] = case
    for identifier, message in details.items():
        if identifier not in merged or merged[identifier].outcome is not TestOutcome.FAILED:
            merged[identifier] = TestCase(identifier, TestOutcome.FAILED, message)
    return tuple(merged.values())


def _unittest_id(method: str, where: str) -> str:
    return where if where.endswith(f".{method}") else f"{where}.{method}"


def _details(output: str) -> Iterator[tuple[str, str]]:
    for found in _BLOCK.finditer(output):
        yield _unittest_id(found["method"], found["where"]), _cut(found["body"].strip("-\n "))


def _cut(message: str) -> str:
    if len(message) <= MESSAGE_LENGTH:
        return message
    return f"{message[: MESSAGE_LENGTH // 3]}\n[…]\n{message[-2 * MESSAGE_LENGTH // 3 :]}"
