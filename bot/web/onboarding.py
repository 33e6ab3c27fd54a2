"""What the page shows of repositories: whether one is indexed and since when, and its summaries. From what is stored; nothing is built."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd, show
from bot.providers.store.summaries import Account
from bot.retrieval.service import indexes

SHOWN = 100


class Known(Protocol):
    """What the store knows of repositories."""

    async def summary_accounts(self) -> tuple[Account, ...]: ...

    async def repository_names(self, repositories: tuple[RepositoryId, ...]) -> Mapping[RepositoryId, str]:
        """As their newest task named them; one without a task has no name here."""
        ...


@dataclass(frozen=True, slots=True)
class Repositories:
    """Where it is kept: indexes beside the mirrors, the rest in the store. `budget` is for summaries of one repository."""

    known: Known
    mirrors: Path
    budget: MicroUsd
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RepositoryRow:
    """One repository as the page shows it."""

    name: str
    index: str
    summaries: str
    paid: str


async def repository_rows(where: Repositories) -> tuple[RepositoryRow, ...]:
    """Repositories that are mirrored or have summaries, those indexed last first. Raises Transient when the store does not answer."""
    written = await asyncio.to_thread(indexes, where.mirrors)
    accounts = {account.repository: account for account in await where.known.summary_accounts()}
    there = sorted({*written, *accounts}, key=lambda number: (-(written.get(number) or 0.0), number))[:SHOWN]
    names = await where.known.repository_names(tuple(there))
    now = where.now().timestamp()
    return tuple(
        RepositoryRow(
            names.get(number, f"repository {number}"),
            _index(written.get(number), now),
            *_summaries(accounts.get(number), where.budget),
        )
        for number in there
    )


def _index(written: float | None, now: float) -> str:
    if written is None:
        return "none yet"
    seconds = now - written
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"written {count} {name}{'' if count == 1 else 's'} ago"
    return "written just now"


def _summaries(account: Account | None, budget: MicroUsd) -> tuple[str, str]:
    """How many there are, and what they cost; empty where none were asked for."""
    allowed = f" of {show(budget)}" if budget else ""
    if account is None:
        return "", f"{show(MicroUsd(0))}{allowed}" if budget else ""
    batches = (
        f"{account.under_way} batch{'' if account.under_way == 1 else 'es'} under way" if account.under_way else ""
    )
    made = f"{account.summaries:,} files, {account.embedded:,} embedded" if account.summaries or not batches else ""
    return "; ".join(part for part in (made, batches) if part), f"{show(account.spent)}{allowed}"
