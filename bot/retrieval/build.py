"""Fills the store: batches of blobs go through a pool of parsing processes, finished segments into one transaction each."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import connection
from types import TracebackType
from typing import Self

from bot.retrieval.segment import Segment, Source, build
from bot.retrieval.store import Store

BATCH_BYTES = 2_000_000
BATCH_FILES = 400
FEW_FILES = 60
FEW_BYTES = 1_500_000
"""Up to this much is parsed right here: starting processes would take longer."""

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all that are to be done."""


def silent(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


def batches(sizes: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Names in batches of about 2 MB and at most 400."""
    batch: list[str] = []
    weight = 0
    for name, size in sizes:
        if batch and (weight + size > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, weight = [], 0
        batch.append(name)
        weight += size
    if batch:
        yield batch


class Builder:
    """Parses batches and stores them. Used as a context: leaving it stores what is under way and ends the processes."""

    def __init__(self, store: Store, *, total: int, processes: int, progress: Progress = silent) -> None:
        self.store = store
        self.total = total
        self.done = 0
        self.processes = processes
        self.progress = progress
        self._pool: ProcessPoolExecutor | None = None
        self._under_way: dict[Future[Segment], list[Source]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            if self._pool is not None:
                self._pool.shutdown(wait=True, cancel_futures=True)
                self._pool = None

    def add(self, sources: list[Source]) -> None:
        """Parse these and store them, now or soon; blocks while enough is under way."""
        if self.processes == 0:
            self._keep(build(sources), len(sources))
            return
        if self._pool is None:
            self._pool = _pool(self.processes)
        try:
            self._under_way[self._pool.submit(build, sources)] = sources
        except BrokenProcessPool:
            self._recover([sources])
        while len(self._under_way) > self.processes + 1:
            self._collect()

    def finish(self) -> None:
        """Wait for everything under way and store it."""
        while self._under_way:
            self._collect()

    def _collect(self) -> None:
        finished, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        broken: list[list[Source]] = []
        for future in finished:
            sources = self._under_way.pop(future)
            try:
                self._keep(future.result(), len(sources))
            except BrokenProcessPool:
                broken.append(sources)
        if broken:
            self._recover(broken)

    def _recover(self, broken: list[list[Source]]) -> None:
        """A process died: parse what was under way one by one, so that the file at fault costs only itself."""
        broken += list(self._under_way.values())
        self._under_way.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        self._pool = None
        for segment in _one_by_one([source for sources in broken for source in sources]):
            self._keep(segment, 1)

    def _keep(self, segment: Segment, files: int) -> None:
        self.store.add(segment)
        self.done += files
        self.progress(self.done, self.total)


def _one_by_one(sources: Sequence[Source]) -> Iterator[Segment]:
    pool = _pool(1)
    for source in sources:
        try:
            yield pool.submit(build, [source]).result()
        except BrokenProcessPool:
            yield build([replace(source, data=b"", state="failed", size=len(source.data))])
            pool = _pool(1)
    pool.shutdown()


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """A parsing process whose parent was killed ends too, instead of waiting for work that never comes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for_end, args=(parent.sentinel,), daemon=True).start()


def _wait_for_end(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def processes_for(files: int, size: int) -> int:
    """How many processes pay for this much; 0 is none beside this one."""
    return 0 if files <= FEW_FILES and size <= FEW_BYTES else max(1, os.cpu_count() or 1)
