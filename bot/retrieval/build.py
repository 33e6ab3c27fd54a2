"""Fills the store: batches of blobs go through parsing processes, finished segments into one transaction each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self

from bot.retrieval import parsers
from bot.retrieval.parsers import Parser
from bot.retrieval.segment import Segment, Source, build
from bot.retrieval.store import IndexFault, Store

BATCH_BYTES = 2_000_000
BATCH_FILES = 500
FEW_FILES = 60
FEW_BYTES = 1_500_000
"""Up to this much is parsed right here: starting processes would take longer."""
_AHEAD = 2
"""Batches that wait for each process, so that it never does."""
_MOST_DEATHS = 100
"""Processes that may die over files before the run ends: then the machine, not a file, is at fault."""

Progress = Callable[[int, int], None]
"""Called with the number of files done and of all that are to be done."""


def silent(_done: int, _total: int) -> None:
    """Progress that nobody watches."""


def batches(sizes: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Names in batches of about 2 MB and at most 500."""
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
        self._parsers: list[Parser] = []
        self._waiting: deque[list[Source]] = deque()
        self._deaths = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.finish()
        finally:
            for parser in self._parsers:
                parser.end()
            self._parsers.clear()

    def add(self, sources: list[Source]) -> None:
        """Parse these and store them, now or soon; blocks while enough is waiting."""
        if self.processes == 0:
            self._keep(build(sources))
            return
        self._waiting.append(sources)
        self._hand_out()
        while len(self._waiting) >= self.processes * _AHEAD:
            self._collect()

    def finish(self) -> None:
        """Wait for everything under way and store it."""
        while self._waiting or any(parser.batch is not None for parser in self._parsers):
            self._collect()

    def _hand_out(self) -> None:
        while self._waiting:
            idle = next((parser for parser in self._parsers if parser.batch is None), None)
            if idle is None:
                if len(self._parsers) >= self.processes:
                    return
                try:
                    idle = parsers.start()
                except parsers.CannotStart:
                    self._parse_here()
                    return
                self._parsers.append(idle)
            idle.give(self._waiting.popleft())

    def _parse_here(self) -> None:
        """Where no process can be started, this one reads what is waiting, unless others are still at work."""
        if not self._parsers:
            self.processes = 0
            while self._waiting:
                self._keep(build(self._waiting.popleft()))

    def _collect(self) -> None:
        self._hand_out()
        busy = [parser for parser in self._parsers if parser.batch is not None]
        if not busy:
            return
        batch_of = {id(parser): parser.batch or [] for parser in busy}
        for parser, segment in parsers.finished(busy):
            if segment is None:
                self._parsers.remove(parser)
                self._died_over(batch_of[id(parser)])
            self._hand_out()
            if segment is not None:
                self._keep(segment)

    def _died_over(self, batch: list[Source]) -> None:
        """Halve the batch until the file at fault is alone; it costs only itself."""
        self._deaths += 1
        if self._deaths > _MOST_DEATHS:
            raise IndexFault(
                f"{self._deaths} parsing processes have died; what is indexed is kept.",
                "Is there enough memory? Run it again.",
            )
        if len(batch) == 1:
            self._keep(
                build(
                    [
                        source._replace(data=b"", state="failed", size=source.size or len(source.data))
                        for source in batch
                    ]
                )
            )
            return
        middle = len(batch) // 2
        self._waiting.extendleft([batch[middle:], batch[:middle]])

    def _keep(self, segment: Segment) -> None:
        self.store.add(segment)
        self.done += len(segment.rows)
        self.progress(self.done, self.total)


def processes_for(files: int, size: int) -> int:
    """How many processes pay for this much; 0 is none beside this one."""
    return 0 if files <= FEW_FILES and size <= FEW_BYTES else max(1, os.cpu_count() or 1)
