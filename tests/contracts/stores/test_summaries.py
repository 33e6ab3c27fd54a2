"""Summaries are kept by repository, paid for once, whoever collects them."""

from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd
from bot.providers.store.port import Sending, Summaries
from bot.providers.store.sql import Store

SENDING = Sending(("a", "b"), "msgbatch_before", 1000)
SPACE = b"model256"


async def begin(held: Summaries, *own: str, spent: int = 0) -> bool:
    return await held.begin(SENDING, own=own, spent=MicroUsd(spent))


async def test_a_batch_is_remembered_before_it_is_sent_until_it_is_collected(store: Store):
    held: Summaries = store.summaries(RepositoryId(7))
    assert await begin(held)
    assert not await begin(held)
    assert (await held.sending(), await held.batches()) == (SENDING, ())
    await held.sent("msgbatch_1")
    assert (await held.sending(), await held.batches()) == (None, ("msgbatch_1",))
    await held.collected("msgbatch_1", {"a": "Sells.", "b": "Paints."}, MicroUsd(30))
    assert await held.batches() == ()
    assert await held.texts() == {"a": "Sells.", "b": "Paints."}


async def test_what_was_never_sent_is_forgotten(store: Store):
    held = store.summaries(RepositoryId(7))
    await begin(held)
    await held.not_sent()
    assert await held.sending() is None
    assert await begin(held)


async def test_two_that_collect_one_batch_keep_and_charge_it_once(store: Store):
    held = store.summaries(RepositoryId(7))
    await begin(held)
    await held.sent("msgbatch_1")
    for text in ("first", "second"):
        await held.collected("msgbatch_1", {"a": text}, MicroUsd(30))
    assert (await held.texts(), await held.spent()) == ({"a": "first"}, 30)


async def test_vectors_join_their_summaries_and_cost(store: Store):
    held = store.summaries(RepositoryId(7))
    await begin(held)
    await held.sent("msgbatch_1")
    await held.collected("msgbatch_1", {"a": "Sells.", "b": "Paints."}, MicroUsd(30))
    await held.embedded(SPACE, {"b": b"\1\2"}, MicroUsd(4))
    assert await held.vectors(SPACE) == {"b": b"\1\2"}
    assert await held.without_vector(SPACE) == (("a", "Sells."),)
    assert await held.vectors(b"another.") == {}
    assert await held.without_vector(b"another.") == (("a", "Sells."), ("b", "Paints."))
    assert await held.spent() == 34


async def test_repositories_share_nothing(store: Store):
    held, other = store.summaries(RepositoryId(7)), store.summaries(RepositoryId(8))
    await begin(held)
    await held.sent("msgbatch_1")
    await held.collected("msgbatch_1", {"a": "Sells."}, MicroUsd(30))
    assert (await other.texts(), await other.spent(), await begin(other)) == ({}, 0, True)


async def test_nothing_is_begun_on_an_offer_that_another_has_overtaken(store: Store):
    held = store.summaries(RepositoryId(7))
    assert await begin(held)
    await held.sent("msgbatch_1")
    assert not await begin(held)
    assert await begin(held, "msgbatch_1")
    await held.not_sent()
    await held.collected("msgbatch_1", {"a": "Sells."}, MicroUsd(30))
    assert not await begin(held)
    assert await begin(held, spent=30)


async def test_an_answer_to_what_was_not_asked_is_not_kept(store: Store):
    held = store.summaries(RepositoryId(7))
    await begin(held)
    await held.sent("msgbatch_1")
    await held.collected("msgbatch_1", {"z": "Of another.", "b": "Paints."}, MicroUsd(30))
    assert (await held.texts(), await held.spent()) == ({"b": "Paints."}, 30)
