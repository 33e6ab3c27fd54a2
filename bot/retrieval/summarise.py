"""Makes the summaries that are missing: what is under way is collected first, then new batches, then vectors. Killed anywhere, it
goes on where it was the next time: a batch is remembered by its id until its answers are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bot.domain.money import MicroUsd
from bot.providers.embedding.port import Embedder, InputType
from bot.providers.llm.batches import Batches, Question
from bot.retrieval.build import Progress, silent
from bot.retrieval.extract import decoded
from bot.retrieval.summaries import Summaries, question, wanted, within
from bot.retrieval.view import View

BATCH_QUESTIONS = 2_000
EMBEDDED_AT_ONCE = 512
POLL_SECONDS = 30.0

Contents = Callable[[list[int]], Awaitable[Mapping[int, bytes]]]
"""Reads items of the view; one that cannot be read is left out."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a run would do: files without a summary, those the budget allows, and the most that can cost."""

    missing: int
    questions: tuple[Question, ...]
    worst: MicroUsd
    under_way: int


@dataclass(frozen=True, slots=True)
class Done:
    """What a run did; `spent` is what this index's summaries have cost in all."""

    summaries: int
    vectors: int
    spent: MicroUsd


async def offer(view: View, held: Summaries, batches: Batches, contents: Contents, budget: MicroUsd) -> Offer:
    """Nothing is sent and nothing is spent. While batches are under way nothing new is offered: they may hold the same files."""
    under_way = len(held.batches())
    jobs = wanted(view, held.texts())
    if under_way:
        return Offer(len(jobs), (), MicroUsd(0), under_way)
    outlines = view.outlines(job.item for job in jobs)
    asked: list[Question] = []
    for start in range(0, len(jobs), BATCH_QUESTIONS):
        part = jobs[start : start + BATCH_QUESTIONS]
        read = await contents([job.item for job in part])
        for job in part:
            text = decoded(read.get(job.item, b"")) or ""
            asked.append(question(job, view.paths[job.item], outlines[job.item], text))
    costs = [batches.worst([one]) for one in asked]
    kept = within(asked, costs, MicroUsd(max(0, budget - held.spent())))
    return Offer(len(jobs), tuple(kept), MicroUsd(sum(costs[: len(kept)])), 0)


async def run(
    held: Summaries,
    batches: Batches,
    embedder: Embedder | None,
    made: Offer,
    *,
    progress: Progress = silent,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Done:
    """Submit what was offered, wait for all batches, embed. Raises Transient or UserError; what is done by then is kept."""
    for start in range(0, len(made.questions), BATCH_QUESTIONS):
        part = made.questions[start : start + BATCH_QUESTIONS]
        held.submitted(await batches.submit(part), batches.worst(part))
    before = len(held.texts())
    while waiting := held.batches():
        done, total, ended = 0, 0, 0
        for batch in waiting:
            state = await batches.progress(batch)
            if state is None or state.ended:
                held.collected(batch, await batches.answers(batch) if state is not None else ())
                ended += 1
            if state is not None:
                done, total = done + state.done, total + state.total
        progress(done, total)
        if not ended:
            await sleep(POLL_SECONDS)
    vectors = await embed(held, embedder) if embedder is not None else 0
    return Done(len(held.texts()) - before, vectors, held.spent())


async def embed(held: Summaries, embedder: Embedder) -> int:
    """Embed every summary that has no vector; how many there were."""
    missing = held.without_vector()
    for start in range(0, len(missing), EMBEDDED_AT_ONCE):
        part = missing[start : start + EMBEDDED_AT_ONCE]
        made = await embedder.embed(tuple(text for _, text in part), InputType.DOCUMENT)
        held.embedded(dict(zip([key for key, _ in part], made.vectors, strict=True)), made.cost)
    return len(missing)
