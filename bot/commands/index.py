"""`pullwright index`, `search` and `context`: the index of a git repository's HEAD, or of a plain folder as it lies there."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bot.custody.clones import number_of
from bot.custody.digest import is_clone
from bot.custody.faults import LineFault
from bot.custody.git import GitError
from bot.custody.mirror import Mirror
from bot.custody.raw import octets, quoted
from bot.domain.errors import UserError
from bot.domain.ids import RepositoryId, TreeId
from bot.retrieval import index as indexing
from bot.retrieval import service
from bot.retrieval.build import Progress as Watch
from bot.retrieval.build import silent
from bot.retrieval.context import Context
from bot.retrieval.index import Report
from bot.retrieval.rank import Ranked
from bot.retrieval.service import Meaning
from bot.retrieval.store import Store
from bot.settings import Settings

LONGEST_QUERY = 1_000_000
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Place:
    """What DIR is: `git` when it is a clone, or a bare repository."""

    root: Path
    home: Path
    git: bool

    @property
    def number(self) -> RepositoryId:
        return number_of(self.root)

    @property
    def folder_index(self) -> Path:
        return self.home / f"{self.number}.folder.index.db"


def place_of(directory: Path, home: Path) -> Place:
    """Raises UserError when there is no such directory."""
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory.", "Give a git repository or a folder.")
    root = directory.resolve()
    return Place(root, home / "index", is_clone(root))


def query_of(given: str) -> str:
    """The query; `-` reads standard input."""
    text = sys.stdin.buffer.read(LONGEST_QUERY).decode("utf-8", "replace") if given == "-" else given
    if not text.strip():
        raise UserError("The query is empty.", "Say what you look for, or give `-` and write it to standard input.")
    return text


_HINTS = {
    "commit_absent": "It needs at least one commit.",
    "object_format": "A copy of its files without `.git` can be searched.",
}


async def head(place: Place) -> tuple[Mirror, TreeId]:
    """The tree of the clone's HEAD, now in a mirror. Raises UserError when there is none."""
    mirror = Mirror(place.home, place.number)
    try:
        commit = await mirror.from_directory(place.root)
        return mirror, await mirror.tree_of(commit)
    except (LineFault, GitError) as error:
        rule, said = (error.rule, error.seen) if isinstance(error, LineFault) else ("", str(error))
        hint = _HINTS.get(rule, "`git fsck` tells what is wrong with a clone.")
        raise UserError(f"Cannot read the HEAD of {place.root}: {said}.", hint) from error


@contextmanager
def meaning_of(place: Place, settings: Settings) -> Iterator[Meaning | None]:
    """None without a key; the composition root takes a while to load, so it is only loaded with one."""
    if not settings.voyage_api_key.get_secret_value():
        yield None
        return
    with import_module("bot.wiring").meaning(settings, place.number) as made:
        yield made


def build(place: Place) -> Report:
    """Bring the index up to date."""

    async def of_commit(watch: Watch) -> Report:
        mirror, tree = await head(place)
        store = await asyncio.to_thread(Store, service.store_of(mirror))
        try:
            _, report = await indexing.index_tree(store, mirror, tree, watch)
        finally:
            store.close()
        return report

    with watched() as watch:
        if place.git:
            return asyncio.run(of_commit(watch))
        store = Store(place.folder_index)
        try:
            return indexing.index_folder(store, place.root, watch)[1]
        finally:
            store.close()


def search(directory: Path, query: str, settings: Settings) -> tuple[Ranked, ...]:
    """Files near the query, best first. With a key, summaries count where there are any."""
    place = place_of(directory, settings.home)

    async def of_commit(watch: Watch, meaning: Meaning | None) -> tuple[Ranked, ...]:
        mirror, tree = await head(place)
        return await service.search_for(mirror, tree, query, meaning=meaning, progress=watch)

    with watched() as watch, meaning_of(place, settings) as meaning:
        if place.git:
            return asyncio.run(of_commit(watch, meaning))
        return service.search_folder(place.folder_index, place.root, query, meaning=meaning, progress=watch)


def context(directory: Path, query: str, tokens: int, settings: Settings) -> Context:
    """The text that a model would see first. With a key, summaries count where there are any."""
    place = place_of(directory, settings.home)

    async def of_commit(watch: Watch, meaning: Meaning | None) -> Context:
        mirror, tree = await head(place)
        return await service.context_for(mirror, tree, query, tokens, meaning=meaning, progress=watch)

    with watched() as watch, meaning_of(place, settings) as meaning:
        if place.git:
            return asyncio.run(of_commit(watch, meaning))
        return service.context_of_folder(place.folder_index, place.root, query, tokens, meaning=meaning, progress=watch)


@contextmanager
def watched(what: str = "indexing") -> Iterator[Watch]:
    """A bar on standard error while something is read; nothing where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, visible=False)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=True)

        yield watch


def told_report(report: Report, *, as_json: bool) -> str:
    """For `index`."""
    if as_json:
        return json.dumps({"files": report.files, "read": report.read, "by_name_only": dict(report.by_name_only)})
    left = ", ".join(f"{count:,} {reason}" for reason, count in report.by_name_only.items())
    return f"{report.files:,} files, {report.read:,} read now." + (f" By name only: {left}." if left else "")


def told_ranking(ranked: Sequence[Ranked], *, as_json: bool, paths: bool) -> str:
    """For `search`; each path on one line, as git quotes them."""
    if as_json:
        return json.dumps([{"path": _text(r.path), "score": r.score, "why": list(r.why)} for r in ranked]) + "\n"
    if paths:
        return "".join(f"{quoted(r.path)}\n" for r in ranked)
    lines = (f"{r.score:7.3f}  {quoted(r.path)}\n         {'; '.join(r.why)}\n" for r in ranked)
    return "".join(lines) or "Nothing found.\n"


def bare_paths(ranked: Sequence[Ranked]) -> bytes:
    """For `search -z`: the paths as they are, each ended by NUL."""
    return b"".join(octets(r.path) + b"\0" for r in ranked)


def told_context(found: Context, *, as_json: bool, terminal: bool) -> str:
    """For `context`: to the byte what a model sees; in a terminal what would steer it is shown instead of obeyed."""
    if as_json:
        return json.dumps([{"path": _text(part.path), "first": part.first, "last": part.last} for part in found.parts])
    return _STEERING.sub(lambda found: f"\\x{ord(found[0]):02x}", found.text) if terminal else found.text


def _text(path: str) -> str:
    """A path in JSON; bytes that are no UTF-8 are replaced."""
    return octets(path).decode("utf-8", "replace")
