"""What the coder's `search` and `read` are answered from: the index and the blobs of a tree, which is the base with the task's
own changes. No sandbox is asked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.custody.git import GitError
from bot.custody.mirror import Mirror
from bot.custody.searching import Hit, grep
from bot.domain.change import FileMode
from bot.domain.ids import TreeId
from bot.retrieval.definition import Definition
from bot.retrieval.extract import decoded, extract
from bot.retrieval.index import index_tree
from bot.retrieval.languages import language_of
from bot.retrieval.rank import Ranked, rank
from bot.retrieval.service import store_of
from bot.retrieval.store import IndexFault, Store
from bot.retrieval.view import View

MOST_NEAREST = 8
LARGEST = 20_000_000
_FILES = (FileMode.REGULAR, FileMode.EXECUTABLE)
_LOOKED_AT = 400
"""Files with a match of which outlines are read."""
_SIGNATURE_LINES = 4


@dataclass(frozen=True, slots=True)
class Matches:
    """Lines that match, best files first: `defining` are the places (path, line) where a definition's name is. Without any, the
    files nearest to the words of the pattern."""

    hits: tuple[Hit, ...]
    defining: frozenset[tuple[str, int]] = frozenset()
    nearest: tuple[Ranked, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A file's text and its definitions."""

    text: str
    definitions: tuple[Definition, ...]


class Browser:
    """Answers from one mirror. None where it cannot answer: what is asked for is no file of the tree, or the index is broken."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    async def search(self, tree: TreeId, pattern: str, path: str = "") -> Matches | None:
        """Raises ValueError for a pattern that is no extended regular expression."""
        if path and not any(
            entry.path == path or entry.path.startswith(f"{path}/") for entry in await self._mirror.entries(tree)
        ):
            return None
        try:
            hits = await grep(self._mirror, tree, pattern, path)
        except GitError as error:
            if error.code < 0:
                return None
            raise ValueError(error.stderr.strip().removeprefix("fatal: ")) from error
        try:
            store = await asyncio.to_thread(Store, store_of(self._mirror))
        except IndexFault:
            return None
        try:
            view, _ = await index_tree(store, self._mirror, tree)
            return await asyncio.to_thread(_ranked, view, hits, pattern)
        except IndexFault:
            return None
        finally:
            store.close()

    async def read(self, tree: TreeId, path: str) -> Page | None:
        """A text file of the tree."""
        entry = next((one for one in await self._mirror.entries(tree) if one.path == path and one.mode in _FILES), None)
        if entry is None or (await self._mirror.sizes([entry.blob]))[entry.blob] > LARGEST:
            return None
        data = await self._mirror.blob(entry.blob)
        text = decoded(data)
        if text is None:
            return None
        found = await asyncio.to_thread(extract, data, language_of(path))
        return Page(text, found.definitions)


def _ranked(view: View, hits: Sequence[Hit], pattern: str) -> Matches:
    if not hits:
        return Matches((), nearest=rank(view, pattern)[:MOST_NEAREST])
    counts = Counter(hit.path for hit in hits)
    rows = {path: view.catalogue.row(path) for path, _ in counts.most_common(_LOOKED_AT)}
    items = {path: row for path, row in rows.items() if row is not None}
    outlines = view.outlines(items.values())
    defining = frozenset(
        (hit.path, hit.line) for hit in hits if hit.path in items and _defines(hit, outlines[items[hit.path]], pattern)
    )
    files = {path for path, _ in defining}
    order = sorted(counts, key=lambda path: (_apart(view, path), path not in files, -counts[path], path))
    place = {path: number for number, path in enumerate(order)}
    return Matches(
        tuple(sorted(hits, key=lambda hit: (place[hit.path], (hit.path, hit.line) not in defining, hit.line))), defining
    )


def _apart(view: View, path: str) -> bool:
    row = view.catalogue.row(path)
    return row is None or bool(view.apart[row])


def _defines(hit: Hit, definitions: Sequence[Definition], pattern: str) -> bool:
    """Whether a definition begins about here whose name is part of the pattern, or the other way round."""
    return any(
        one.first <= hit.line <= min(one.last, one.first + _SIGNATURE_LINES)
        and one.name in hit.text
        and (one.name in pattern or pattern in one.name)
        for one in definitions
    )
