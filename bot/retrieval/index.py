"""Brings the index up to date with a commit of the mirror or with a plain folder, and gives the view to ask."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.custody.git import GitError
from bot.custody.mirror import Mirror
from bot.domain.ids import BlobId, TreeId
from bot.retrieval import catalogue, files
from bot.retrieval.build import BATCH_FILES, Builder, Progress, batches, processes_for, silent
from bot.retrieval.catalogue import Catalogue
from bot.retrieval.extract import LARGEST
from bot.retrieval.files import File
from bot.retrieval.segment import Source
from bot.retrieval.store import Document, Key, Store
from bot.retrieval.view import View

_CATALOGUE = "catalogue-2"
"""Another name with every change of `kinds`: the kind of a path is kept in it."""
_KEPT_FROM = 200
"""Files by which a catalogue must differ from the kept one to be kept instead: writing costs more than carrying a few over again."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an update did: files in all, blobs read now, and how many files are known by name only, by reason."""

    files: int
    read: int
    by_name_only: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Step:
    """From the catalogue that was kept to the files that are asked for: paths that are gone, files that are new or changed."""

    held: Catalogue
    gone: Collection[str]
    put: Sequence[File]
    tree: str = ""


def index_folder(store: Store, root: Path, progress: Progress = silent) -> tuple[View, Report]:
    """Reads what is new or changed since the last time. No git is run."""
    listing = files.of_folder(root, store.seen())
    step = _from_kept(store, listing.files)
    known = store.documents(file.oid for file in step.put)
    missing = _missing(known, step.put)
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
    view = _view(store, step, known, missing)
    return view, _report(view, len(missing), listing.left_out)


async def index_tree(store: Store, mirror: Mirror, tree: TreeId, progress: Progress = silent) -> tuple[View, Report]:
    """Reads the blobs of a tree that the index does not know yet, from the bare mirror."""
    step = await _since_kept(store, mirror, tree)
    known = await asyncio.to_thread(store.documents, [file.oid for file in step.put])
    missing = _missing(known, step.put)
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
    view = await asyncio.to_thread(_view, store, step, known, missing)
    return view, _report(view, len(missing), {})


async def _since_kept(store: Store, mirror: Mirror, tree: TreeId) -> _Step:
    held = await asyncio.to_thread(lambda: catalogue.unpacked(store.kept(_CATALOGUE)))
    if held.tree == tree:
        return _Step(held, (), (), tree)
    if held.tree:
        try:
            changed = await mirror.diff(TreeId(held.tree), tree)
        except GitError:  # that tree is no longer in the mirror
            pass
        else:
            gone = [change.path for change in changed if change.new is None]
            return _Step(held, gone, files.of_tree(change.new for change in changed if change.new is not None), tree)
    return _Step(catalogue.NOTHING, (), files.of_tree(await mirror.entries(tree)), tree)


def _from_kept(store: Store, listed: Sequence[File]) -> _Step:
    held = catalogue.unpacked(store.kept(_CATALOGUE))
    before = dict(zip(held.paths.all(), held.facts["oid"].tolist(), strict=True))
    put = [file for file in listed if before.pop(file.path, b"") != file.oid.encode()]
    return _Step(held, before, put)


def _view(store: Store, step: _Step, known: Mapping[Key, Document], missing: Sequence[File]) -> View:
    """What is read now is in the store. A file that another worker's fault kept out of it is left out, and looked for the next time."""
    if not step.gone and not step.put:
        return View(store, step.held)
    known = {**known, **store.documents(file.oid for file in missing)}
    joined = [(file, document) for file in step.put if (document := known.get((file.oid, file.language))) is not None]
    now = catalogue.updated(step.held, step.gone, joined, tree=step.tree)
    worth_keeping = not len(step.held) or len(step.gone) + len(step.put) >= _KEPT_FROM or not step.tree
    if worth_keeping and len(joined) == len(step.put):
        store.keep(_CATALOGUE, catalogue.packed(now))
    return View(store, now)


def _missing(known: Mapping[Key, Document], listed: Iterable[File]) -> list[File]:
    """One file for each blob and language that is not in the store."""
    distinct = {key: file for file in listed if (key := (file.oid, file.language)) not in known}
    return sorted(distinct.values(), key=lambda file: file.path)


def _named_only(unread: Iterable[File]) -> list[Source]:
    return [Source(file.oid, file.language, b"", file.state, file.size) for file in unread]


def _on_disk(root: Path, file: File) -> Source:
    return Source(file.oid, file.language, size=file.size, path=f"{root}/{file.path}")


def _report(view: View, read: int, left_out: Mapping[str, int]) -> Report:
    reasons = Counter(left_out) + Counter({state: count for state, count in view.states().items() if state != "read"})
    return Report(len(view), read, dict(sorted(reasons.items())))
