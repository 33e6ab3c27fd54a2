"""How a task ends without a pull request, or begins again; in every case it says why."""

from pathlib import Path

import pytest

from tests.scenarios.brains import FILES, GOOD, LAST_TEST, StepBrain, append, edit, finish
from tests.scenarios.town.town import UNTESTED, Town
from tests.world import World, world

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_stop_ends_a_task_and_retry_starts_it_again(here: World):
    issue, number = await here.drafted()
    await here.rosa.comment(number, "/agent stop")
    await here.says(issue, "Stopped")
    await here.robin.review(number)
    await here.quiet()
    assert (await here.rosa.pull(number))["draft"] is True
    await here.rosa.comment(issue, "/agent retry")

    async def second() -> int | None:
        pulls = await here.rosa.pulls()
        return len(pulls) if len(pulls) == 2 else None

    await here.until("a second draft", second)


async def test_the_same_failure_twice_ends_with_a_reason_and_no_pull_request(town: Town, here: World):
    wrong = (
        [edit("calc.py", "    return a + b\n", "    return a - b\n"), finish()],
        [
            append("test_calc.py", LAST_TEST, "\n    def test_more(self):\n        assert True\n"),
            finish(),
        ],
    )
    town.brain.of[here.repository] = StepBrain(wrong)
    issue = await here.ask("Break add")
    body = await here.says(issue, "Stopped")
    assert "failed twice" in body
    assert "test_add" in body
    assert await here.rosa.pulls() == []
    assert await here.rosa.head_of("main")


async def test_what_cannot_be_kept_is_told_to_the_model_which_works_on(town: Town, here: World):
    brain = StepBrain(([("run", {"command": "ln -s /etc/passwd link; rm calc.py"})], *GOOD))
    town.brain.of[here.repository] = brain
    await here.drafted()
    told = "".join(result.text for request in brain.heard for result in request.last.results)
    assert "Nothing of this was kept" in told
    assert "inside the repository" in told
    pull = (await here.rosa.pulls())[0]
    files = await here.rosa.here("GET", f"/pulls/{pull['number']}/files")
    assert {file["filename"] for file in files} == {"calc.py", "test_calc.py"}


async def test_a_task_over_its_budget_stops_before_it_spends(tmp_path: Path):
    settings = {"PULLWRIGHT_BUDGET_USD": "0.01"}
    async with world(StepBrain(), tmp_path, contents=FILES, settings=settings) as here:
        issue = await here.ask("Add triple")
        body = await here.says(issue, "budget")
        assert "Nothing more was sent" in body
        bill = here.model.state.bill.document()["totals"]
        assert bill["micro_dollars"] <= 10_000


async def test_without_a_known_test_command_nothing_is_guessed(town: Town):
    here = town.at(UNTESTED)
    issue = await here.ask("Add triple")
    body = await here.says(issue, "No test command")
    assert ".github/pullwright.toml" in body


@pytest.mark.parametrize("person", ["tess", "rudi"])
async def test_a_label_by_somebody_without_write_access_starts_nothing(town: Town, here: World, person: str):
    number = await here.rosa.open_issue("Add triple", "Please.")
    if person == "tess":
        await here.tess.label(number, "agent")
    else:
        await here.rudi.comment(number, "/agent run")
    await here.quiet()
    assert await here.rosa.pulls() == []
    assert town.brain.heard(here.repository) == 0


async def test_one_request_is_one_task_however_often_it_is_delivered(here: World):
    number = await here.rosa.open_issue("Add triple", "Please.")
    await here.rosa.comment(number, "/agent run")
    await here.hub.settle()
    mine = (await here.rosa.here("GET", ""))["id"]
    for delivery in [one for one in here.hub.world.courier.log if one.repository_id == mine]:
        here.hub.world.courier.again(delivery)
    await here.rosa.label(number, "agent")
    await here.draft()
    await here.quiet()
    assert len(await here.rosa.pulls()) == 1
