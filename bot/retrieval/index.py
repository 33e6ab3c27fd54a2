"""Brings the index up to date with a commit of the mirror or with a plain folder, and gives the view to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.custody.mirror import Mirror
from bot.domain.ids import BlobId, TreeId
from bot.retrieval import files
from bot.retrieval.build import BATCH_FILES, Builder, Progress, batches, processes_for, silent
from bot.retrieval.extract import LARGEST
from bot.retrieval.files import File
from bot.retrieval.segment import Source
from bot.retrieval.store import Document, Key, Store
from bot.retrieval.view import View


@dataclass(frozen=True, slots=True)
class Report:
    """What an update did: files in all, blobs read now, and how many files are known by name only, by reason."""

    files: int
    read: int
    by_name_only: Mapping[str, int]


def index_folder(store: Store, root: Path, progress: Progress = silent) -> tuple[View, Report]:
    """Reads what is new or changed since the last time. No git is run."""
    listing = files.of_folder(root, store.seen())
    known = store.documents(file.oid for file in listing.files)
    missing = _missing(known, listing.files)
    unread = [file for file in missing if file.state]
    wanted = {file.path: file for file in missing if not file.state}
    sizes = [(path, file.size) for path, file in wanted.items()]
    processes = processes_for(len(missing), sum(size for _, size in sizes))
    with Builder(store, total=len(missing), processes=processes, progress=progress) as builder:
        for start in range(0, len(unread), BATCH_FILES):
            builder.add(_named_only(unread[start : start + BATCH_FILES]))
        for batch in batches(sizes):
            builder.add([_on_disk(root, wanted[path]) for path in batch])
    if listing.stamps or listing.gone:
        store.remember(listing.stamps, listing.gone)
    known.update(store.documents(file.oid for file in missing))
    view = View(store, listing.files, known)
    return view, _report(view, len(missing), listing.left_out)


async def index_tree(store: Store, mirror: Mirror, tree: TreeId, progress: Progress = silent) -> tuple[View, Report]:
    """Reads the blobs of a tree that the index does not know yet, from the bare mirror."""
    entries = await mirror.entries(tree)
    listed = files.of_tree(entries)
    known = await asyncio.to_thread(store.documents, [file.oid for file in listed])
    missing = _missing(known, listed)
    unread = [file for file in missing if file.state]
    present = [file for file in missing if not file.state]
    sizes = await mirror.sizes(BlobId(file.oid) for file in present) if present else {}
    large = [file for file in present if sizes[BlobId(file.oid)] > LARGEST]
    readable = [file for file in present if sizes[BlobId(file.oid)] <= LARGEST]
    wanted = {file.path: file for file in readable}
    weighed = [(file.path, sizes[BlobId(file.oid)]) for file in readable]
    processes = processes_for(len(missing), sum(size for _, size in weighed))
    with Builder(store, total=len(missing), processes=processes, progress=progress) as builder:
        named = [Source(f.oid, f.language, b"", "large", sizes[BlobId(f.oid)]) for f in large] + _named_only(unread)
        for start in range(0, len(named), BATCH_FILES):
            await asyncio.to_thread(builder.add, named[start : start + BATCH_FILES])
        for batch in batches(weighed):
            chosen = [wanted[path] for path in batch]
            contents = await mirror.blobs(BlobId(file.oid) for file in chosen)
            sources = [Source(file.oid, file.language, contents[BlobId(file.oid)]) for file in chosen]
            await asyncio.to_thread(builder.add, sources)
        await asyncio.to_thread(builder.finish)
    known.update(await asyncio.to_thread(store.documents, [file.oid for file in missing]))
    view = await asyncio.to_thread(View, store, listed, known)
    return view, _report(view, len(missing), {})


def _missing(known: Mapping[Key, Document], listed: Iterable[File]) -> list[File]:
    """One file for each blob and language that is not in the store."""
    distinct = {key: file for file in listed if (key := (file.oid, file.language)) not in known}
    return sorted(distinct.values(), key=lambda file: file.path)


def _named_only(unread: Iterable[File]) -> list[Source]:
    return [Source(file.oid, file.language, b"", file.state, file.size) for file in unread]


def _on_disk(root: Path, file: File) -> Source:
    return Source(file.oid, file.language, size=file.size, path=f"{root}/{file.path}")


def _report(view: View, read: int, left_out: Mapping[str, int]) -> Report:
    reasons = dict(left_out)
    for document in view.documents:
        if document.state != "read":
            reasons[document.state] = reasons.get(document.state, 0) + 1
    return Report(len(view.items), read, dict(sorted(reasons.items())))
