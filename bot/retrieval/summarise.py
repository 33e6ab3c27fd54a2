"""Makes the summaries that are missing: what is under way is collected first, then new batches, then vectors. Killed anywhere, it
goes on where it was the next time: a batch is remembered before it is sent and until its answers are kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.domain.errors import Transient, UserError
from bot.domain.money import MicroUsd
from bot.providers.embedding.port import Embedder, InputType
from bot.providers.llm.batches import Answer, Batches, Question
from bot.providers.store.port import Sending, Summaries
from bot.retrieval.build import Progress, silent
from bot.retrieval.extract import decoded
from bot.retrieval.summaries import MOST_SUMMARY, question, wanted, within
from bot.retrieval.view import View

BATCH_QUESTIONS = 2_000
EMBEDDED_AT_ONCE = 512
POLL_SECONDS = 30.0
FAILED_LOOKS = 20
"""So often, one after another, the service may fail before a run ends: ten minutes."""
LONGEST_SECONDS = 90_000
"""A batch ends within 24 hours; who waits longer waits for something broken."""
UNHEARD_SECONDS = 600
"""After this long nobody is still sending a batch: its sender was stopped, and whether it arrived is for the service to say."""

Contents = Callable[[list[int]], Awaitable[Mapping[int, bytes]]]
"""Reads items of the view; one that cannot be read is left out."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run waits, and what time it is, in seconds since 1970."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Makers:
    """Who is paid: for summaries, and for vectors where there is a key."""

    batches: Batches
    embedder: Embedder | None


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run would do: files without a summary, those the budget allows, summaries that have no vector yet, and the most all that
    can cost, vectors of the new ones included. `spent` is what was spent when it was made."""

    missing: int
    questions: tuple[Question, ...]
    worst: MicroUsd
    under_way: int
    spent: MicroUsd
    budget: MicroUsd
    vectors: int


@dataclass(frozen=True, slots=True)
class Done:
    """What a run did; `spent` is what this index's summaries have cost in all."""

    summaries: int
    vectors: int
    spent: MicroUsd


async def offer(
    view: View, held: Summaries, makers: Makers, contents: Contents, budget: MicroUsd, pace: Pace = Pace()
) -> Offer:
    """Nothing is sent and nothing is spent. While batches are under way nothing new is offered: they may hold the same files."""
    embedder = makers.embedder
    heard = await _heard_of(held, makers.batches, pace)
    under_way = len(await held.batches()) + (not heard)
    spent = await held.spent()
    jobs = wanted(view, await held.texts())
    if under_way:
        return Offer(len(jobs), (), MicroUsd(0), under_way, spent, budget, 0)
    bare = [text for _, text in await held.without_vector(embedder.space)] if embedder is not None else []
    vectors = embedder.worst(bare) if embedder is not None else MicroUsd(0)
    outlines = view.outlines(job.item for job in jobs)
    asked: list[Question] = []
    for start in range(0, len(jobs), BATCH_QUESTIONS):
        part = jobs[start : start + BATCH_QUESTIONS]
        read = await contents([job.item for job in part])
        for job in part:
            text = decoded(read.get(job.item, b"")) or ""
            asked.append(question(job, view.paths[job.item], outlines[job.item], text))
    each = embedder.worst(["x" * MOST_SUMMARY]) if embedder is not None else MicroUsd(0)
    costs = [MicroUsd(makers.batches.worst([one]) + each) for one in asked]
    left = max(0, budget - spent)
    kept = within(asked, costs, MicroUsd(max(0, left - vectors)))
    worst = sum(costs[: len(kept)]) + min(vectors, left)
    return Offer(len(jobs), tuple(kept), MicroUsd(worst), 0, spent, budget, len(bare))


async def run(
    held: Summaries,
    makers: Makers,
    made: Offer,
    *,
    progress: Progress = silent,
    pace: Pace = Pace(),
) -> Done:
    """Send what was offered, wait for all batches, embed. Raises Transient or UserError; what is done by then is kept."""
    batches = makers.batches
    while not await _heard_of(held, batches, pace):
        await pace.sleep(POLL_SECONDS)
    sent: list[str] = []
    for start in range(0, len(made.questions), BATCH_QUESTIONS):
        questions = made.questions[start : start + BATCH_QUESTIONS]
        sending = Sending(tuple(one.key for one in questions), await batches.newest(), int(pace.now()))
        if not await held.begin(sending, own=sent, spent=made.spent):
            break  # somebody else is at it: what is left is offered the next time
        sent.append(await _send(held, batches, questions))
    before = await _said(held)
    await _collect(held, batches, progress, pace)
    vectors = await embed(held, makers.embedder, made.budget) if makers.embedder is not None else 0
    return Done(await _said(held) - before, vectors, await held.spent())


