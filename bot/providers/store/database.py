"""One engine, short transactions, in a thread. SQLite and PostgreSQL differ here and nowhere else."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Text, cast, create_engine, event, exc, func, inspect, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import URL, make_url

from bot.domain.errors import Transient, UserError
from bot.providers.store.schema import LATER_INDEXES, METADATA
from bot.providers.store.writer import Writer

T = TypeVar("T")

_UNREACHABLE = (exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.TimeoutError)
_READING = "pullwright_reading"


class Taken(Exception):  # noqa: N818 - an answer of the database, not a fault
    """A unique index says that somebody else was first. Nothing of the transaction was kept."""


class Database:
    """Runs a function in a transaction on a thread. A database that cannot serve now raises Transient, and nothing is kept.

    Threads of its own: an acknowledgement never waits behind somebody's long work.
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(_standard(url))
        self._sqlite = self._engine.dialect.name == "sqlite"
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="store")
        self._writer = Writer(self._engine, _UNREACHABLE) if self._sqlite else None

    def prepare(self) -> None:
        """Create what is missing. Call once, before the first use."""
        with _guarded(), self._engine.begin() as connection:
            self._queue_up(connection, "schema")
            METADATA.create_all(connection)
            for index in LATER_INDEXES:
                index.create(connection, checkfirst=True)

    def made(self) -> bool:
        """Whether the tables were ever created. A SQLite file would be made by looking into it."""
        file = self._engine.url.database if self._sqlite else None
        if file is not None and not Path(file).exists():
            return False
        with _guarded():
            return self._read(lambda connection: inspect(connection).has_table("tasks"))

    def close(self) -> None:
        """Finish what runs, then give the connections back."""
        if self._writer is not None:
            self._writer.close()
        self._threads.shutdown()
        self._engine.dispose()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """The value of `work`, which only reads."""
        with _guarded():
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    async def write(self, work: Callable[[Connection], T], *, queue: str | None = None) -> T:
        """The value of `work`, committed. Writers that name the same `queue` run one after another. Raises Taken."""
        with _guarded():
            if self._writer is not None:
                return await asyncio.wrap_future(self._writer.submit(work))
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._write, work, queue)

    def _read(self, work: Callable[[Connection], T]) -> T:
        with self._engine.connect().execution_options(**{_READING: True}) as connection:
            return work(connection)

    def _write(self, work: Callable[[Connection], T], queue: str | None) -> T:
        with self._engine.begin() as connection:
            if queue is not None:
                self._queue_up(connection, queue)
            return work(connection)

    def _queue_up(self, connection: Connection, queue: str) -> None:
        if not self._sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:queue, 0))"), {"queue": queue})


@contextmanager
def _guarded() -> Iterator[None]:
    try:
        yield
    except _UNREACHABLE as error:
        raise Transient(f"the store cannot serve now ({type(error).__name__})") from error
    except exc.IntegrityError as error:
        if _unique(error.orig):
            raise Taken from error
        raise


def text_in(connection: Connection, column: ColumnElement[str], name: str) -> ColumnElement[str]:
    """A text of the JSON object in this column, by its name."""
    if connection.dialect.name == "sqlite":
        return func.json_extract(column, f"$.{name}", type_=Text)
    found: ColumnElement[str] = cast(column, JSONB)[name].astext
    return found


@contextmanager
def answering(what: str) -> Iterator[None]:
    """For tables that are not ours: whatever their database refuses (not there, damaged, of another version) raises Transient."""
    try:
        yield
    except exc.SQLAlchemyError as error:
        raise Transient(f"{what} cannot be read now ({type(error).__name__})") from error


def _unique(error: BaseException | None) -> bool:
    """True for "this value exists", in either database's words; other broken constraints are bugs."""
    name = getattr(error, "sqlite_errorname", "")
    return (
        name in {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"}
        or getattr(error, "sqlstate", "") == "23505"
    )


def _standard(url: str) -> URL:
    """`DATABASE_URL` as its owners write it, with the driver we ship. Raises UserError when it is none."""
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError) as error:
        raise UserError("DATABASE_URL is no address of a database.", "postgresql://USER@HOST:PORT/NAME") from error
    if parsed.drivername in {"postgres", "postgresql"}:
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_size=8, pool_pre_ping=True)
    if url.database in {None, "", ":memory:"}:
        raise ValueError("the store needs a file: an in-memory SQLite database is another one in each thread")
    engine = create_engine(url, pool_size=8)
    event.listen(engine, "connect", _open_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _open_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    """Hand transactions over to us (the driver would begin them late), and survive a crash without losing an answer."""
    connection.isolation_level = None
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    """Writers take the lock at once: a reader that upgrades later can fail in the middle."""
    reading = connection.get_execution_options().get(_READING, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
