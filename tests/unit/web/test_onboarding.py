"""The page shows of repositories what is stored: their indexes, their summaries and what these cost; nothing when there is nothing."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from bot.domain.ids import RepositoryId
from bot.domain.money import MicroUsd
from bot.providers.store.summaries import Account
from bot.web.onboarding import Repositories
from tests.unit.web.callers import NOON, Shelf, World, web

SHOP, ROAD, ATTIC = RepositoryId(1), RepositoryId(2), RepositoryId(3)


def indexed(mirrors: Path, number: int, ago: float, *, log_ago: float | None = None) -> None:
    """An index that was written so long ago, and perhaps its log."""
    for suffix, seconds in (("", ago), ("-wal", log_ago)):
        if seconds is not None:
            path = mirrors / f"{number}.index.db{suffix}"
            path.touch()
            os.utime(path, (NOON.timestamp() - seconds,) * 2)


@asynccontextmanager
async def page(mirrors: Path, budget: int = 0) -> AsyncIterator[World]:
    shelf = Shelf(names={SHOP: "acme/shop", ROAD: "acme/<road>"})
    where = Repositories(shelf, mirrors, MicroUsd(budget), now=lambda: NOON)
    async with web(repositories=where, tasks=shelf, ledger=shelf) as world:
        world.shelf = shelf
        yield world


async def cells(world: World) -> list[str]:
    text = (await world.client.get("/")).text
    rows = re.findall(r"<tr>\n(.*?)\n</tr>", text.partition("<h2>")[2], re.DOTALL)
    return [" | ".join(re.findall(r"<td[^>]*>(.*?)</td>", row)) for row in rows]


async def test_a_repository_shows_its_index_its_summaries_and_what_they_cost(tmp_path: Path):
    indexed(tmp_path, SHOP, 90_000)
    indexed(tmp_path, ROAD, 90_000, log_ago=7_300)
    (tmp_path / "3").mkdir()
    (tmp_path / "new-xyz").mkdir()
    async with page(tmp_path, budget=5_000_000) as world:
        world.shelf.accounts = (
            Account(SHOP, summaries=1_204, embedded=1_200, under_way=1, spent=MicroUsd(123_400)),
            Account(ATTIC, summaries=0, embedded=0, under_way=2, spent=MicroUsd(0)),
        )
        assert await cells(world) == [
            "acme/&lt;road&gt; | written 2 hours ago | – | $0.0000 of $5.00",
            "acme/shop | written 1 day ago | 1,204 files, 1,200 embedded; 1 batch under way | $0.1234 of $5.00",
            "repository 3 | none yet | 2 batches under way | $0.0000 of $5.00",
        ]


async def test_without_money_for_summaries_none_is_spoken_of(tmp_path: Path):
    indexed(tmp_path, SHOP, 5)
    async with page(tmp_path) as world:
        assert await cells(world) == ["acme/shop | written just now | – | –"]


async def test_where_there_is_nothing_nothing_is_shown(tmp_path: Path):
    for mirrors in (tmp_path, tmp_path / "never made"):
        async with page(mirrors, budget=1) as world:
            assert "Repositories" not in (await world.client.get("/")).text
    async with web() as world:
        assert "Repositories" not in (await world.client.get("/")).text


async def test_the_whole_page(tmp_path: Path, snapshot: SnapshotAssertion):
    indexed(tmp_path, SHOP, 120)
    async with page(tmp_path) as world:
        world.shelf.accounts = (Account(SHOP, 1, 0, 0, MicroUsd(7)),)
        assert (await world.client.get("/")).text.partition("</h1>")[2] == snapshot
