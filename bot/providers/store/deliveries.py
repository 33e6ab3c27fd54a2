"""Deliveries: stored before they are acknowledged, accepted once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, insert, or_, select, update

from bot.domain.ids import DeliveryId, TaskId
from bot.providers.store.database import Database, Taken
from bot.providers.store.port import Delivery
from bot.providers.store.schema import DELIVERIES

_NOTE_LENGTH = 2_000
_EMPTIED_TOGETHER = 500
"""Deliveries that come meanwhile wait no longer than this takes."""

_NEW = insert(DELIVERIES)
_DONE = (
    update(DELIVERIES)
    .where(DELIVERIES.c.id == bindparam("which"), DELIVERIES.c.finished.is_(False))
    .values(finished=True, note=bindparam("said"))
)


def body_key(event: str, body: bytes) -> str:
    """Names a body of an event. The signature does not cover the headers, so a replay may carry any delivery id."""
    return hashlib.sha256(event.encode() + b"\0" + body).hexdigest()


@dataclass(frozen=True, slots=True)
class Noted:
    """A delivery without its body, and what it led to."""

    id: DeliveryId
    event: str
    received_at: str
    note: str


class SqlDeliveries:
    """The `Deliveries` port on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def accept(self, delivery: Delivery) -> bool:
        """Store it. False: this id, or a byte-equal body of the same event, is already here (replay)."""
        row = {
            "id": delivery.id,
            "event": delivery.event,
            "body": delivery.body,
            "body_key": body_key(delivery.event, delivery.body),
            "received_at": delivery.received_at,
            "finished": False,
            "note": "",
        }
        try:
            await self._database.write(lambda connection: connection.execute(_NEW, row))
        except Taken:
            return False
        return True

    async def get(self, delivery: DeliveryId) -> Delivery | None:
        """The delivery as received; None when it is unknown or its body was purged."""
        found = select(DELIVERIES).where(DELIVERIES.c.id == delivery, DELIVERIES.c.body != b"")
        row = await self._database.read(lambda connection: connection.execute(found).first())
        return None if row is None else Delivery(DeliveryId(row.id), row.event, row.body, row.received_at)

    async def finish(self, delivery: DeliveryId, note: str) -> None:
        """Mark it as dealt with; the first note stays."""
        await self.finish_all({delivery: note})

    async def finish_all(self, notes: Mapping[DeliveryId, str]) -> None:
        """Mark each of them as dealt with, in one transaction; the first note stays."""
        rows = [{"which": delivery, "said": plain(note)[:_NOTE_LENGTH]} for delivery, note in notes.items()]
        if rows:
            await self._database.write(lambda connection: connection.execute(_DONE, rows))

    async def unfinished(self) -> tuple[DeliveryId, ...]:
        """Deliveries nobody has dealt with yet, oldest first."""
        waiting = select(DELIVERIES.c.id).where(DELIVERIES.c.finished.is_(False)).order_by(DELIVERIES.c.seq)
        rows = await self._database.read(lambda connection: connection.execute(waiting).scalars().all())
        return tuple(DeliveryId(row) for row in rows)

    async def about(self, task: TaskId, *, since: str, until: str) -> tuple[Noted, ...]:
        """Those received between these ISO times that started this task or were told to it, in their order."""
        mine = or_(
            DELIVERIES.c.note == f"started {task}", DELIVERIES.c.note.startswith(f"told {task}: ", autoescape=True)
        )
        query = (
            select(DELIVERIES.c.id, DELIVERIES.c.event, DELIVERIES.c.received_at, DELIVERIES.c.note)
            .where(DELIVERIES.c.received_at >= since, DELIVERIES.c.received_at <= until, mine)
            .order_by(DELIVERIES.c.seq)
        )
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return tuple(Noted(DeliveryId(row.id), row.event, row.received_at, row.note) for row in rows)

    async def purge(self, *, before: str) -> int:
        """Empty the bodies of finished deliveries received before this ISO time; how many. Their keys stay, against replay."""
        old = (
            select(DELIVERIES.c.seq)
            .where(DELIVERIES.c.finished.is_(True), DELIVERIES.c.received_at < before, DELIVERIES.c.body != b"")
            .limit(_EMPTIED_TOGETHER)
        )
        emptying, gone = update(DELIVERIES).where(DELIVERIES.c.seq.in_(old)).values(body=b""), 0
        while emptied := await self._database.write(lambda connection: connection.execute(emptying).rowcount):
            gone += emptied
        return gone


def plain(text: str) -> str:
    """Text that both databases can hold: PostgreSQL has no NUL."""
    return text.replace("\0", "�")
