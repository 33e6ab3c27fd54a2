"""What the checks said. A verdict is evidence: it names the tree it was obtained on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.change import Change
from bot.domain.ids import TreeId


class TestOutcome(StrEnum):
    """Outcome of one test. `skipped` includes expected failures."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test by its stable id ("tests/test_api.py::test_get"); `message` is the cut failure text."""

    __test__ = False

    id: str
    outcome: TestOutcome
    message: str = ""


@dataclass(frozen=True, slots=True)
class TestReport:
    """One run of a test command on one tree. Without per-test results, `cases` holds the command itself as one case."""

    __test__ = False

    command: str
    exit_code: int
    seconds: float
    cases: tuple[TestCase, ...]
    timed_out: bool = False
    tail: str = ""
    """End of the output, cut; what a person reads first."""
    broke_off: bool = False
    """The run ended before its end: the cases are not all there are."""

    @property
    def is_command(self) -> bool:
        """No single test was named: all that is known is how the command ended."""
        return len(self.cases) == 1 and self.cases[0].id.startswith("command: ")

    def ids(self, outcome: TestOutcome) -> frozenset[str]:
        return frozenset(case.id for case in self.cases if case.outcome is outcome)

    def count(self, outcome: TestOutcome) -> int:
        return sum(case.outcome is outcome for case in self.cases)


@dataclass(frozen=True, slots=True)
class Finding:
    """One Semgrep finding. `fingerprint` identifies it across trees independent of its line number."""

    rule: str
    path: str
    line: int
    message: str
    fingerprint: str


class FailureKind(StrEnum):
    """Why a change does not pass."""

    BROKE_TEST = "broke_test"
    VANISHED_TEST = "vanished_test"
    NEW_TEST_FAILS = "new_test_fails"
    FINDING = "finding"
    SUPPRESSION = "suppression"
    COMMAND = "command"
    POLICY = "policy"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason why a change does not pass; `signature` is equal when the same thing fails again (id + normalised error)."""

    kind: FailureKind
    subject: str
    detail: str
    signature: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The evidence for one tree: tests before and after, findings the change introduces, and what fails."""

    tree: TreeId
    before: TestReport
    after: TestReport
    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> bool:
        return not self.failures


@dataclass(frozen=True, slots=True)
class VerifiedChange:
    """Proof that `change.tree` passed every check. Only `stages/verifying` builds one, from the verdict (design D15)."""

    change: Change
    verdict: Verdict

    def __post_init__(self) -> None:
        if not self.verdict.passed or self.verdict.tree != self.change.tree or self.change.empty:
            raise ValueError("a verified change needs a passing verdict on its own, non-empty tree")
