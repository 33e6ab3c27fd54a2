"""Loop breakers: how often work may be asked for, and what it may cost in a day, whoever asks. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.money import MicroUsd, from_dollars, show
from bot.domain.spending import Tally

_A_DAY = from_dollars("100")


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """The operator's limits. Zero means none at all, never "no limit"."""

    rounds_per_pull: int = 5
    per_user_hour: int = 100
    per_repository_day: int = 300
    money_per_day: MicroUsd = _A_DAY


def held(limits: LoopLimits, tally: Tally, login: str, budget: MicroUsd) -> str:
    """Why this request for work is not taken up now; empty when it may be. `budget` is what it may cost at most."""
    if tally.by_user_hour >= limits.per_user_hour:
        return (
            f"{login} asked for work {tally.by_user_hour} times within an hour; the limit is {limits.per_user_hour} "
            "(`PULLWRIGHT_REQUESTS_PER_USER_HOUR`)."
        )
    if tally.in_repository_day >= limits.per_repository_day:
        return (
            f"Work was asked for {tally.in_repository_day} times here within a day; the limit is "
            f"{limits.per_repository_day} (`PULLWRIGHT_REQUESTS_PER_REPOSITORY_DAY`)."
        )
    if tally.spent_day + tally.set_aside + budget > limits.money_per_day:
        return (
            f"{show(tally.spent_day)} were spent within a day and {show(tally.set_aside)} are set aside for running tasks; "
            f"{show(budget)} more would pass the limit of {show(limits.money_per_day)} a day (`PULLWRIGHT_USD_PER_DAY`)."
        )
    return ""
