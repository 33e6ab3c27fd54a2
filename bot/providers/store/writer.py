"""SQLite's one writer: what waits together is committed together, since the disk takes as long for one as for many."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar, cast

from sqlalchemy import Connection, Engine

T = TypeVar("T")

_TOGETHER = 64


class _Outcome:
    """What a job gave or raised, kept until the commit. Errors of a `fatal` kind pass: they are everybody's."""

    def __init__(self, fatal: tuple[type[Exception], ...] = ()) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self._fatal = fatal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._fatal):
            return False
        self.error = error
        return True

    def tell(self, done: Future[Any]) -> None:
        """Hand it to whoever waits."""
        if self.error is None:
            done.set_result(self.value)
        else:
            done.set_exception(self.error)


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Connection], Any]
    done: Future[Any]


class Writer:
    """Runs jobs one after another on a thread of its own. A job that fails takes back its own statements and no others.

    Errors of the kinds in `fatal` mean that the transaction itself is lost: then every job of the batch fails with it.
    """

    def __init__(self, engine: Engine, fatal: tuple[type[Exception], ...]) -> None:
        self._engine = engine
        self._fatal = fatal
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store-write", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """The future value of `work`; it is set only after the commit."""
        done: Future[T] = Future()
        self._jobs.put(_Job(work, done))
        return done

    def close(self) -> None:
        """Finish what was submitted."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch = [job, *self._waiting()]
            batch = [each for each in batch if each.done.set_running_or_notify_cancel()]
            whole = _Outcome()
            outcomes: list[_Outcome] = []
            with whole:
                outcomes = self._together(batch)
            for number, each in enumerate(batch):
                (whole if whole.error is not None else outcomes[number]).tell(each.done)

    def _waiting(self) -> list[_Job]:
        batch: list[_Job] = []
        while len(batch) < _TOGETHER:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _together(self, batch: list[_Job]) -> list[_Outcome]:
        """What each job gave or raised, in one committed transaction."""
        outcomes: list[_Outcome] = []
        with self._engine.begin() as connection:
            for job in batch:
                with _Outcome(self._fatal) as outcome, _savepoint(connection):
                    outcome.value = job.work(connection)
                outcomes.append(outcome)
        return outcomes


@contextmanager
def _savepoint(connection: Connection) -> Iterator[None]:
    """What SQLAlchemy's own would do, without compiling three statements for each job."""
    driver = cast("sqlite3.Connection", connection.connection.dbapi_connection)
    driver.execute("SAVEPOINT job")
    kept = False
    try:
        yield
        kept = True
    finally:
        if driver.in_transaction:  # SQLite itself takes everything back when the disk is full
            if not kept:
                driver.execute("ROLLBACK TO job")
            driver.execute("RELEASE job")
