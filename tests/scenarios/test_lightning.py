"""`kill -9` just when GitHub or the model has done what was asked and only the answer is missing; the story lands all the same."""

from collections.abc import Callable
from pathlib import Path

from tests import postgres
from tests.scenarios.brains import FILES, StepBrain
from tests.scenarios.lightning import Lightning, Point, When
from tests.scenarios.storm import story

ON_SQLITE = {
    Point("POST /repos/{name}/issues/{number}/comments"),
    Point("POST /v1/messages", 1),
    Point("PUT /repos/{name}/pulls/{number}/merge"),
}
ON_POSTGRES = {
    Point("POST /repos/{name}/git/refs"),
    Point("POST /repos/{name}/pulls"),
    Point("POST /repos/{name}/check-runs"),
}


async def test_a_story_lands_once_though_answers_to_its_writes_are_lost(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    lightning = Lightning(When.AFTER, ON_SQLITE.__contains__)
    report = await story(lightning, StepBrain(), tmp_path, FILES)
    assert report.wrong == ()
    assert set(lightning.struck) == ON_SQLITE
    record_property("control", f"the process was killed at {len(ON_SQLITE)} points after the effect")


async def test_a_story_lands_once_on_postgresql_too(tmp_path: Path):
    lightning = Lightning(When.AFTER, ON_POSTGRES.__contains__)
    with postgres.server() as server, postgres.database(server) as url:
        report = await story(lightning, StepBrain(), tmp_path, FILES, settings={"DATABASE_URL": url})
    assert report.wrong == ()
    assert set(lightning.struck) == ON_POSTGRES
