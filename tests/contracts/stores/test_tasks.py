"""Tasks: one live task per subject, one per trigger, ever."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.domain.ids import (
    RepositoryId,
    TaskId,
)
from bot.domain.task import Ending, Stage
from bot.providers.store.sql import Store
from tests.contracts.stores.builders import ANA, BUDGET, start, started, together


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


class TestLookingUp:
    async def test_tasks_are_found_by_the_beginning_of_their_id_and_by_number(self, store: Store):
        for trigger, number, repository in (("a", 5, 1), ("b", 50, 1), ("c", 5, 2)):
            await store.tasks.start(start(trigger, number, repository), BUDGET)
        await store.tasks.published(TaskId("task:1:50:1"), 5_000, "1" * 40)
        ids = [record.spec.id for record in await store.tasks.beginning("task:1:5", 10)]
        assert ids == ["task:1:50:1", "task:1:5:1"]
        assert len(await store.tasks.beginning("task:", 2)) == 2
        assert await store.tasks.beginning("task:_", 10) == ()
        assert [record.spec.id for record in await store.tasks.numbered(5)] == ["task:2:5:1", "task:1:5:1"]
        assert [record.spec.id for record in await store.tasks.numbered(5_000)] == ["task:1:50:1"]

    async def test_a_repository_is_called_what_its_newest_task_called_it(self, store: Store):
        await store.tasks.start(start("a", 5, 1), BUDGET)
        new = start("b", 6, 1)
        named = replace(new.subject.repository, full_name="acme/store")
        await store.tasks.start(replace(new, subject=replace(new.subject, repository=named)), BUDGET)
        names = await store.tasks.repository_names((RepositoryId(1), RepositoryId(2)))
        assert names == {1: "acme/store"}
        assert await store.repository_names(()) == {}
