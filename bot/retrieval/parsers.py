"""Processes that read batches of sources. They are fresh interpreters that know this package and nothing of the program
that started them (`multiprocessing` would run that program's main module again), and they end when its end of the pipe closes.
"""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection

from bot.retrieval.segment import Segment, Source, build

BATCH_SECONDS = 120.0
"""A process that takes longer for its batch is ended; a file is bounded to seconds."""
_START_SECONDS = 60.0
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from bot.retrieval.parsers import serve; serve(int(sys.argv[1]))"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_KEPT_MEMORY = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "64000000")
"""The arrays of one batch are the memory of the next: given back in between, each page would be cleared again."""


class CannotStart(RuntimeError):  # noqa: N818 - says what is so, not that it is an error
    """No parsing process can be started here."""


@dataclass(slots=True)
class Parser:
    """One process and what it is at work on."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    batch: list[Source] | None = None
    until: float = 0.0

    def give(self, batch: list[Source]) -> None:
        """Send it a batch. A process that has just died says so when its answer is awaited."""
        self.batch, self.until = batch, time.monotonic() + BATCH_SECONDS
        try:
            self.pipe.send(batch)
        except OSError:
            return

    def end(self) -> None:
        """Close the pipe, which ends it, and wait; one that is busy is ended."""
        self.pipe.close()
        if self.batch is not None:
            self.process.kill()
        self.process.wait()


def start() -> Parser:
    """Raises CannotStart."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-I", "-c", _PROGRAM, str(theirs.fileno()), *sys.path]
    try:
        process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **_ONE_THREAD, **_KEPT_MEMORY},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise CannotStart(str(error)) from error
    finally:
        theirs.close()
    return Parser(process, Connection(ours.detach()))


def finished(parsers: Sequence[Parser]) -> list[tuple[Parser, Segment | None]]:
    """Wait for one of these busy parsers at least. None for one that died or took too long: it is ended here."""
    soonest = min(parser.until for parser in parsers)
    ready = connection.wait([parser.pipe for parser in parsers], max(0.0, soonest - time.monotonic()))
    found: list[tuple[Parser, Segment | None]] = []
    for parser in parsers:
        if parser.pipe in ready:
            found.append((parser, _answer(parser)))
        elif parser.until <= time.monotonic():
            found.append((parser, None))
    for parser, segment in found:
        if segment is None:
            parser.end()
        parser.batch = None
    return found


def _answer(parser: Parser) -> Segment | None:
    try:
        answer = parser.pipe.recv()
    except (EOFError, OSError):
        return None
    return answer if isinstance(answer, Segment) else None


def serve(descriptor: int) -> None:
    """What such a process does: a batch in, its segment out, until the other end closes."""
    pipe = Connection(descriptor)
    gc.freeze()
    gc.disable()  # what a batch holds is not garbage, and there is much of it to look through
    while True:
        gc.collect()
        try:
            batch = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            pipe.send(build(batch))
        except (BrokenPipeError, ConnectionResetError):
            return
