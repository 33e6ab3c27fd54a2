"""What every store must keep, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import OperationalError

from bot.domain.action import StartTask
from bot.domain.errors import Transient
from bot.domain.event import Actor, Subject
from bot.domain.ids import (
    CommitId,
    DeliveryId,
    Digest,
    InstallationId,
    NodeId,
    RepositoryId,
    ReviewId,
    TaskId,
    TreeId,
    UserId,
)
from bot.domain.money import ZERO, MicroUsd
from bot.domain.pull import Approval, Permission
from bot.domain.repository import RepositoryRef
from bot.domain.spending import Attempt, LedgerTotals, Settled, Usage
from bot.domain.task import Ending, Stage
from bot.providers.llm.port import Ledger
from bot.providers.store.port import Approvals, Deliveries, Delivery, Tasks
from bot.providers.store.schema import APPROVALS
from bot.providers.store.sql import Store, open_store, sqlite_url
from tests import postgres

BUDGET = MicroUsd(500_000)
ANA = Actor(UserId(7), "ana", is_bot=False)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_url(tmp_path / "store.db")
        return
    with postgres.database(request.getfixturevalue("server")) as made:
        yield made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()


def subject(number: int = 5, repository: int = 1) -> Subject:
    return Subject(RepositoryRef(RepositoryId(repository), "acme/shop", InstallationId(9)), number, is_pull=False)


def start(trigger: str = "comment:1", number: int = 5, repository: int = 1) -> StartTask:
    return StartTask(subject(number, repository), ANA, trigger, "Fix the sum", "It is wrong.")


def delivery(identifier: str = "d-1", body: bytes = b"{}", event: str = "issues") -> Delivery:
    return Delivery(DeliveryId(identifier), event, body, "2026-11-29T10:00:00+00:00")


def attempt(number: int = 1, reserved: int = 100, task: str = "t", key: str = "plan:1") -> Attempt:
    return Attempt(task, key, number, "claude-x", "high", MicroUsd(reserved))


def approval(digest: str = "a" * 64) -> Approval:
    return Approval(
        repository=RepositoryId(1),
        pull_node_id=NodeId("PR_1"),
        pull_number=12,
        review_id=ReviewId(3),
        reviewer=ANA,
        permission=Permission.WRITE,
        received_at="2026-11-29T10:00:00+00:00",
        delivery=DeliveryId("d-1"),
        review_commit=CommitId("1" * 40),
        head_sha=CommitId("1" * 40),
        base_ref="main",
        base_sha=CommitId("2" * 40),
        merge_base=CommitId("2" * 40),
        digest=Digest(digest),
        head_tree=TreeId("3" * 40),
        merge_tree=TreeId("4" * 40),
        policy_digest="p",
        flags=("workflows",),
    )


async def started(store: Store, *, trigger: str = "comment:1", number: int = 5) -> TaskId:
    spec = await store.tasks.start(start(trigger, number), BUDGET)
    assert spec is not None
    return spec.id


def together(count: int, act: Callable[[int], Any]) -> list[Any]:
    """Run `act` in `count` threads that set off at the same moment."""
    gate = threading.Barrier(count)

    def run(index: int) -> Any:
        gate.wait()
        return act(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_the_store_fits_the_ports(store: Store):
    deliveries: Deliveries = store.deliveries
    tasks: Tasks = store.tasks
    approvals: Approvals = store.approvals
    ledger: Ledger = store.ledger
    assert all((deliveries, tasks, approvals, ledger))


class TestDeliveries:
    async def test_a_delivery_is_kept_byte_for_byte(self, store: Store):
        body = bytes(range(256))
        assert await store.deliveries.accept(delivery(body=body))
        assert await store.deliveries.get(DeliveryId("d-1")) == delivery(body=body)
        assert await store.deliveries.get(DeliveryId("other")) is None

    async def test_the_same_id_is_accepted_once(self, store: Store):
        assert await store.deliveries.accept(delivery())
        assert not await store.deliveries.accept(delivery())
        assert not await store.deliveries.accept(delivery(body=b'{"other": 1}'))

    async def test_the_same_body_under_a_new_id_is_a_replay(self, store: Store):
        assert await store.deliveries.accept(delivery("d-1", b'{"a": 1}'))
        assert not await store.deliveries.accept(delivery("d-2", b'{"a": 1}'))
        assert await store.deliveries.accept(delivery("d-3", b'{"a": 1}', event="issue_comment"))
        assert await store.deliveries.accept(delivery("d-4", b'{"a": 2}'))

    async def test_only_one_of_many_at_once_is_accepted(self, store: Store):
        answers = together(8, lambda n: asyncio.run(store.deliveries.accept(delivery(f"d-{n}", b'{"a": 1}'))))
        assert sorted(answers) == [False] * 7 + [True]

    async def test_what_nobody_finished_is_found_again_oldest_first(self, store: Store):
        for number in range(3):
            await store.deliveries.accept(delivery(f"d-{number}", b"%d" % number))
        await store.deliveries.finish(DeliveryId("d-1"), "nothing: no label\0")
        await store.deliveries.finish(DeliveryId("d-1"), "again")
        assert await store.deliveries.unfinished() == (DeliveryId("d-0"), DeliveryId("d-2"))

    async def test_purging_empties_old_finished_bodies_and_still_refuses_their_replay(self, store: Store):
        old = replace(delivery("old", b"1"), received_at="2026-10-01T00:00:00+00:00")
        waiting = replace(delivery("waiting", b"2"), received_at="2026-10-01T00:00:00+00:00")
        for each in (old, waiting, delivery("new", b"3")):
            assert await store.deliveries.accept(each)
        await store.deliveries.finish(old.id, "done")
        assert await store.deliveries.purge(before="2026-10-30T00:00:00+00:00") == 1
        assert await store.deliveries.purge(before="2026-10-30T00:00:00+00:00") == 0
        assert await store.deliveries.get(old.id) is None
        assert await store.deliveries.get(waiting.id) == waiting
        assert not await store.deliveries.accept(replace(old, id=DeliveryId("year-later")))


class TestTasks:
    async def test_a_task_has_the_id_of_its_subject_and_generation(self, store: Store):
        spec = await store.tasks.start(start(), BUDGET)
        assert spec is not None
        assert spec.id == "task:1:5:1"
        assert (spec.title, spec.request, spec.budget, spec.requester) == ("Fix the sum", "It is wrong.", BUDGET, ANA)
        record = await store.tasks.get(spec.id)
        assert record is not None
        assert (record.spec, record.stage, record.pull_number, record.ending) == (spec, Stage.QUEUED, None, None)

    async def test_a_subject_has_one_live_task(self, store: Store):
        first = await started(store)
        assert await store.tasks.start(start("comment:2"), BUDGET) is None
        assert await store.tasks.start(start("comment:2", number=6), BUDGET) is not None
        assert await store.tasks.start(start("comment:2", repository=2), BUDGET) is not None
        await store.tasks.end(first, Ending(Stage.CANCELLED, "stopped"))
        again = await store.tasks.start(start("comment:3"), BUDGET)
        assert again is not None
        assert again.id == "task:1:5:2"

    async def test_a_trigger_starts_one_task_ever(self, store: Store):
        task = await started(store)
        await store.tasks.end(task, Ending(Stage.NEEDS_HUMAN, "tests fail"))
        assert await store.tasks.start(start(), BUDGET) is None
        assert await store.tasks.start(start(number=6), BUDGET) is None
        assert await store.tasks.triggered(RepositoryId(1), "comment:1")
        assert not await store.tasks.triggered(RepositoryId(1), "comment:2")
        assert not await store.tasks.triggered(RepositoryId(2), "comment:1")

    async def test_two_threads_with_one_trigger_start_one_task(self, store: Store):
        specs = together(8, lambda _: asyncio.run(store.tasks.start(start(), BUDGET)))
        assert sum(spec is not None for spec in specs) == 1

    async def test_many_triggers_at_once_start_one_task_for_a_subject(self, store: Store):
        specs = together(8, lambda n: asyncio.run(store.tasks.start(start(f"comment:{n}"), BUDGET)))
        assert sum(spec is not None for spec in specs) == 1

    async def test_many_subjects_at_once_all_start(self, store: Store):
        specs = together(8, lambda n: asyncio.run(store.tasks.start(start(f"comment:{n}", number=n), BUDGET)))
        assert len({spec.id for spec in specs}) == 8

    async def test_a_published_task_is_found_under_its_pull_request_too(self, store: Store):
        task = await started(store)
        await store.tasks.published(task, 12, "a" * 40)
        await store.tasks.published(task, 12, "b" * 40)
        for number in (5, 12):
            record = await store.tasks.live(RepositoryId(1), number)
            assert record is not None
            assert (record.spec.id, record.pull_number, record.head_sha) == (task, 12, "b" * 40)
        assert await store.tasks.live(RepositoryId(2), 12) is None
        assert await store.tasks.start(start("comment:9", number=12), BUDGET) is None

    async def test_a_pull_request_belongs_to_one_live_task(self, store: Store):
        one, two = await started(store), await started(store, trigger="comment:2", number=6)
        await store.tasks.published(one, 12, "a" * 40)
        with pytest.raises(ValueError, match="12 belongs to another"):
            await store.tasks.published(two, 12, "a" * 40)
        second = await store.tasks.get(two)
        assert second is not None
        assert second.pull_number is None

    async def test_publishing_an_unknown_task_is_an_error(self, store: Store):
        with pytest.raises(LookupError):
            await store.tasks.published(TaskId("task:1:1:1"), 12, "a" * 40)

    async def test_a_task_on_a_pull_request_may_publish_to_itself(self, store: Store):
        task = await started(store)
        await store.tasks.published(task, 5, "a" * 40)
        assert await store.tasks.live(RepositoryId(1), 5) is not None

    async def test_moving_tells_stage_and_note(self, store: Store):
        task = await started(store)
        await store.tasks.move(task, Stage.CODING, "step 2 of 3")
        record = await store.tasks.get(task)
        assert record is not None
        assert (record.stage, record.note) == (Stage.CODING, "step 2 of 3")

    async def test_an_ending_is_final(self, store: Store):
        task = await started(store)
        ending = Ending(Stage.OVER_BUDGET, "the budget is used up", "raise it")
        await store.tasks.end(task, ending)
        await store.tasks.end(task, Ending(Stage.LANDED, "no"))
        await store.tasks.move(task, Stage.CODING)
        record = await store.tasks.get(task)
        assert record is not None
        assert (record.stage, record.ending) == (Stage.OVER_BUDGET, ending)
        assert await store.tasks.live(RepositoryId(1), 5) is None
        await store.tasks.published(task, 12, "a" * 40)
        assert await store.tasks.live(RepositoryId(1), 12) is None

    async def test_stages_and_endings_are_not_mixed_up(self, store: Store):
        task = await started(store)
        with pytest.raises(ValueError, match="use end"):
            await store.tasks.move(task, Stage.LANDED)
        with pytest.raises(ValueError, match="not an ending"):
            await store.tasks.end(task, Ending(Stage.CODING, "?"))

    async def test_the_latest_task_of_a_subject_is_the_newest_one(self, store: Store):
        assert await store.tasks.latest(RepositoryId(1), 5) is None
        task = await started(store)
        await store.tasks.end(task, Ending(Stage.CANCELLED, "stopped"))
        newer = await started(store, trigger="comment:2")
        latest = await store.tasks.latest(RepositoryId(1), 5)
        assert latest is not None
        assert latest.spec.id == newer

    async def test_the_listing_is_newest_first_and_limited(self, store: Store):
        ids = [await started(store, trigger=f"comment:{n}", number=n) for n in range(4)]
        listed = await store.tasks.listing(limit=3)
        assert [record.spec.id for record in listed] == ids[:0:-1]


class TestApprovals:
    async def test_the_last_approval_comes_back_whole(self, store: Store):
        task = TaskId("task:1:5:1")
        assert await store.approvals.last(task) is None
        await store.approvals.record(task, approval())
        await store.approvals.record(task, approval("b" * 64))
        await store.approvals.record(TaskId("task:1:6:1"), approval("c" * 64))
        assert await store.approvals.last(task) == approval("b" * 64)

    async def test_recording_again_after_a_crash_adds_no_row(self, store: Store):
        task = TaskId("task:1:5:1")
        for digest in ("a", "a", "b", "a"):
            await store.approvals.record(task, approval(digest * 64))
        assert await store.approvals.last(task) == approval("a" * 64)
        count = await store.database.read(lambda c: len(c.execute(APPROVALS.select()).all()))
        assert count == 3

    async def test_the_log_shows_a_changed_or_missing_row(self, store: Store):
        for number in range(6):
            await store.approvals.record(TaskId("t"), approval(f"{number}" * 64))
        assert await store.approvals.broken_at() is None
        changed = update(APPROVALS).where(APPROVALS.c.seq == 5).values(task="u")
        await store.database.write(lambda c: c.execute(changed))
        assert await store.approvals.broken_at() == 5
        await store.database.write(lambda c: c.execute(delete(APPROVALS).where(APPROVALS.c.seq == 2)))
        assert await store.approvals.broken_at() == 3

    async def test_writers_at_once_keep_one_chain(self, store: Store):
        together(8, lambda n: asyncio.run(store.approvals.record(TaskId(f"t{n}"), approval(f"{n}" * 64))))
        assert await store.approvals.broken_at() is None


class TestLedger:
    async def test_what_is_reserved_counts_until_it_is_settled(self, store: Store):
        assert await store.ledger.open(attempt(1, 300), budget=BUDGET)
        assert (await store.ledger.totals("t")).spent == 300
        usage = Usage(input=10, write_5m=4, read=100, output=20, thinking=5)
        await store.ledger.settle(attempt(1, 300), Settled(usage, MicroUsd(120), "ok", "req_1"))
        assert await store.ledger.open(attempt(2, 50), budget=BUDGET)
        assert await store.ledger.totals("t") == LedgerTotals(MicroUsd(170), usage, 2, unknown=MicroUsd(50))
        assert await store.ledger.attempts("t", "plan:1") == 2
        assert await store.ledger.attempts("t", "plan:2") == 0

    async def test_a_reservation_never_crosses_the_budget(self, store: Store):
        assert await store.ledger.open(attempt(1, 60), budget=MicroUsd(100))
        assert not await store.ledger.open(attempt(2, 41), budget=MicroUsd(100))
        assert await store.ledger.open(attempt(2, 40), budget=MicroUsd(100))
        assert await store.ledger.attempts("t", "plan:1") == 2

    @pytest.mark.parametrize("reserved", [0, 1])
    async def test_a_budget_of_zero_allows_nothing(self, store: Store, reserved: int):
        assert not await store.ledger.open(attempt(1, reserved), budget=ZERO)

    async def test_many_at_once_stay_within_the_budget(self, store: Store):
        opened = together(
            10, lambda n: asyncio.run(store.ledger.open(attempt(1, 30, key=f"k{n}"), budget=MicroUsd(100)))
        )
        assert sum(opened) == 3
        assert (await store.ledger.totals("t")).spent == 90

    async def test_settling_alike_again_changes_nothing_and_otherwise_is_an_error(self, store: Store):
        await store.ledger.open(attempt(), budget=BUDGET)
        settled = Settled(Usage(output=3), MicroUsd(7), "ok")
        await store.ledger.settle(attempt(), settled)
        await store.ledger.settle(attempt(), settled)
        with pytest.raises(ValueError, match="settled otherwise"):
            await store.ledger.settle(attempt(), replace(settled, cost=MicroUsd(1)))
        with pytest.raises(LookupError):
            await store.ledger.settle(attempt(2), settled)

    async def test_an_attempt_is_opened_once_and_reserves_no_less_than_nothing(self, store: Store):
        await store.ledger.open(attempt(), budget=BUDGET)
        with pytest.raises(ValueError, match="opened before"):
            await store.ledger.open(attempt(), budget=BUDGET)
        with pytest.raises(ValueError, match="negative"):
            await store.ledger.open(attempt(2, -1), budget=BUDGET)

    async def test_rows_and_sums_for_reports(self, store: Store):
        await store.ledger.open(attempt(1, 100), budget=BUDGET)
        await store.ledger.open(attempt(1, 40, task="u"), budget=BUDGET)
        settled = Settled(Usage(output=3), MicroUsd(7), "overloaded_error", cache_miss="tools_changed")
        await store.ledger.settle(attempt(1, 100), settled)
        (row,) = await store.ledger.rows("t")
        assert (row.attempt, row.settled) == (attempt(1, 100), settled)
        assert await store.ledger.spent(("t", "u", "v")) == {"t": 7, "u": 40}
        assert await store.ledger.totals("v") == LedgerTotals(ZERO)


class TestDatabase:
    async def test_everything_is_there_after_a_restart(self, url: str):
        first = open_store(url)
        task = await started(first)
        first.close()
        second = open_store(url)
        assert await second.tasks.get(task) is not None
        second.close()

    async def test_a_failed_write_leaves_nothing(self, store: Store):
        def work(connection: Any) -> None:
            connection.execute(APPROVALS.insert().values(task="t", approval="{}", chain="c"))
            raise RuntimeError("crash")

        with pytest.raises(RuntimeError, match="crash"):
            await store.database.write(work)
        assert await store.approvals.broken_at() is None

    async def test_of_many_writes_at_once_each_stands_or_falls_alone(self, store: Store):
        def work(number: int) -> Any:
            def add(connection: Any) -> int:
                connection.execute(APPROVALS.insert().values(task="t", approval=f"{number}", chain=f"{number}"))
                if number % 3 == 0:
                    raise ValueError(number)
                return number

            return store.database.write(add)

        outcomes = await asyncio.gather(*map(work, range(30)), return_exceptions=True)
        assert [isinstance(outcome, ValueError) for outcome in outcomes] == [number % 3 == 0 for number in range(30)]
        rows = await store.database.read(lambda c: c.execute(APPROVALS.select()).all())
        assert sorted(int(row.approval) for row in rows) == [number for number in range(30) if number % 3]

    async def test_what_is_told_done_is_kept_and_what_is_told_failed_is_not(self, store: Store):
        def work(number: int) -> Any:
            def add(connection: Any) -> int:
                connection.execute(APPROVALS.insert().values(task="t", approval=f"{number}", chain=f"{number}"))
                if number == 7:
                    raise OperationalError("INSERT", {}, OSError("disk is full"))
                return number

            return store.database.write(add)

        outcomes = await asyncio.gather(*map(work, range(20)), return_exceptions=True)
        assert isinstance(outcomes[7], Transient)
        rows = await store.database.read(lambda c: c.execute(APPROVALS.select()).all())
        assert sorted(int(row.approval) for row in rows) == [each for each in outcomes if isinstance(each, int)]

    async def test_a_database_that_cannot_serve_is_transient(self, store: Store):
        def work(_: Any) -> None:
            raise OperationalError("INSERT", {}, OSError("disk is full"))

        with pytest.raises(Transient):
            await store.database.write(work)

    def test_an_unreachable_file_is_transient(self, tmp_path: Path):
        with pytest.raises(Transient):
            open_store(sqlite_url(tmp_path / "missing" / "store.db"))

    def test_memory_is_refused(self):
        with pytest.raises(ValueError, match="needs a file"):
            open_store("sqlite://")


HOUR, DAY = 3_600, 86_400
NOW = int(time.time()) + 60
"""A minute from now: whatever a test does is behind it."""


class TestRequests:
    async def test_what_one_person_asked_for_in_an_hour_and_all_in_a_day(self, store: Store):
        ana, bob, here = UserId(1), UserId(2), RepositoryId(1)
        for key, user, where, ago in (
            ("a", ana, here, 10),
            ("b", ana, RepositoryId(2), HOUR - 1),
            ("c", ana, here, HOUR + 1),
            ("d", bob, here, DAY - 1),
            ("e", bob, here, DAY + 1),
        ):
            await store.requests.note(key, user=user, repository=where, at=NOW - ago)
        tally = await store.requests.tally(ana, here, at=NOW)
        assert (tally.by_user_hour, tally.in_repository_day) == (2, 3)
        assert (await store.requests.tally(ana, here, at=NOW, but="a")).by_user_hour == 1

    async def test_the_same_request_counts_once(self, store: Store):
        for at in (NOW - 5, NOW - 4):
            await store.requests.note("a", user=UserId(1), repository=RepositoryId(1), at=at)
        assert (await store.requests.tally(UserId(1), RepositoryId(1), at=NOW)).by_user_hour == 1

    async def test_money_of_a_day_is_what_was_spent_and_what_working_tasks_may_still_spend(self, store: Store):
        task = await started(store)
        await store.ledger.open(attempt(1, 300, task=task), budget=BUDGET)
        await store.ledger.settle(attempt(1, 300, task=task), Settled(Usage(), MicroUsd(120), "ok"))
        await store.ledger.open(attempt(2, 50, task=task), budget=BUDGET)
        tally = await store.requests.tally(UserId(1), RepositoryId(1), at=NOW)
        assert (tally.spent_day, tally.set_aside) == (170, BUDGET - 170)
        await store.tasks.move(task, Stage.IN_REVIEW)
        assert (await store.requests.tally(UserId(1), RepositoryId(1), at=NOW)).set_aside == 0
        assert (await store.requests.tally(UserId(1), RepositoryId(1), at=NOW + DAY)).spent_day == 0

    async def test_tasks_that_live_are_found_until_they_end(self, store: Store):
        first, second = await started(store), await started(store, trigger="comment:2", number=6)
        assert [record.spec.id for record in await store.tasks.living()] == [first, second]
        await store.tasks.end(first, Ending(Stage.CANCELLED, "x"))
        assert [record.spec.id for record in await store.tasks.living()] == [second]
