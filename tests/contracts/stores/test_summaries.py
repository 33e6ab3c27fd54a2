"""Summaries are kept by repository, paid for once, whoever collects them."""

from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd
from bot.providers.store.port import Sending, Summaries
from bot.providers.store.sql import Store

SENDING = Sending(("a", "b"), "msgbatch_before", 1000)


async def test_a_batch_is_remembered_before_it_is_sent_until_it_is_collected(store: Store):
    held: Summaries = store.summaries(RepositoryId(7))
    assert await held.begin(SENDING)
    assert not await held.begin(SENDING)
    assert (await held.sending(), await held.batches()) == (SENDING, ())
    await held.sent("msgbatch_1")
    assert (await held.sending(), await held.batches()) == (None, ("msgbatch_1",))
    await held.collected("msgbatch_1", {"a": "Sells.", "b": "Paints."}, MicroUsd(30))
    assert await held.batches() == ()
    assert await held.texts() == {"a": "Sells.", "b": "Paints."}


async def test_what_was_never_sent_is_forgotten(store: Store):
    held = store.summaries(RepositoryId(7))
    await held.begin(SENDING)
    await held.not_sent()
    assert await held.sending() is None
    assert await held.begin(SENDING)


async def test_two_that_collect_one_batch_keep_and_charge_it_once(store: Store):
    held = store.summaries(RepositoryId(7))
    await held.begin(SENDING)
    await held.sent("msgbatch_1")
    for text in ("first", "second"):
        await held.collected("msgbatch_1", {"a": text}, MicroUsd(30))
    assert (await held.texts(), await held.spent()) == ({"a": "first"}, 30)


async def test_vectors_join_their_summaries_and_cost(store: Store):
    held = store.summaries(RepositoryId(7))
    await held.begin(SENDING)
    await held.sent("msgbatch_1")
    await held.collected("msgbatch_1", {"a": "Sells.", "b": "Paints."}, MicroUsd(30))
    await held.embedded({"b": b"\1\2"}, MicroUsd(4))
    assert await held.vectors() == {"b": b"\1\2"}
    assert await held.without_vector() == (("a", "Sells."),)
    assert await held.spent() == 34


async def test_repositories_share_nothing(store: Store):
    held, other = store.summaries(RepositoryId(7)), store.summaries(RepositoryId(8))
    await held.begin(SENDING)
    await held.sent("msgbatch_1")
    await held.collected("msgbatch_1", {"a": "Sells."}, MicroUsd(30))
    assert (await other.texts(), await other.spent(), await other.begin(SENDING)) == ({}, 0, True)
