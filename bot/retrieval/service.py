"""What the rest of the product asks of this room: ranked files and contexts of a commit, or of a plain folder."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bot.custody.mirror import Mirror
from bot.domain.errors import Transient, UserError
from bot.domain.ids import BlobId, RepositoryId, TreeId
from bot.providers.embedding.port import Embedder, InputType
from bot.providers.store.port import Summaries
from bot.retrieval import context, disk
from bot.retrieval.build import Progress, silent
from bot.retrieval.catalogue import Floats
from bot.retrieval.context import Context
from bot.retrieval.extract import LARGEST
from bot.retrieval.index import index_folder, index_tree
from bot.retrieval.rank import Ranked, rank
from bot.retrieval.store import Store
from bot.retrieval.summaries import closeness
from bot.retrieval.view import View

EMBEDDING_SECONDS = 5.0
MOST_EMBEDDED = 8_000
"""Characters of a task that are embedded."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What makes summaries of one repository count in ranking."""

    embedder: Embedder
    summaries: Summaries


_INDEX = ".index.db"


def store_of(mirror: Mirror) -> Path:
    """The index of a mirror lies beside it."""
    return mirror.git_dir.with_name(f"{mirror.git_dir.name}{_INDEX}")


def indexes(mirrors: Path) -> dict[RepositoryId, float | None]:
    """Repositories mirrored in this directory, and when the index of each was written last (seconds since 1970). None is opened."""
    found: dict[RepositoryId, float | None] = {}
    for entry in mirrors.iterdir() if mirrors.is_dir() else ():
        name = entry.name.removesuffix(_INDEX)
        if not name.isdecimal():
            continue
        number = RepositoryId(int(name))
        found.setdefault(number, None)
        if entry.name != name:
            with suppress(FileNotFoundError):  # it may be deleted at any time
                found[number] = _written(entry)
    return found


def _written(index: Path) -> float:
    """Until it is merged, what was written last stands in the log beside it."""
    log = index.with_name(f"{index.name}-wal")
    return max(each.stat().st_mtime for each in (index, log) if each.exists() or each == index)


async def context_for(
    mirror: Mirror,
    tree: TreeId,
    query: str,
    tokens: int,
    *,
    meaning: Meaning | None = None,
    progress: Progress = silent,
) -> Context:
    """The context of a task on a tree of the mirror. The index is brought up to date first; summaries count when they are there."""
    store = await asyncio.to_thread(Store, store_of(mirror))
    try:
        view, _ = await index_tree(store, mirror, tree, progress)
        nearness = await meaning_of(view, query, meaning)
        made = await asyncio.to_thread(context.plan, view, query, nearness)
        readable = [item for item in made.wanted if view.items[item].state in READABLE]
        contents = await mirror.blobs(BlobId(view.items[item].oid) for item in readable) if readable else {}
        texts = {item: contents[BlobId(view.items[item].oid)] for item in readable}
        return await asyncio.to_thread(context.compose, made, texts, tokens)
    finally:
        store.close()


async def search_for(
    mirror: Mirror, tree: TreeId, query: str, *, meaning: Meaning | None = None, progress: Progress = silent
) -> tuple[Ranked, ...]:
    """Files of a tree near the task, best first."""
    store = await asyncio.to_thread(Store, store_of(mirror))
    try:
        view, _ = await index_tree(store, mirror, tree, progress)
        nearness = await meaning_of(view, query, meaning)
        return await asyncio.to_thread(rank, view, query, nearness)
    finally:
        store.close()


async def meaning_of(view: View, query: str, meaning: Meaning | None) -> Floats | None:
    """How near each file's summary is to the task. None without a key or summaries, or when a service does not answer at once:
    nothing ever waits for it."""
    if meaning is None:
        return None
    try:
        async with asyncio.timeout(EMBEDDING_SECONDS):
            vectors = await meaning.summaries.vectors(meaning.embedder.space)
            if not vectors:
                return None
            asked = await meaning.embedder.embed((query[:MOST_EMBEDDED],), InputType.QUERY)
        return await asyncio.to_thread(closeness, view, vectors, asked.vectors[0])
    except (Transient, UserError, TimeoutError, ValueError):
        return None


def context_of_folder(
    index: Path,
    root: Path,
    query: str,
    tokens: int,
    *,
    meaning: Meaning | None = None,
    progress: Progress = silent,
) -> Context:
    """The same for a plain folder; no git is run."""
    store = Store(index)
    try:
        view, _ = index_folder(store, root, progress)
        nearness = asyncio.run(meaning_of(view, query, meaning)) if meaning else None
        made = context.plan(view, query, nearness)
        contents: dict[int, bytes] = {}
        for item in made.wanted:
            if view.items[item].state in READABLE:
                with suppress(OSError):
                    contents[item] = disk.read(f"{root}/{view.items[item].path}", LARGEST)
        return context.compose(made, contents, tokens)
    finally:
        store.close()


def search_folder(
    index: Path, root: Path, query: str, *, meaning: Meaning | None = None, progress: Progress = silent
) -> tuple[Ranked, ...]:
    """The same for a plain folder; no git is run."""
    store = Store(index)
    try:
        view, _ = index_folder(store, root, progress)
        nearness = asyncio.run(meaning_of(view, query, meaning)) if meaning else None
        return rank(view, query, nearness)
    finally:
        store.close()


READABLE = frozenset({"read", "slow", "nested"})
"""States of documents whose text may be shown."""
