"""A decision is a tree of reasons; check run, comment and dashboard render the same value (style practice 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a reason says. `waiting` means nothing is wrong but something is still needed."""

    PASSED = "passed"
    WAITING = "waiting"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reason:
    """One line of a decision: a stable `rule` name, a sentence for people, and what it rests on."""

    rule: str
    outcome: Outcome
    text: str
    children: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome over all reasons: refused if any refuses, else waiting if any waits, else passed."""

    subject: str
    reasons: tuple[Reason, ...]

    @property
    def outcome(self) -> Outcome:
        outcomes = {reason.outcome for reason in self.reasons}
        if Outcome.REFUSED in outcomes:
            return Outcome.REFUSED
        return Outcome.WAITING if Outcome.WAITING in outcomes else Outcome.PASSED

    @property
    def allowed(self) -> bool:
        """True only when there is at least one reason and every reason passed."""
        return bool(self.reasons) and self.outcome is Outcome.PASSED

    def against(self) -> tuple[Reason, ...]:
        """The reasons that refuse or wait, in order."""
        return tuple(reason for reason in self.reasons if reason.outcome is not Outcome.PASSED)
