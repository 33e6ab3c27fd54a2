"""When a request for work is not taken up, and what people read then."""

from __future__ import annotations

import pytest

from bot.domain.money import MicroUsd
from bot.domain.spending import Tally
from bot.policy.loops import LoopLimits, held

LIMITS = LoopLimits(5, 3, 4, MicroUsd(1_000_000))
BUDGET = MicroUsd(500_000)


@pytest.mark.parametrize(
    ("tally", "words"),
    [
        (Tally(by_user_hour=3), "@ada asked for work 3 times within an hour; the limit is 3"),
        (Tally(in_repository_day=4), "4 times here within a day; the limit is 4"),
        (Tally(spent_day=MicroUsd(500_001)), "limit of $1.00 a day"),
        (Tally(spent_day=MicroUsd(300_000), set_aside=MicroUsd(300_000)), "$0.3000 are set aside"),
    ],
)
def test_a_limit_that_is_reached_is_named_with_its_setting(tally: Tally, words: str) -> None:
    said = held(LIMITS, tally, "@ada", BUDGET)
    assert words in said
    assert "PULLWRIGHT_" in said


def test_below_every_limit_nothing_is_held() -> None:
    tally = Tally(2, 3, MicroUsd(400_000), MicroUsd(100_000))
    assert held(LIMITS, tally, "@ada", BUDGET) == ""
    assert held(LoopLimits(), Tally(), "@ada", BUDGET) == ""


@pytest.mark.parametrize("limits", [LoopLimits(5, 0), LoopLimits(5, 9, 0), LoopLimits(5, 9, 9, MicroUsd(0))])
def test_zero_means_nothing_and_never_no_limit(limits: LoopLimits) -> None:
    assert held(limits, Tally(), "@ada", BUDGET)
