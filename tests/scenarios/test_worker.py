"""`pullwright serve` and `pullwright worker` on one PostgreSQL: what the door receives, both work."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import create_engine, text

from tests import postgres
from tests.scenarios.brains import FILES, StepBrain
from tests.world import World, world


@asynccontextmanager
async def working(here: World) -> AsyncIterator[str]:
    """A worker beside the product, by the name it gives itself; it has to end well."""
    process, line = await here.command("worker")
    try:
        yield str(json.loads(line)["executor"])
    finally:
        process.send_signal(signal.SIGTERM)
        ended = await asyncio.wait_for(process.wait(), 20)
    assert ended == 0


def _executors(url: str) -> set[str]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT DISTINCT executor_id FROM dbos.workflow_status WHERE name = 'segment'"))
        found = {str(row[0]) for row in rows}
    engine.dispose()
    return found


async def test_a_worker_beside_the_door_takes_its_share(tmp_path: Path):
    with postgres.server() as server, postgres.database(server) as url:
        alone = {"DATABASE_URL": url, "PULLWRIGHT_TASKS_AT_ONCE": "1"}
        async with (
            world(StepBrain(), tmp_path, contents=FILES, settings=alone) as here,
            working(here) as name,
        ):
            for number in range(2):
                await here.ask(f"Add triple ({number})", "Please add calc.triple with a test.")

            async def both() -> bool | None:
                return len(await here.rosa.pulls()) == 2 or None

            await here.until("two draft pull requests", both)
            assert name == "world:worker:1"
            assert _executors(url) == {"world", name}
