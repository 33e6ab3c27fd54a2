"""Summaries of one repository's files, their vectors, and the batches that make them, on a database. They cost money, so workers share
them where the database is shared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd
from bot.providers.store.database import Database
from bot.providers.store.port import Sending
from bot.providers.store.schema import SUMMARIES, SUMMARY_BATCHES, SUMMARY_COSTS

_UNNAMED = ""
_SPACE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Account:
    """What summaries of one repository are and have cost; `under_way` are batches that are not collected yet."""

    repository: RepositoryId
    summaries: int
    embedded: int
    under_way: int
    spent: MicroUsd


async def accounts(database: Database) -> tuple[Account, ...]:
    """Of every repository that has some, or paid for some."""
    counts: dict[str, Select[int, int]] = {
        "summaries": _by_repository(SUMMARIES, func.count()).where(SUMMARIES.c.text != ""),
        "embedded": _by_repository(SUMMARIES, func.count()).where(SUMMARIES.c.vector != b""),
        "under_way": _by_repository(SUMMARY_BATCHES, func.count()),
        "spent": _by_repository(SUMMARY_COSTS, func.sum(SUMMARY_COSTS.c.micros)),
    }

    def read(connection: Connection) -> tuple[Account, ...]:
        found = {name: {row[0]: int(row[1]) for row in connection.execute(query)} for name, query in counts.items()}
        return tuple(
            Account(
                RepositoryId(number),
                found["summaries"].get(number, 0),
                found["embedded"].get(number, 0),
                found["under_way"].get(number, 0),
                MicroUsd(found["spent"].get(number, 0)),
            )
            for number in sorted(set().union(*found.values()))
        )

    return await database.read(read)


def _by_repository(table: Table, value: ColumnElement[int]) -> Select[int, int]:
    return select(table.c.repository_id, value).group_by(table.c.repository_id)


class SqlSummaries:
    """The port `Summaries` for one repository."""

    def __init__(self, database: Database, repository: RepositoryId) -> None:
        self._database = database
        self._repository = repository
        self._queue = f"summaries:{repository}"
        self._of_files = SUMMARIES.c.repository_id == repository
        self._of_batches = SUMMARY_BATCHES.c.repository_id == repository

    async def texts(self) -> Mapping[str, str]:
        """Every summary by its key; nothing for what a model had nothing to say of."""
        query = select(SUMMARIES.c.key, SUMMARIES.c.text).where(self._of_files)
        return {key: text for key, text in await self._database.read(lambda c: c.execute(query).all())}  # noqa: C416

    async def vectors(self, space: bytes) -> Mapping[str, bytes]:
        """Vectors by key, of the summaries that have one in this space."""
        query = select(SUMMARIES.c.key, SUMMARIES.c.vector).where(self._of_files, _space() == space)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {key: bytes(data)[len(space) :] for key, data in rows}

    async def without_vector(self, space: bytes) -> tuple[tuple[str, str], ...]:
        """Key and text of summaries that are not embedded in this space yet, in order."""
        query = select(SUMMARIES.c.key, SUMMARIES.c.text).where(
            self._of_files, SUMMARIES.c.text != "", or_(SUMMARIES.c.vector == b"", _space() != space)
        )
        rows = await self._database.read(lambda c: c.execute(query.order_by(SUMMARIES.c.key)).all())
        return tuple((key, text) for key, text in rows)

    async def batches(self) -> tuple[str, ...]:
        """Batches that were sent and not collected."""
        query = select(SUMMARY_BATCHES.c.id).where(self._of_batches, SUMMARY_BATCHES.c.id != _UNNAMED)
        return tuple(await self._database.read(lambda c: c.scalars(query.order_by(SUMMARY_BATCHES.c.id)).all()))

    async def sending(self) -> Sending | None:
        """What was about to be sent when that was last said, and has no id yet."""
        query = select(SUMMARY_BATCHES).where(self._of_batches, SUMMARY_BATCHES.c.id == _UNNAMED)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return None if row is None else _sending(row)

    async def spent(self) -> MicroUsd:
        """What summaries and vectors of this repository have cost so far."""
        return await self._database.read(self._spent)

    def _spent(self, connection: Connection) -> MicroUsd:
        query = select(func.coalesce(func.sum(SUMMARY_COSTS.c.micros), 0))
        of_ours = query.where(SUMMARY_COSTS.c.repository_id == self._repository)
        return MicroUsd(int(connection.execute(of_ours).scalar_one()))

    async def begin(self, sending: Sending, *, own: Collection[str], spent: MicroUsd) -> bool:
        """Remember this before it is sent. False when something else is about to be sent, is under way, or was paid for meanwhile."""
        row = {
            "repository_id": self._repository,
            "id": _UNNAMED,
            "keys": json.dumps(sending.keys),
            "before": sending.before,
            "at": sending.at,
        }

        def remember(connection: Connection) -> bool:
            under_way = connection.scalars(select(SUMMARY_BATCHES.c.id).where(self._of_batches)).all()
            if not set(under_way) <= set(own) or self._spent(connection) != spent:
                return False
            connection.execute(insert(SUMMARY_BATCHES), row)
            return True

        return await self._database.write(remember, queue=self._queue)

    async def sent(self, batch: str) -> None:
        """What was about to be sent is this batch."""
        named = update(SUMMARY_BATCHES).where(self._of_batches, SUMMARY_BATCHES.c.id == _UNNAMED).values(id=batch)
        await self._database.write(lambda c: c.execute(named), queue=self._queue)

    async def not_sent(self) -> None:
        """What was about to be sent never was."""
        unnamed = delete(SUMMARY_BATCHES).where(self._of_batches, SUMMARY_BATCHES.c.id == _UNNAMED)
        await self._database.write(lambda c: c.execute(unnamed), queue=self._queue)

    async def collected(self, batch: str, texts: Mapping[str, str], cost: MicroUsd) -> None:
        """Keep the answers of a batch and what they cost, and forget the batch: all or nothing, and once. An answer to what was not
        asked is not kept."""

        def keep(connection: Connection) -> None:
            this = (self._of_batches, SUMMARY_BATCHES.c.id == batch)
            asked = connection.scalar(select(SUMMARY_BATCHES.c["keys"]).where(*this))
            if asked is None or connection.execute(delete(SUMMARY_BATCHES).where(*this)).rowcount == 0:
                return  # another process was first
            wanted = set(json.loads(asked))
            known = set(connection.scalars(select(SUMMARIES.c.key).where(self._of_files)))
            rows = [
                {"repository_id": self._repository, "key": key, "text": text, "vector": b""}
                for key, text in texts.items()
                if key not in known and key in wanted
            ]
            if rows:
                connection.execute(insert(SUMMARIES), rows)
            self._charge(connection, cost)

        await self._database.write(keep, queue=self._queue)

    async def embedded(self, space: bytes, vectors: Mapping[str, bytes], cost: MicroUsd) -> None:
        """Keep vectors and what they cost."""
        put = (
            update(SUMMARIES).where(self._of_files, SUMMARIES.c.key == bindparam("of")).values(vector=bindparam("data"))
        )

        def keep(connection: Connection) -> None:
            if vectors:
                connection.execute(put, [{"of": key, "data": space + data} for key, data in vectors.items()])
            self._charge(connection, cost)

        await self._database.write(keep, queue=self._queue)

    def _charge(self, connection: Connection, cost: MicroUsd) -> None:
        connection.execute(insert(SUMMARY_COSTS), {"repository_id": self._repository, "micros": cost})


def _space() -> ColumnElement[bytes]:
    """What a vector is compared with stands before it."""
    return func.substr(SUMMARIES.c.vector, 1, _SPACE_BYTES, type_=LargeBinary)


def _sending(row: Row[tuple[object, ...]]) -> Sending:
    return Sending(tuple(json.loads(row.keys)), row.before, row.at)
