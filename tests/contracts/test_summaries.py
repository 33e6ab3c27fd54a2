"""Summaries of files: offered before anything is spent, made through the real client on strict stand-ins, kept and resumed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.domain.errors import Transient, UserError
from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd, from_dollars
from bot.emulators import voyage
from bot.emulators.anthropic import BrainAnswer, BrainRequest, Config, Endpoint, Text, running
from bot.emulators.anthropic.faults import Fault, Kind
from bot.providers.embedding.voyage import VoyageEmbedder
from bot.providers.llm.anthropic_batches import AnthropicBatches
from bot.providers.llm.batches import Question
from bot.providers.llm.pricing import PriceBook
from bot.providers.store.port import Sending
from bot.providers.store.sql import open_store, sqlite_url
from bot.providers.store.summaries import SqlSummaries
from bot.retrieval import summarise
from bot.retrieval.index import index_folder
from bot.retrieval.rank import rank
from bot.retrieval.service import Meaning, meaning_of
from bot.retrieval.store import Store
from bot.retrieval.view import View

pytestmark = pytest.mark.asyncio(loop_scope="module")
FILLING = "".join(f"    value_{n} = {n}\n" for n in range(20))
FILES = {
    "app/a.py": f"def alpha():\n{FILLING}",
    "app/b.py": f"def beta():\n{FILLING}",
    "tests/test_a.py": f"def test_alpha():\n{FILLING}",
    "app/tiny.py": "x = 1\n",
}


class Brain:
    """Answers by what the prompt names."""

    silent = False

    def answer(self, request: BrainRequest) -> BrainAnswer:
        if self.silent:
            return BrainAnswer((Text(" "),))
        asked = str(request.messages)
        return BrainAnswer(
            (Text("Refunds money to customers." if "app/a.py" in asked else "Paints the sky with colours."),)
        )


BRAIN = Brain()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config(brain=BRAIN, first_byte=0.0, batch_seconds=60.0)) as endpoint:
        yield endpoint


@dataclass(frozen=True, slots=True)
class Desk:
    """A small indexed folder and everything that summarises it."""

    view: View
    held: SqlSummaries
    batches: AsyncClosing
    endpoint: Endpoint

    async def contents(self, items: list[int]) -> Mapping[int, bytes]:
        return {item: FILES[self.view.paths[item]].encode() for item in items}

    async def offer(self, dollars: float = 1.0) -> summarise.Offer:
        return await self.offer_with(None, dollars)

    async def offer_with(self, embedder: VoyageEmbedder | None, dollars: float = 1.0) -> summarise.Offer:
        makers = summarise.Makers(self.batches, embedder)
        return await summarise.offer(self.view, self.held, makers, self.contents, from_dollars(dollars), self.pace())

    async def run(self, offer: summarise.Offer, embedder: VoyageEmbedder | None = None) -> summarise.Done:
        return await summarise.run(self.held, summarise.Makers(self.batches, embedder), offer, pace=self.pace())

    def pace(self) -> summarise.Pace:
        """Instead of sleeping, the stand-in's clock is set forward."""

        async def sleep(seconds: float) -> None:
            self.endpoint.state.clock.advance(seconds)

        return summarise.Pace(sleep, self.endpoint.state.clock.now)


AsyncClosing = AnthropicBatches


@pytest_asyncio.fixture(loop_scope="module")
async def desk(endpoint: Endpoint, tmp_path: Path) -> AsyncIterator[Desk]:
    endpoint.state.reset()
    for name, text in FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    view, _ = index_folder(Store(tmp_path / "index.db"), tmp_path / "tree")
    batches = AnthropicBatches(api_key=endpoint.api_key, base_url=endpoint.url, prices=PriceBook.load())
    store = open_store(sqlite_url(tmp_path / "store.db"))
    yield Desk(view, store.summaries(RepositoryId(7)), batches, endpoint)
    store.close()
    await batches.aclose()


async def test_an_offer_names_code_files_and_its_bound_holds(desk: Desk) -> None:
    offer = await desk.offer()
    assert (offer.missing, len(offer.questions)) == (2, 2)
    assert desk.endpoint.state.batches == {}
    done = await desk.run(offer)
    assert done.summaries == 2
    billed = sum(charge.micro_dollars for charge in desk.endpoint.state.bill.charges)
    assert 0 < billed == done.spent <= offer.worst
    assert (await desk.offer()).missing == 0


async def test_nothing_beyond_the_budget_is_offered_and_what_was_spent_counts(desk: Desk) -> None:
    whole = await desk.offer()
    assert len((await desk.offer(whole.worst / 1_000_000 * 0.6)).questions) == 1
    assert (await desk.offer(0)).questions == ()
    await desk.run(await desk.offer(whole.worst / 1_000_000 * 0.6))
    assert (await desk.offer(await desk.held.spent() / 1_000_000)).questions == ()


