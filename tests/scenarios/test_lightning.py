"""`kill -9` just when GitHub or the model has done what was asked and only the answer is missing; the story lands all the same."""

from pathlib import Path

from tests.scenarios.brains import FILES, StepBrain
from tests.scenarios.lightning import Lightning, Point, When
from tests.scenarios.storm import story

STRUCK = {
    Point("POST /repos/{name}/issues/{number}/comments"),
    Point("POST /v1/messages", 1),
    Point("POST /repos/{name}/git/refs"),
    Point("POST /repos/{name}/pulls"),
    Point("PUT /repos/{name}/pulls/{number}/merge"),
}


async def test_a_story_lands_once_though_the_answer_to_each_of_its_writes_is_lost(tmp_path: Path):
    lightning = Lightning(When.AFTER, STRUCK.__contains__)
    report = await story(lightning, StepBrain(), tmp_path, FILES)
    assert report.wrong == ()
    assert set(lightning.struck) == STRUCK
