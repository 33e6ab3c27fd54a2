"""What happens when the App comes to a repository: it is fetched and indexed in the background, and summarised where the operator
allows money for it; what is new since is summarised when a task comes. No task waits for either: one that comes first indexes what it
needs itself. No repository waits for the summaries of another, which may take a day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from bot.custody.mirror import Mirror
from bot.domain.ids import BlobId, InstallationId, RepositoryId, TreeId
from bot.domain.money import dollars
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.providers.journal.port import Journal
from bot.providers.store.port import Summaries
from bot.retrieval import service, summarise
from bot.retrieval.index import index_tree
from bot.retrieval.store import Store
from bot.retrieval.summarise import Makers, Offer
from bot.workflow.services import Services

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Arrival:
    """A repository that the App may work in from now on."""

    installation: InstallationId
    repository: RepositoryId


@dataclass(frozen=True, slots=True)
class _Fetched:
    tree: TreeId | None


@dataclass(frozen=True, slots=True)
class _Indexed:
    files: int


async def onboard(arrival: Arrival, services: Services, journal: Journal) -> str:
    """A line for the log. Each act is a checkpoint."""
    mirror = Mirror(services.home / "mirrors", arrival.repository)
    fetched = await journal.step("fetch", lambda: _fetch(arrival, mirror, services), _Fetched)
    if fetched.tree is None:
        return _NOTHING
    tree = fetched.tree
    indexed = await journal.step("index", lambda: _index(mirror, tree), _Indexed)
    return f"{indexed.files} files indexed"


async def summarised(arrival: Arrival, services: Services, journal: Journal) -> str:
    """A line for the log. A batch is resumed by its id, not asked again."""
    mirror = Mirror(services.home / "mirrors", arrival.repository)
    fetched = await journal.step("fetch", lambda: _fetch(arrival, mirror, services), _Fetched)
    if fetched.tree is None:
        return _NOTHING
    tree = fetched.tree
    return await journal.step("summarise", lambda: _summarise(mirror, tree, services), str)


_NOTHING = "nothing to index: the repository is empty, archived or out of reach"


async def _fetch(arrival: Arrival, mirror: Mirror, services: Services) -> _Fetched:
    try:
        forge = await services.forges.open(arrival.installation, arrival.repository)
        repository = await forge.repository()
        head = await forge.branch_head(repository.default_branch)
        if repository.archived or head is None:
            return _Fetched(None)
        upstream = services.upstream(repository.clone_url, await forge.fetch_token())
    except (ForgeGone, ForgeRefused) as refusal:
        log.info("not onboarded", repository=arrival.repository, reason=str(refusal))
        return _Fetched(None)
    await mirror.fetch(upstream, commits=(head,))
    return _Fetched(await mirror.tree_of(head))


async def _index(mirror: Mirror, tree: TreeId) -> _Indexed:
    store = await asyncio.to_thread(Store, service.store_of(mirror))
    try:
        _, report = await index_tree(store, mirror, tree)
    finally:
        store.close()
    return _Indexed(report.files)


async def _summarise(mirror: Mirror, tree: TreeId, services: Services) -> str:
    """What was under way is collected first; only then is it known what is missing. The index is not kept open while batches run."""
    if services.summaries is None or services.summaries_of is None:
        return "no summaries: there is no model key, or no money is set aside for them"
    makers = Makers(services.summaries, services.embedder)
    held = services.summaries_of(mirror.repository)
    summaries, vectors = 0, 0
    while True:
        offer = await _offer(mirror, tree, services, held, makers)
        log.info(
            "summaries offered",
            repository=mirror.repository,
            files=len(offer.questions),
            missing=offer.missing,
            under_way=offer.under_way,
            at_most_usd=dollars(offer.worst),
            spent_usd=dollars(offer.spent),
            budget_usd=dollars(services.summary_budget),
        )
        done = await summarise.run(held, makers, offer, pace=services.summary_pace)
        summaries, vectors = summaries + done.summaries, vectors + done.vectors
        if not offer.under_way:
            return f"{summaries} summaries, {vectors} vectors, {dollars(done.spent)} dollars in all"


async def _offer(mirror: Mirror, tree: TreeId, services: Services, held: Summaries, makers: Makers) -> Offer:
    store = await asyncio.to_thread(Store, service.store_of(mirror))
    try:
        view, _ = await index_tree(store, mirror, tree)

        async def contents(items: list[int]) -> Mapping[int, bytes]:
            found = await mirror.blobs(BlobId(view[item].oid) for item in items)
            return {item: found[BlobId(view[item].oid)] for item in items}

        return await summarise.offer(view, held, makers, contents, services.summary_budget, services.summary_pace)
    finally:
        store.close()
