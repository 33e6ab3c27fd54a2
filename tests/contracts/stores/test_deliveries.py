"""Deliveries: stored before they are acknowledged, accepted once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bot.domain.ids import (
    DeliveryId,
    TaskId,
)
from bot.providers.store.sql import Store
from tests.contracts.stores.builders import delivery, together


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

    async def test_those_of_a_task_are_found_among_those_of_their_time(self, store: Store):
        notes = {
            "a": "started task:1:5:1",
            "b": "told task:1:5:1: review",
            "c": "told task:1:5:10: review",
            "d": "nothing: not for us",
            "e": "told task:1:5:1: review",
        }
        for name, note in notes.items():
            late = "2026-12-24T10:00:00+00:00" if name == "e" else "2026-11-29T10:00:00.000+00:00"
            await store.deliveries.accept(replace(delivery(name, body=name.encode()), received_at=late))
            await store.deliveries.finish(DeliveryId(name), note)
        found = await store.deliveries.about(
            TaskId("task:1:5:1"), since="2026-11-29T09:00:00+00:00", until="2026-11-29T10:30:00+00:00"
        )
        assert [(each.id, each.event, each.note) for each in found] == [(n, "issues", notes[n]) for n in ("a", "b")]
