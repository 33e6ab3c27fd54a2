import json
from pathlib import Path

import pytest

from bot.commands.costs import CallCost, costs, of_summaries, render, repriced
from bot.domain.errors import UserError
from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd
from bot.domain.spending import Usage
from bot.providers.llm.pricing import PriceBook
from bot.providers.store.port import Sending
from bot.providers.store.sql import open_store
from bot.settings import Settings
from tests.contracts.stores.builders import BUDGET, attempt, started


def call(task: str = "task:1:1:1", *, settled: bool = True, cost: int = 1000) -> CallCost:
    usage = Usage(input=10, write_5m=100, read=300, output=50) if settled else Usage()
    outcome = "ok" if settled else "unknown fate"
    return CallCost(task, "plan:call:1", "claude-sonnet-5-5", "high", outcome, usage, MicroUsd(cost), settled, "")


async def test_before_the_first_task_nothing_was_spent_and_nothing_is_made(tmp_path: Path):
    settings = Settings(home=tmp_path / "never used", database_url="")
    assert await costs(settings, None, 20) == ()
    with pytest.raises(UserError, match="no task task:1"):
        await costs(settings, "task:1", 20)
    assert not settings.home.exists()


async def test_a_task_is_named_as_for_its_trace(tmp_path: Path):
    settings = Settings(home=tmp_path, database_url="")
    store = open_store(settings.database())
    task = await started(store)
    assert await store.ledger.open(attempt(task=task), budget=BUDGET)
    other = await started(store, trigger="comment:2", number=6)
    store.close()
    for name in (task, "acme/shop#5"):
        assert [one.task for one in await costs(settings, name, 20)] == [task]
    assert await costs(settings, other, 20) == ()
    with pytest.raises(UserError, match="Several tasks begin with task:1"):
        await costs(settings, "task:1", 20)


async def test_summaries_are_told_by_repository(tmp_path: Path):
    settings = Settings(home=tmp_path, database_url="")
    store = open_store(settings.database())
    held = store.summaries(RepositoryId(7))
    for batch, spent in (("msgbatch_1", 0), ("msgbatch_2", 30)):
        assert await held.begin(Sending(("a", "b"), "", 1), own=(), spent=MicroUsd(spent))
        await held.sent(batch)
        if not spent:
            await held.collected(batch, {"a": "Sells.", "b": "Paints."}, MicroUsd(30))
    store.close()
    summaries = await of_summaries(settings)
    told = render((), as_json=False, vendors=False, summaries=summaries)
    assert told.splitlines()[1] == "summaries of repository 7  $0.0000  2 files, 0 embedded, 1 batches under way"
    document = json.loads(render((), as_json=True, vendors=False, summaries=summaries))
    assert document["summaries"][0]["cost_usd"] == 0.00003


def test_nothing_spent_is_said():
    assert render((), as_json=False, vendors=False) == "Nothing was spent yet."


def test_a_line_a_task_and_the_total():
    text = render((call(), call(), call("task:1:2:1", cost=5)), as_json=False, vendors=False)
    assert text.splitlines() == [
        "task:1:1:1  $0.0020  2 attempts  820 tokens in (73% from cache)",
        "task:1:2:1  $0.0000  1 attempts  410 tokens in (73% from cache)",
        "total  $0.0020",
    ]


def test_json_has_every_call_and_exact_sums():
    document = json.loads(render((call(), call(settled=False, cost=7)), as_json=True, vendors=True))
    assert [one["cost_usd"] for one in document["calls"]] == [0.001, 0.000007]
    assert document["cost_usd"] == 0.001007
    assert document["vendors"].keys() == repriced((), PriceBook.load()).keys()


def test_other_vendors_price_only_what_is_known_to_have_been_used():
    book = PriceBook.load()
    assert repriced((call(settled=False),), book) == repriced((), book)
    assert all(amount > 0 for amount in repriced((call(),), book).values())
