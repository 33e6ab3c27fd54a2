"""Opens everything the product keeps, on one database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.domain.ids import RepositoryId
from bot.providers.store.approvals import SqlApprovals
from bot.providers.store.database import Database
from bot.providers.store.deliveries import SqlDeliveries
from bot.providers.store.figures import SqlFigures
from bot.providers.store.ledger import SqlLedger
from bot.providers.store.requests import SqlRequests
from bot.providers.store.summaries import Account, SqlSummaries, accounts
from bot.providers.store.tasks import SqlTasks


@dataclass(frozen=True, slots=True)
class Store:
    """The stores of one database; `close` gives its connections back."""

    database: Database
    deliveries: SqlDeliveries
    tasks: SqlTasks
    approvals: SqlApprovals
    ledger: SqlLedger
    requests: SqlRequests
    figures: SqlFigures

    def summaries(self, repository: RepositoryId) -> SqlSummaries:
        """Those of one repository."""
        return SqlSummaries(self.database, repository)

    async def summary_accounts(self) -> tuple[Account, ...]:
        """What summaries have cost, by repository."""
        return await accounts(self.database)

    async def repository_names(self, repositories: tuple[RepositoryId, ...]) -> Mapping[RepositoryId, str]:
        """As their newest task named them; one without a task has no name here."""
        return await self.tasks.repository_names(repositories)

    def close(self) -> None:
        self.database.close()


def open_store(url: str) -> Store:
    """Open `DATABASE_URL` and create what is missing. Raises Transient when it cannot be reached."""
    database = Database(url)
    database.prepare()
    return _stores(database)


@contextmanager
def reading(url: str) -> Iterator[Store | None]:
    """What is in `DATABASE_URL`, to be looked at only: nothing is created. None when nothing was ever stored there."""
    database = Database(url)
    try:
        yield _stores(database) if database.made() else None
    finally:
        database.close()


def _stores(database: Database) -> Store:
    return Store(
        database,
        SqlDeliveries(database),
        SqlTasks(database),
        SqlApprovals(database),
        SqlLedger(database),
        SqlRequests(database),
        SqlFigures(database),
    )


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file; made when missing."""
    return f"sqlite:///{path}"
