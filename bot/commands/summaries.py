"""`pullwright index DIR --summaries`: what summaries would cost, then, when asked to go on, the summaries. Resumable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from bot import wiring
from bot.commands.index import Place, head, watched
from bot.domain.errors import Transient, UserError
from bot.domain.ids import BlobId
from bot.domain.money import MicroUsd, dollars, from_dollars, show
from bot.providers.store.sql import open_store
from bot.retrieval import disk, service, summarise
from bot.retrieval import index as indexing
from bot.retrieval.build import Progress
from bot.retrieval.extract import LARGEST
from bot.retrieval.store import Store
from bot.retrieval.summarise import Contents, Done, Offer
from bot.retrieval.view import View
from bot.settings import Settings

Agreed = Callable[[Offer], bool]
"""Shown the offer before anything is spent; False ends it there."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """What was offered, and what was done; None when it was not agreed to."""

    offer: Offer
    done: Done | None


def run(place: Place, settings: Settings, budget: float, *, yes: bool, as_json: bool) -> str:
    """The command: shows the cost on standard error, asks unless told not to, and says what came of it."""

    def agreed(offer: Offer) -> bool:
        typer.echo(told_offer(offer), err=True)
        try:
            return yes or typer.confirm("Go on?", err=True)
        except typer.Abort:
            raise UserError("Nobody said whether to go on; nothing was submitted.", "`--yes` does not ask.") from None

    return told(make(place, settings, from_dollars(budget), agreed), as_json=as_json)


def make(place: Place, settings: Settings, budget: MicroUsd, agreed: Agreed) -> Summarised:
    """Offer, ask, do. Raises UserError without a key, and what the services raise; what is done by then is kept."""
    if not settings.anthropic_api_key.get_secret_value():
        raise UserError("Summaries need a model.", "Set ANTHROPIC_API_KEY. Without it, search uses words and outlines.")
    try:
        with watched("summaries") as watch:
            return asyncio.run(_made(place, settings, budget, agreed, watch))
    except Transient as error:
        raise UserError(
            f"A service does not answer now ({error}).", "Run it again later; what is done is kept."
        ) from error


async def _made(place: Place, settings: Settings, budget: MicroUsd, agreed: Agreed, watch: Progress) -> Summarised:
    makers = summarise.Makers(wiring.summaries(settings), wiring.embedder(settings))
    settings.home.mkdir(parents=True, exist_ok=True)
    kept = open_store(settings.database())
    store, view, contents = await _opened(place)
    held = kept.summaries(place.number)
    try:
        offer = await summarise.offer(view, held, makers, contents, budget)
        if (offer.worst or offer.under_way) and not agreed(offer):
            return Summarised(offer, None)
        return Summarised(offer, await summarise.run(held, makers, offer, progress=watch))
    finally:
        store.close()
        kept.close()
        await makers.batches.aclose()


async def _opened(place: Place) -> tuple[Store, View, Contents]:
    if place.git:
        mirror, tree = await head(place)
        store = Store(service.store_of(mirror))
        view, _ = await indexing.index_tree(store, mirror, tree)

        async def of_mirror(items: list[int]) -> Mapping[int, bytes]:
            found = await mirror.blobs(BlobId(view[item].oid) for item in items)
            return {item: found[BlobId(view[item].oid)] for item in items}

        return store, view, of_mirror
    store = Store(place.folder_index)
    view, _ = indexing.index_folder(store, place.root)

    async def of_folder(items: list[int]) -> Mapping[int, bytes]:
        return {item: data for item in items if (data := _read(place.root / view.paths[item])) is not None}

    return store, view, of_folder


def _read(path: Path) -> bytes | None:
    try:
        return disk.read(str(path), LARGEST)
    except OSError:
        return None


def told_offer(offer: Offer) -> str:
    """Before anything is spent."""
    if offer.under_way:
        return f"{offer.under_way} batches are under way; they are collected first. Nothing new is submitted now."
    left = offer.missing - len(offer.questions)
    beyond = f" {left:,} more files are beyond the budget." if left else ""
    bare = f" and {offer.vectors:,} summaries without a vector" if offer.vectors else ""
    return f"{len(offer.questions):,} files without a summary{bare}; at most {show(offer.worst)}, in batches at half price.{beyond}"


def told(made: Summarised, *, as_json: bool) -> str:
    """Afterwards."""
    offer, done = made.offer, made.done
    if as_json:
        value: dict[str, object] = {
            "missing": offer.missing,
            "offered": len(offer.questions),
            "worst_usd": dollars(offer.worst),
            "under_way": offer.under_way,
        }
        if done is not None:
            value |= {"summaries": done.summaries, "vectors": done.vectors, "spent_usd": dollars(done.spent)}
        return json.dumps(value)
    if done is None:
        return "Nothing was submitted."
    return f"{done.summaries:,} summaries, {done.vectors:,} vectors; {show(done.spent)} spent in all."
