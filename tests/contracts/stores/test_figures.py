"""Figures of the whole store: what is old is added up once, what is young is read anew each time."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, inspect, text

from bot.domain.figures import ModelFigures
from bot.domain.money import MicroUsd
from bot.domain.spending import Settled, Usage
from bot.domain.task import Ending, Stage
from bot.providers.store.figures import SqlFigures
from bot.providers.store.schema import LEDGER, LEDGER_TIMES, SUMMARY_COSTS
from bot.providers.store.sql import Store, open_store
from tests.contracts.stores.builders import BUDGET, attempt, delivery, started

NOW = 1_796_000_000


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


async def spent(store: Store, number: int, *, ago: int, cost: int | None = None, outcome: str = "ok") -> None:
    """An attempt that was opened so long ago; without a cost nobody heard of it."""
    await store.ledger.open(attempt(number, 100), budget=BUDGET)
    if cost is not None:
        await store.ledger.settle(attempt(number, 100), Settled(Usage(output=1), MicroUsd(cost), outcome))
    opened = LEDGER_TIMES.update().where(
        LEDGER_TIMES.c.ledger_seq
        == LEDGER.select().with_only_columns(LEDGER.c.seq).where(LEDGER.c.number == number).scalar_subquery()
    )
    await store.database.write(lambda connection: connection.execute(opened.values(at=NOW - ago)))


async def test_an_empty_store_tells_of_every_stage(store: Store):
    figures = await store.figures.read()
    assert (figures.waiting, figures.waiting_since, figures.models, figures.summaries) == (0, None, (), 0)
    assert figures.tasks == dict.fromkeys(Stage, 0)


async def test_tasks_deliveries_and_summaries_are_counted(store: Store):
    for number, identifier in enumerate("abc"):
        await store.deliveries.accept(delivery(identifier, body=b"%d" % number))
    await store.deliveries.finish(delivery("a").id, "nothing")
    await store.tasks.move(await started(store), Stage.CODING)
    await store.tasks.end(await started(store, trigger="t", number=6), Ending(Stage.LANDED, "Merged."))
    paid = [{"repository_id": 1, "micros": 30}, {"repository_id": 2, "micros": 40}]
    await store.database.write(lambda connection: connection.execute(insert(SUMMARY_COSTS), paid))
    figures = await store.figures.read()
    assert (figures.waiting, figures.waiting_since) == (2, "2026-11-29T10:00:00+00:00")
    assert {stage: number for stage, number in figures.tasks.items() if number} == {Stage.CODING: 1, Stage.LANDED: 1}
    assert figures.summaries == 70


async def test_attempts_are_told_by_fate_and_unheard_ones_count_after_an_hour(store: Store):
    clock = Clock()
    figures = SqlFigures(store.database, clock)
    await spent(store, 1, ago=200_000, cost=7)
    await spent(store, 2, ago=5_000, cost=0, outcome="529 overloaded_error")
    await spent(store, 3, ago=4_000)
    await spent(store, 4, ago=10, cost=20)
    await spent(store, 5, ago=5)
    for _ in range(2):  # what was added up once is not added again
        (model,) = (await figures.read()).models
        assert model == ModelFigures(
            "claude-x", answered=2, failed=1, unheard=1, under_way=1, spent=MicroUsd(127), day=MicroUsd(220)
        )
    await store.ledger.settle(attempt(5, 100), Settled(Usage(output=1), MicroUsd(1), "ok"))
    clock.now += 3_600
    (model,) = (await figures.read()).models
    assert (model.answered, model.under_way, model.spent, model.day) == (3, 0, 128, 121)
    clock.now -= 7_200  # nor when the clock is put back
    assert (await figures.read()).models[0].spent == 128
    clock.now += 7_200
    assert (await figures.read()).models == (await SqlFigures(store.database, clock).read()).models


async def test_a_store_of_an_earlier_version_gets_its_index(url: str):
    open_store(url).close()
    store = open_store(url)
    await store.database.write(lambda connection: connection.execute(text("DROP INDEX tasks_by_stage")))
    store.close()
    store = open_store(url)
    names = await store.database.read(lambda c: {index["name"] for index in inspect(c).get_indexes("tasks")})
    store.close()
    assert "tasks_by_stage" in names
