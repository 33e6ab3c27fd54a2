"""What the engine wrote down is damaged while nobody serves: the task ends, says so and closes its gate; the issue is free again."""

import sqlite3
from pathlib import Path

from tests.scenarios.brains import FILES, StepBrain
from tests.world import LABEL, World, world


async def test_a_task_that_cannot_be_replayed_ends_where_people_see_it(tmp_path: Path):
    async with world(StepBrain(), tmp_path, contents=FILES) as here:
        issue, number = await here.drafted()
        await here.kill()
        with sqlite3.connect(tmp_path / "data" / "engine.db") as engine:
            for table in ("workflow_output", "operation_outputs"):
                engine.execute(
                    f"UPDATE {table} SET output = '{{}}' WHERE workflow_uuid LIKE 'task:%' AND output LIKE '%base_ref%'"
                )
        await here.start()
        await here.says(issue, "An unexpected error stopped the task")
        await here.until("a closed gate", lambda: _closed(here, number))
        await here.rosa.label(issue, LABEL)
        await here.until("a second task", lambda: _second(here.home))


async def _closed(here: World, number: int) -> bool | None:
    head = (await here.rosa.pull(number))["head"]["sha"]
    return (await here.check(head))["conclusion"] == "failure" or None


async def _second(home: Path) -> bool | None:
    with sqlite3.connect(home / "data" / "pullwright.db") as store:
        (tasks,) = store.execute("SELECT count(*) FROM tasks").fetchone()
    return tasks == 2 or None