async def test_a_run_that_was_stopped_collects_its_batch_and_pays_once(desk: Desk) -> None:
    class Stopped(Exception):  # noqa: N818
        pass

    async def stop(_seconds: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        await summarise.run(
            desk.held, summarise.Makers(desk.batches, None), await desk.offer(), pace=summarise.Pace(stop)
        )
    offer = await desk.offer()
    assert (offer.under_way, offer.questions) == (1, ())
    done = await desk.run(offer)
    assert done.summaries == 2
    assert len(desk.endpoint.state.batches) == 1


class Crashing(AnthropicBatches):
    """Dies when the batch is sent: before the service has it, or right after."""

    arrives = True

    async def submit(self, questions: Sequence[Question]) -> str:
        if self.arrives:
            await super().submit(questions)
        raise Transient("the answer was never heard")


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_batch_whose_id_was_never_heard_is_found_again_and_not_sent_twice(desk: Desk, arrives: bool) -> None:
    other = await desk.batches.submit((Question("another_0", "Of another program."), Question("another_1", "Also.")))
    dying = Crashing(api_key=desk.endpoint.api_key, base_url=desk.endpoint.url, prices=PriceBook.load())
    dying.arrives = arrives
    with pytest.raises(Transient):
        await summarise.run(desk.held, summarise.Makers(dying, None), await desk.offer(), pace=desk.pace())
    await dying.aclose()
    offer = await desk.offer()
    assert (offer.under_way, offer.questions) == (1, ())
    done = await desk.run(offer)
    if not arrives:
        assert done.summaries == 0
        done = await desk.run(await desk.offer())
    assert done.summaries == 2
    assert len(desk.endpoint.state.batches.keys() - {other}) == 1
    assert (await desk.offer()).missing == 0


async def test_what_is_being_sent_is_not_sent_by_a_second_process(desk: Desk) -> None:
    offer = await desk.offer()
    sending = Sending(("a",), "", int(desk.endpoint.state.clock.now()))
    assert await desk.held.begin(sending, own=(), spent=offer.spent)
    assert ((await desk.offer()).under_way, (await desk.offer()).questions) == (1, ())
    await desk.run(offer)
    assert len(desk.endpoint.state.batches) == 1


async def test_a_batch_that_the_service_forgot_is_offered_anew(desk: Desk) -> None:
    await desk.held.begin(Sending(("a",), "", 0), own=(), spent=MicroUsd(0))
    await desk.held.sent("msgbatch_gone")
    await desk.run(await desk.offer())
    assert len((await desk.offer()).questions) == 2


async def test_a_key_that_is_refused_is_one_sentence(desk: Desk) -> None:
    stranger = AnthropicBatches(api_key="wrong", base_url=desk.endpoint.url, prices=PriceBook.load())
    with pytest.raises(UserError, match="does not take the batch"):
        await summarise.run(desk.held, summarise.Makers(stranger, None), await desk.offer(), pace=desk.pace())
    await stranger.aclose()


async def test_a_summary_brings_a_file_forward_that_shares_no_word_with_the_task(desk: Desk) -> None:
    async with voyage.running(voyage.Config()) as vectors:
        embedder = VoyageEmbedder(vectors.api_key, vectors.url, dimension=256)
        done = await desk.run(await desk.offer(), embedder)
        assert done.vectors == 2
        task = "refunds of customers' money"
        assert rank(desk.view, task) == ()
        meaning = await meaning_of(desk.view, task, Meaning(embedder, desk.held))
        found = rank(desk.view, task, meaning)
        assert (found[0].path, found[0].why[0]) == ("app/a.py", "its summary is near the task")
        wrong = VoyageEmbedder("wrong", vectors.url, dimension=256)
        assert await meaning_of(desk.view, task, Meaning(wrong, desk.held)) is None
        assert await meaning_of(desk.view, task, None) is None


async def test_two_that_were_shown_the_same_offer_pay_once(desk: Desk) -> None:
    first, second = await desk.offer(), await desk.offer()
    await desk.run(first)
    done = await desk.run(second)
    assert (done.summaries, len(desk.endpoint.state.batches)) == (0, 1)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Kind.STATUS, 529, times=3, path=""),
        Fault(Kind.STATUS, 429, times=3, path=""),
        Fault(Kind.CUT, path="/results"),
        Fault(Kind.MALFORMED, path="/results"),
    ],
    ids=lambda fault: f"{fault.kind}{fault.status}",
)
async def test_a_service_that_falters_while_answers_are_waited_for_costs_only_time(desk: Desk, fault: Fault) -> None:
    offer = await desk.offer()
    faltering: list[Fault] = []

    async def sleep(seconds: float) -> None:
        desk.endpoint.state.clock.advance(seconds)
        if not faltering:
            (batch,) = desk.endpoint.state.batches
            faltering.append(replace(fault, path=f"/v1/messages/batches/{batch}{fault.path}"))
            desk.endpoint.state.faults.add(faltering[0])

    pace = summarise.Pace(sleep, desk.endpoint.state.clock.now)
    done = await summarise.run(desk.held, summarise.Makers(desk.batches, None), offer, pace=pace)
    assert desk.endpoint.state.faults.waiting == []
    assert (done.summaries, len(desk.endpoint.state.batches)) == (2, 1)


