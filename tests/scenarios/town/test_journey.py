"""From label to merge, over HTTP, with the product in a process of its own."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.commands.trace import stages, trace
from bot.settings import Settings
from bot.workflow.outcomes import Kind
from tests.scenarios.brains import StepBrain, edit, finish
from tests.scenarios.town.town import MERGING, Town
from tests.world import World, digest_in

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_label_becomes_a_draft_that_lands_as_approved(here: World):
    issue, number = await here.drafted()
    pull = await here.rosa.pull(number)
    assert pull["draft"] is True
    assert "2 passed" in pull["body"]
    assert "3 passed" in pull["body"]
    assert f"Closes #{issue}." in pull["body"]
    assert (await here.check(pull["head"]["sha"]))["conclusion"] == "action_required"
    await here.robin.review(number)
    await here.pull_when(number, "ready", lambda p: not p["draft"])
    await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
    merged = await here.pull_when(number, "merged", lambda p: p["merged"])
    await here.says(issue, "Merged")
    tip = await here.rosa.head_of("main")
    assert await here.rosa.tree_of(tip) == await here.rosa.tree_of(merged["head"]["sha"])
    assert "triple" in await here.rosa.text_of("calc.py", "main")
    comments = [c for c in await here.rosa.comments(issue) if c["user"]["login"].endswith("[bot]")]
    assert len(comments) == 1
    await told_afterwards(here, issue, number)


async def told_afterwards(here: World, issue: int, pull: int) -> None:
    """What the operator is told of it while the product goes on working."""
    settings = Settings(home=Path(here.environment["PULLWRIGHT_HOME"]), database_url="")
    told = await trace(settings, f"{here.repository}#{pull}")
    assert told.task == (await trace(settings, f"{here.repository}#{issue}")).task
    assert told.history is not None
    assert not told.missing
    passed = {stay.stage for stay in stages(told.history, over=True)}
    assert {"queued", "preparing", "planning", "coding", "verifying", "publishing", "in_review", "landing"} <= passed
    steps = {act.name for act in told.history.acts if act.kind is Kind.MODEL}
    assert steps == {call.cost.call for call in told.calls}
    effects = [said.what for act in told.history.acts if act.kind is Kind.EFFECT for said in act.said]
    assert f"pull request #{pull}" in effects
    assert "merge" in effects
    assert [delivery.event for delivery in told.deliveries[:1]] == ["issues"]
    assert len(told.approvals) == 1
    page = (await here.client.get(f"{here.url}/metrics")).raise_for_status().text
    samples = {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(page) for s in f.samples}
    assert samples["pullwright_deliveries_total", "accepted"] > 0
    assert samples["pullwright_tasks_ended_total", "landed"] > 0
    assert samples["pullwright_queue_waiting", "work"] >= 0
    assert samples["pullwright_sandboxes_answer",] == 1


async def test_a_repository_may_merge_on_approval(town: Town):
    here = town.at(MERGING)
    _, number = await here.drafted()
    await here.robin.review(number)
    await here.pull_when(number, "merged", lambda p: p["merged"])


async def test_a_moved_base_is_tested_before_anything_lands(here: World):
    _, number = await here.drafted()
    await here.carl.push("main", "NOTES.md", "Somebody else's work.\n", "Notes")
    await here.robin.review(number)
    pull = await here.pull_when(number, "ready", lambda p: not p["draft"])
    await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
    await here.pull_when(number, "merged", lambda p: p["merged"])
    assert await here.rosa.text_of("NOTES.md", "main") == "Somebody else's work.\n"
    assert "triple" in await here.rosa.text_of("calc.py", "main")


async def test_changes_requested_become_a_further_commit(town: Town, here: World):
    fix = (
        [
            edit("calc.py", "    return 3 * a\n", "    return a + a + a\n"),
            finish("Addition instead of multiplication."),
        ],
    )
    town.brain.of[here.repository] = StepBrain(more=(fix,))
    _, number = await here.drafted()
    pull = await here.rosa.pull(number)
    first, old = digest_in(pull), pull["head"]["sha"]
    await here.robin.review(number, "REQUEST_CHANGES", body="Please use addition.")
    pull = await here.pull_when(number, "the new digest", lambda p: digest_in(p) != first)
    assert "a + a + a" in await here.rosa.text_of("calc.py", pull["head"]["ref"])
    commit = await here.rosa.here("GET", f"/git/commits/{pull['head']['sha']}")
    assert [parent["sha"] for parent in commit["parents"]] == [old]
    await here.robin.review(number)
    await here.pull_when(number, "ready", lambda p: not p["draft"])


async def test_help_and_status_answer(here: World):
    issue, _ = await here.drafted()
    await here.says(issue, "waits for a review")
    await here.rosa.comment(issue, "/agent status")
    await here.rosa.comment(issue, "/agent help")

    async def answered() -> bool | None:
        bodies = "\n".join(c["body"] for c in await here.rosa.comments(issue))
        return True if "aiting for a review" in bodies and "`/agent merge <hash>`" in bodies else None

    await here.until("both answers", answered)
