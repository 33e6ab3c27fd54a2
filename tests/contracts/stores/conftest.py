"""Every test of this folder runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.providers.store.sql import Store, open_store, sqlite_url
from tests import postgres


@pytest.fixture(scope="session")
def shared() -> Iterator[str]:
    """One database for all of them: to make one costs more than most tests."""
    with postgres.server() as server, postgres.database(server) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield sqlite_url(tmp_path / "store.db")
        return
    made: str = request.getfixturevalue("shared")
    postgres.empty(made)
    yield made


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()
