"""What the rest of the product asks of this room: ranked files and contexts of a commit, or of a plain folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.custody.mirror import Mirror
from bot.domain.ids import BlobId, TreeId
from bot.retrieval import context
from bot.retrieval.build import Progress, silent
from bot.retrieval.context import Context
from bot.retrieval.index import index_folder, index_tree
from bot.retrieval.rank import Ranked, rank
from bot.retrieval.store import Store


def store_of(mirror: Mirror) -> Path:
    """The index of a mirror lies beside it."""
    return mirror.git_dir.with_name(f"{mirror.git_dir.name}.index.db")


async def context_for(mirror: Mirror, tree: TreeId, query: str, tokens: int, *, progress: Progress = silent) -> Context:
    """The context of a task on a tree of the mirror. The index is brought up to date first."""
    store = await asyncio.to_thread(Store, store_of(mirror))
    try:
        view, _ = await index_tree(store, mirror, tree, progress)
        made = await asyncio.to_thread(context.plan, view, query)
        readable = [item for item in made.wanted if view.items[item].document.state in READABLE]
        contents = await mirror.blobs(BlobId(view.items[item].oid) for item in readable) if readable else {}
        texts = {item: contents[BlobId(view.items[item].oid)] for item in readable}
        return await asyncio.to_thread(context.compose, made, texts, tokens)
    finally:
        store.close()


async def search_for(mirror: Mirror, tree: TreeId, query: str, *, progress: Progress = silent) -> tuple[Ranked, ...]:
    """Files of a tree near the task, best first."""
    store = await asyncio.to_thread(Store, store_of(mirror))
    try:
        view, _ = await index_tree(store, mirror, tree, progress)
        return await asyncio.to_thread(rank, view, query)
    finally:
        store.close()


def context_of_folder(index: Path, root: Path, query: str, tokens: int, *, progress: Progress = silent) -> Context:
    """The same for a plain folder; no git is run."""
    store = Store(index)
    try:
        view, _ = index_folder(store, root, progress)
        made = context.plan(view, query)
        contents: dict[int, bytes] = {}
        for item in made.wanted:
            if view.items[item].document.state in READABLE:
                try:
                    contents[item] = (root / view.items[item].path).read_bytes()
                except OSError:
                    continue
        return context.compose(made, contents, tokens)
    finally:
        store.close()


def search_folder(index: Path, root: Path, query: str, *, progress: Progress = silent) -> tuple[Ranked, ...]:
    """The same for a plain folder; no git is run."""
    store = Store(index)
    try:
        view, _ = index_folder(store, root, progress)
        return rank(view, query)
    finally:
        store.close()


READABLE = frozenset({"read", "slow", "nested"})
"""States of documents whose text may be shown."""
