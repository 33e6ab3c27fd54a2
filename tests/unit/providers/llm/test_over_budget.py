from bot.domain.money import MicroUsd
from bot.domain.spending import LedgerTotals, Usage
from bot.providers.llm.port import OverBudget

BUDGET = MicroUsd(500_000)


def said(spent: int, unknown: int = 0) -> str:
    totals = LedgerTotals(MicroUsd(spent), Usage(), 2, unknown=MicroUsd(unknown))
    return str(OverBudget(needed=MicroUsd(167_000), totals=totals, budget=BUDGET))


def test_a_stop_says_what_the_next_call_may_cost_and_what_is_spent():
    assert said(400_000) == "The next model call may cost up to $0.1670, and $0.4000 of $0.5000 are spent."


def test_money_for_answers_that_a_restart_lost_is_named():
    assert "$0.3345 of it for calls whose answers a restart lost" in said(400_000, 334_500)