async def test_a_batch_that_does_not_end_is_not_waited_for_forever_and_not_sent_again(desk: Desk) -> None:
    offer = await desk.offer()

    async def sleep(seconds: float) -> None:
        desk.endpoint.state.clock.advance(max(seconds, 1800))  # two looks a minute for a day would take long
        for batch in desk.endpoint.state.batches.values():
            batch.created = desk.endpoint.state.clock.now()
            batch.due = batch.created + 3600

    with pytest.raises(Transient, match="have not ended"):
        await summarise.run(
            desk.held,
            summarise.Makers(desk.batches, None),
            offer,
            pace=summarise.Pace(sleep, desk.endpoint.state.clock.now),
        )
    assert (await desk.offer()).under_way == 1


async def test_another_model_or_dimension_embeds_anew(desk: Desk) -> None:
    async with voyage.running(voyage.Config()) as vectors:
        small = VoyageEmbedder(vectors.api_key, vectors.url, dimension=256)
        await desk.run(await desk.offer(), small)
        assert (await desk.run(await desk.offer(), small)).vectors == 0
        for other in (replace(small, dimension=512), replace(small, model="voyage-code-3")):
            assert await meaning_of(desk.view, "refunds", Meaning(other, desk.held)) is None
            assert (await desk.run(await desk.offer(), other)).vectors == 2
            assert await meaning_of(desk.view, "refunds", Meaning(other, desk.held)) is not None
        with pytest.raises(UserError, match="does not take the summaries"):
            await desk.run(await desk.offer(), replace(small, dimension=100))


@pytest.mark.parametrize("status", [402, 403, 404, 422])
async def test_no_answer_of_the_embeddings_service_stops_a_task(desk: Desk, status: int) -> None:
    async with voyage.running(voyage.Config()) as vectors:
        embedder = VoyageEmbedder(vectors.api_key, vectors.url, dimension=256, sleep=_at_once)
        await desk.run(await desk.offer(), embedder)
        vectors.state.faults.waiting.append(voyage.Fault(voyage.Kind.STATUS, status, times=9))
        assert await meaning_of(desk.view, "refunds", Meaning(embedder, desk.held)) is None


async def _at_once(_seconds: float) -> None:
    return None


@pytest.mark.parametrize("after", [86_400, 30 * 86_400])
async def test_files_of_a_batch_that_expired_or_whose_answers_are_gone_are_offered_anew(desk: Desk, after: int) -> None:
    async def stop(_seconds: float) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await summarise.run(
            desk.held, summarise.Makers(desk.batches, None), await desk.offer(), pace=summarise.Pace(stop)
        )
    (batch,) = desk.endpoint.state.batches.values()
    batch.due = batch.created + (90_000 if after == 86_400 else 60)
    desk.endpoint.state.clock.advance(after)
    done = await desk.run(await desk.offer())
    assert done.summaries == 0
    assert (await desk.run(await desk.offer())).summaries == 2


async def test_vectors_are_in_the_offer_and_never_past_the_budget(desk: Desk) -> None:
    async with voyage.running(voyage.Config()) as vectors:
        embedder = VoyageEmbedder(vectors.api_key, vectors.url, dimension=256)
        offer = await desk.offer_with(embedder)
        assert offer.worst > (await desk.offer()).worst
        done = await desk.run(offer, embedder)
        assert (done.vectors, done.spent <= offer.worst) == (2, True)
        other = replace(embedder, dimension=512)
        poor = await desk.offer_with(other, done.spent / 1_000_000)
        assert (poor.vectors, poor.worst, (await desk.run(poor, other)).vectors) == (2, 0, 0)
        rich = await desk.offer_with(other)
        again = await desk.run(rich, other)
        assert (again.vectors, done.spent < again.spent <= done.spent + rich.worst) == (2, True)


async def test_an_answer_that_says_nothing_is_paid_for_once(desk: Desk) -> None:
    async with voyage.running(voyage.Config()) as vectors:
        embedder = VoyageEmbedder(vectors.api_key, vectors.url, dimension=256)
        BRAIN.silent = True
        try:
            done = await desk.run(await desk.offer_with(embedder), embedder)
        finally:
            BRAIN.silent = False
        offer = await desk.offer_with(embedder)
        assert (done.summaries, done.vectors, done.spent > 0) == (0, 0, True)
        assert (offer.missing, offer.vectors) == (0, 0)
