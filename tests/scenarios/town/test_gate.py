"""What does not count as an approval, and what takes one back: the draft stays a draft and the gate says why."""

import pytest

from tests.world import World, digest_in

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_requester_may_approve_but_nobody_without_write_access(here: World):
    _, number = await here.drafted()
    await here.rudi.review(number)
    reason = await here.gate_says(number, "rudi")
    assert "write" in reason
    assert (await here.rosa.pull(number))["draft"] is True
    await here.rosa.review(number)
    await here.pull_when(number, "ready", lambda p: not p["draft"])


async def test_a_pull_request_that_was_closed_does_not_come_back_approved(here: World):
    issue, number = await here.drafted()
    await here.robin.review(number)
    pull = await here.pull_when(number, "ready", lambda p: not p["draft"])
    assert (await here.check(pull["head"]["sha"]))["conclusion"] == "success"
    await here.rosa.here("PATCH", f"/pulls/{number}", {"state": "closed"})
    await here.says(issue, "closed without merging")

    async def closed() -> bool | None:
        return True if (await here.check(pull["head"]["sha"]))["conclusion"] == "failure" else None

    await here.until("the check fails", closed)
    await here.gate_says(number, "The task ended.")


async def test_an_approval_of_an_older_head_does_not_count(here: World):
    _, number = await here.drafted()
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
    _, number = await here.drafted()
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
    issue, number = await here.drafted()
    pull = await here.rosa.pull(number)
    broken = (
        "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a + a\n\n\ndef triple(a):\n    return 3 * a\n"
    )
    head = await here.carl.push(pull["head"]["ref"], "calc.py", broken, "Break it")
    await here.says(issue, "does not pass the checks")
    await here.robin.review(number, commit=head)
    await here.gate_says(number, "does not pass the checks")
    assert (await here.rosa.pull(number))["draft"] is True


async def test_a_moved_base_that_breaks_the_merge_result_keeps_the_gate_closed(here: World):
    _, number = await here.drafted()
    extra = "import unittest, calc\n\n\nclass Limit(unittest.TestCase):\n    def test_only_two(self):\n        assert not hasattr(calc, 'triple')\n"
    await here.carl.push("main", "test_limit.py", extra, "Nobody may add triple")
    await here.robin.review(number)
    await here.gate_says(number, "moved on")
    await here.quiet()
    assert (await here.rosa.pull(number))["draft"] is True
