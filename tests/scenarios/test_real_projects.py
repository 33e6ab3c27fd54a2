"""Real open-source projects at a release with a known bug: the upstream fix is planned, made, tested by their own tests and lands."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.real import sources
from tests.scenarios.real.phases import seconds
from tests.scenarios.real.projects import (
    DJANGO,
    DJANGO_LARGE,
    MARSHMALLOW,
    MARSHMALLOW_LARGE,
    SETTINGS,
    WERKZEUG,
    WERKZEUG_LARGE,
    Project,
)
from tests.scenarios.real.replay import ReplayBrain
from tests.scenarios.real.trees import tree_id
from tests.world import World, digest_in, world

pytestmark = pytest.mark.timeout(2400)

BUDGET = 0.50
_COUNTS = re.compile(r"- Tests (before|after): (\d+) passed, (\d+) failed")
_TESTED = re.compile(r"\| tested tree \| `([0-9a-f]{40})` \|")


@pytest.fixture(scope="session", autouse=True)
def prepared() -> None:
    """The releases unpacked and the tools installed, once."""
    sources.prepare()


def repository_of(project: Project, directory: Path) -> Path:
    """The release with the bug as a repository's files, with the settings file added."""
    shutil.copytree(project.before, directory)
    (directory / SETTINGS).parent.mkdir(exist_ok=True)
    (directory / SETTINGS).write_text(project.settings, "utf-8")
    return directory


def counts_in(body: str) -> dict[str, tuple[int, int]]:
    """Passed and failed tests, before and after, as the pull request's body says."""
    return {when: (int(passed), int(failed)) for when, passed, failed in _COUNTS.findall(body)}


def assert_evidence(project: Project, brain: ReplayBrain, body: str) -> None:
    """The body says what was tested; the model saw the upstream tests fail before they passed."""
    counts = counts_in(body)
    new = project.new_tests()
    assert counts["before"][0] > 0
    assert counts["after"][0] >= counts["before"][0] + len(new)
    assert counts["after"][1] == counts["before"][1]
    line = next((line for line in body.splitlines() if line.startswith("- New and passing:")), "")
    assert {name for name in new if f"{name}`" in line} == new
    for fix in project.fixes:
        told = brain.told(fix)
        runs = [text for text in told if re.match(r"exit \d+", text)]
        assert runs[0].startswith("exit 0") is not fix.fails_first
        assert runs[-1].startswith("exit 0")
        assert not [text for text in told if text.startswith("`old`")]
        if fix.mistake is not None:
            refused = [text for text in told if text.startswith("Not done yet")]
            assert len(refused) == 1
            assert fix.mistake.caught_by in refused[0]


async def drafted(here: World, issue: int, patience: float) -> dict[str, Any]:
    """The draft pull request; or at once what the product says when it stops."""

    async def probe() -> dict[str, Any] | None:
        said = await here.sticky(issue)
        assert "Stopped" not in said, f"{said}\n{here.log()}"
        return await here.draft() if "waits for a review" in said else None

    return await here.until("the draft pull request", probe, patience)


def spent(here: World) -> float:
    """What the model service billed, in dollars."""
    return float(here.model.state.bill.document()["totals"]["micro_dollars"]) / 1_000_000


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(MARSHMALLOW, id="marshmallow"),
        pytest.param(WERKZEUG, id="werkzeug"),
        pytest.param(DJANGO, id="django"),
        pytest.param(MARSHMALLOW_LARGE, id="marshmallow-large", marks=pytest.mark.real),
        pytest.param(WERKZEUG_LARGE, id="werkzeug-large", marks=pytest.mark.real),
        pytest.param(DJANGO_LARGE, id="django-large", marks=pytest.mark.real),
    ],
)
async def test_the_upstream_fix_lands_as_approved(project: Project, tmp_path: Path):
    brain = ReplayBrain(project)
    sources.offer_template(tmp_path / "data")
    base, fixed = tree_id(project.base()), tree_id(project.fixed())
    async with world(brain, tmp_path, files=repository_of(project, tmp_path / "repository")) as here:
        assert await here.rosa.tree_of(await here.rosa.head_of("main")) == base
        issue = await here.ask(project.title, project.report())
        pull = await drafted(here, issue, project.patience)
        number, body = pull["number"], pull["body"]
        approved = await here.rosa.tree_of(pull["head"]["sha"])
        assert pull["draft"] is True
        assert_evidence(project, brain, body)
        assert all(f"`allow:{flag}`" in body for flag in project.flags), "named before anybody reviews"
        assert spent(here) < BUDGET
        await here.robin.review(number)
        for flag in project.flags:
            await here.gate_says(number, f"allow:{flag}")
            await here.robin.review(number, body=f"Looked at and meant, allow:{flag}.")
        await here.pull_when(number, "ready", lambda p: not p["draft"])
        await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
        await here.pull_when(number, "merged", lambda p: p["merged"])
        await here.says(issue, "Merged")
        merged = await here.rosa.tree_of(await here.rosa.head_of("main"))
        tested = _TESTED.search(body)
        assert tested is not None
        assert merged == approved == tested[1] == fixed
        print(json.dumps({"project": project.name, "usd": spent(here), **seconds(tmp_path / "serve.log")}, indent=1))
