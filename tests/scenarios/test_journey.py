"""From label to merge, over HTTP, with the product in a process of its own."""

from pathlib import Path

import pytest

from tests.scenarios.brains import FILES, GOOD, LAST_TEST, StepBrain, append, edit, finish
from tests.scenarios.town import MERGING, UNTESTED, Town
from tests.world import World, digest_in, world

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def drafted(here: World, title: str = "Add triple") -> tuple[int, int]:
    """An issue worked to its draft pull request; both numbers."""
    issue = await here.ask(title, "Please add calc.triple with a test.")
    pull = await here.draft()
    return issue, pull["number"]


async def test_a_label_becomes_a_draft_that_lands_as_approved(here: World):
    issue, number = await drafted(here)
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


async def test_a_repository_may_merge_on_approval(town: Town):
    here = town.at(MERGING)
    _, number = await drafted(here)
    await here.robin.review(number)
    await here.pull_when(number, "merged", lambda p: p["merged"])


async def test_the_requester_may_approve_but_nobody_without_write_access(here: World):
    _, number = await drafted(here)
    await here.rudi.review(number)
    reason = await here.gate_says(number, "rudi")
    assert "write" in reason
    assert (await here.rosa.pull(number))["draft"] is True
    await here.rosa.review(number)
    await here.pull_when(number, "ready", lambda p: not p["draft"])


async def test_an_approval_of_an_older_head_does_not_count(here: World):
    _, number = await drafted(here)
    pull = await here.rosa.pull(number)
    first, head = digest_in(pull), pull["head"]["sha"]
    text = await here.carl.text_of("calc.py", pull["head"]["ref"])
    await here.carl.push(pull["head"]["ref"], "calc.py", text + "\n\nZERO = 0\n", "One more constant")
    await here.pull_when(number, "the new digest", lambda p: digest_in(p) != first)
    await here.robin.review(number, commit=head)
    await here.gate_says(number, "approve again")
    assert (await here.rosa.pull(number))["draft"] is True
    assert (await here.check((await here.rosa.pull(number))["head"]["sha"]))["conclusion"] == "failure"


async def test_a_push_after_the_approval_takes_it_back(here: World):
    _, number = await drafted(here)
    await here.robin.review(number)
    pull = await here.pull_when(number, "ready", lambda p: not p["draft"])
    first = digest_in(pull)
    text = await here.carl.text_of("calc.py", pull["head"]["ref"])
    head = await here.carl.push(pull["head"]["ref"], "calc.py", text + "\n\nZERO = 0\n", "One more constant")
    await here.pull_when(number, "a draft again", lambda p: p["draft"])
    await here.robin.comment(number, f"/agent merge {first[:12]}")
    await here.gate_says(number, "nothing to merge")
    assert not (await here.rosa.pull(number))["merged"]
    pull = await here.pull_when(number, "the new digest", lambda p: digest_in(p) != first)
    await here.robin.review(number, commit=head)
    await here.pull_when(number, "ready", lambda p: not p["draft"])
    await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
    merged = await here.pull_when(number, "merged", lambda p: p["merged"])
    assert "ZERO" in await here.rosa.text_of("calc.py", "main")
    assert merged["head"]["sha"] == head


async def test_a_push_that_breaks_a_test_cannot_be_approved(here: World):
    issue, number = await drafted(here)
    pull = await here.rosa.pull(number)
    broken = (
        "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a + a\n\n\ndef triple(a):\n    return 3 * a\n"
    )
    head = await here.carl.push(pull["head"]["ref"], "calc.py", broken, "Break it")
    await here.says(issue, "does not pass the checks")
    await here.robin.review(number, commit=head)
    await here.gate_says(number, "did not pass the checks")
    assert (await here.rosa.pull(number))["draft"] is True


async def test_a_moved_base_is_tested_before_anything_lands(here: World):
    _, number = await drafted(here)
    await here.carl.push("main", "NOTES.md", "Somebody else's work.\n", "Notes")
    await here.robin.review(number)
    pull = await here.pull_when(number, "ready", lambda p: not p["draft"])
    await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
    await here.pull_when(number, "merged", lambda p: p["merged"])
    assert await here.rosa.text_of("NOTES.md", "main") == "Somebody else's work.\n"
    assert "triple" in await here.rosa.text_of("calc.py", "main")


async def test_a_moved_base_that_breaks_the_merge_result_keeps_the_gate_closed(here: World):
    _, number = await drafted(here)
    extra = "import unittest, calc\n\n\nclass Limit(unittest.TestCase):\n    def test_only_two(self):\n        assert not hasattr(calc, 'triple')\n"
    await here.carl.push("main", "test_limit.py", extra, "Nobody may add triple")
    await here.robin.review(number)
    await here.gate_says(number, "moved on")
    await here.quiet()
    assert (await here.rosa.pull(number))["draft"] is True


async def test_changes_requested_become_a_further_commit(town: Town, here: World):
    fix = (
        [
            edit("calc.py", "    return 3 * a\n", "    return a + a + a\n"),
            finish("Addition instead of multiplication."),
        ],
    )
    town.brain.of[here.repository] = StepBrain(more=(fix,))
    _, number = await drafted(here)
    pull = await here.rosa.pull(number)
    first, old = digest_in(pull), pull["head"]["sha"]
    await here.robin.review(number, "REQUEST_CHANGES", body="Please use addition.")
    pull = await here.pull_when(number, "the new digest", lambda p: digest_in(p) != first)
    assert "a + a + a" in await here.rosa.text_of("calc.py", pull["head"]["ref"])
    commit = await here.rosa.here("GET", f"/git/commits/{pull['head']['sha']}")
    assert [parent["sha"] for parent in commit["parents"]] == [old]
    await here.robin.review(number)
    await here.pull_when(number, "ready", lambda p: not p["draft"])


async def test_stop_ends_a_task_and_retry_starts_it_again(here: World):
    issue, number = await drafted(here)
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
    await drafted(here)
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


async def test_help_and_status_answer(here: World):
    issue, _ = await drafted(here)
    await here.rosa.comment(issue, "/agent status")
    await here.rosa.comment(issue, "/agent help")

    async def answered() -> bool | None:
        bodies = "\n".join(c["body"] for c in await here.rosa.comments(issue))
        return True if "aiting for a review" in bodies and "`/agent merge <hash>`" in bodies else None

    await here.until("both answers", answered)
