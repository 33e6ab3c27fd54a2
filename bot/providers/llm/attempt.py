"""What is known of a failed attempt, in the words of the attempt loop; no vendor is named here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bot.domain.spending import Usage


class Next(Enum):
    """What to do after a failed attempt."""

    RETRY = "retry"
    LATER = "later"  # not now, and not by this call: the caller's queue decides
    REJECTED = "rejected"
    UNAVAILABLE = "unavailable"


class Charged(Enum):
    """What the service bills for a failed attempt, as far as can be known."""

    NOTHING = "nothing"
    INPUT_KNOWN = "input known"
    UNKNOWN = "unknown"


@dataclass(eq=False)
class AttemptFailed(Exception):  # noqa: N818 - a report, handled by the attempt loop
    """One attempt did not give a turn."""

    outcome: str
    next: Next
    charged: Charged
    retry_after: float | None = None
    usage: Usage = field(default_factory=Usage)
    request_id: str = ""

    def __str__(self) -> str:
        return self.outcome