async def _said(held: Summaries) -> int:
    return sum(1 for text in (await held.texts()).values() if text)


async def _send(held: Summaries, batches: Batches, questions: Sequence[Question]) -> str:
    try:
        batch = await batches.submit(questions)
    except UserError:
        await held.not_sent()
        raise
    await held.sent(batch)
    return batch


async def _heard_of(held: Summaries, batches: Batches, pace: Pace) -> bool:
    """Whether it is known what became of the batch that was last to be sent. One whose id was never heard is among those that came
    after `before` and answers these keys, or it never arrived. False while somebody may be sending it, or one that may be it
    has not ended."""
    unheard = await held.sending()
    if unheard is None:
        return True
    if unheard.at + UNHEARD_SECONDS > pace.now():
        return False
    ours = set(await held.batches())
    for batch in await batches.since(unheard.before):
        state = await batches.progress(batch)
        if batch in ours or state is None or state.total != len(unheard.keys):
            continue
        if not state.ended:
            return False
        if {answer.key for answer in await batches.answers(batch)} == set(unheard.keys):
            await held.sent(batch)
            return True
    await held.not_sent()
    return True


async def _collect(held: Summaries, batches: Batches, progress: Progress, pace: Pace) -> None:
    """A service that is away for a while is asked again: a batch takes up to a day, and every answer in it is paid for."""
    last, failed = pace.now() + LONGEST_SECONDS, 0
    while waiting := await held.batches():
        try:
            ended = await _look(held, batches, waiting, progress)
            failed = 0
        except Transient:
            failed += 1
            if failed >= FAILED_LOOKS:
                raise
            ended = False
        if pace.now() > last:
            raise Transient(f"{len(waiting)} batches of summaries have not ended in a day")
        if not ended:
            await pace.sleep(POLL_SECONDS)


async def _look(held: Summaries, batches: Batches, waiting: Sequence[str], progress: Progress) -> bool:
    """Keep the answers of those that have ended; whether there was one."""
    done, total, ended = 0, 0, False
    for batch in waiting:
        state = await batches.progress(batch)
        if state is None or state.ended:
            await _keep(held, batch, await _answers(batches, batch, state.total) if state is not None else ())
            ended = True
        if state is not None:
            done, total = done + state.done, total + state.total
    progress(done, total)
    return ended


async def _answers(batches: Batches, batch: str, total: int) -> tuple[Answer, ...]:
    """All of them: what is missing of an answer that broke off is paid for, too."""
    found = await batches.answers(batch)
    if len(found) < total:
        raise Transient(f"{total - len(found)} of {total} answers of a batch did not come")
    return found


async def _keep(held: Summaries, batch: str, answers: Sequence[Answer]) -> None:
    """An answer that was paid for and says nothing is kept as well, so that it is not asked for again."""
    texts = {answer.key: answer.text[:MOST_SUMMARY] for answer in answers if answer.text or answer.cost}
    await held.collected(batch, texts, MicroUsd(sum(answer.cost for answer in answers)))


async def embed(held: Summaries, embedder: Embedder, budget: MicroUsd) -> int:
    """Embed summaries that have no vector of this model and dimension, as far as the budget allows; how many were."""
    done = 0
    missing = await held.without_vector(embedder.space)
    for start in range(0, len(missing), EMBEDDED_AT_ONCE):
        part = missing[start : start + EMBEDDED_AT_ONCE]
        texts = tuple(text for _, text in part)
        if await held.spent() + embedder.worst(texts) > budget:
            break
        try:
            made = await embedder.embed(texts, InputType.DOCUMENT)
        except ValueError as refusal:
            raise UserError(
                f"The embeddings service does not take the summaries: {refusal}.",
                "Look at PULLWRIGHT_VOYAGE_MODEL and PULLWRIGHT_VOYAGE_DIMENSION. The summaries are kept.",
            ) from refusal
        await held.embedded(embedder.space, dict(zip([key for key, _ in part], made.vectors, strict=True)), made.cost)
        done += len(part)
    return done
