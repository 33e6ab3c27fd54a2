"""`kill -9` of the serving process, and a restart: the task goes on, nothing is done twice."""

from pathlib import Path

from bot.demo import script
from bot.demo.brain import DemoBrain
from tests.births import by_command, forked
from tests.scenarios.brains import FILES, StepBrain
from tests.world import World, digest_in, world


async def comments_by_bot(here: World, number: int) -> int:
    return sum(c["user"]["login"].endswith("[bot]") for c in await here.rosa.comments(number))


async def test_a_kill_in_the_middle_of_coding_loses_nothing_and_repeats_nothing(tmp_path: Path):
    async with world(DemoBrain(), tmp_path, birth=by_command) as here:
        issue = await here.ask(script.ISSUE_TITLE, script.ISSUE_BODY)
        await here.says(issue, "Make the limit a setting ← now")
        await here.kill()
        here.birth = forked
        before = here.model.state.bill.document()["totals"]["requests"]
        await here.start()
        pull = await here.draft(patience=240)
        await here.quiet()
        assert len(await here.rosa.pulls()) == 1
        assert await comments_by_bot(here, issue) == 1
        answered = [c for c in here.model.state.bill.charges if c.status == 200]
        assert before < len(answered) <= 14 + 1
        await here.robin.review(pull["number"])
        await here.pull_when(pull["number"], "ready", lambda p: not p["draft"])


async def test_what_people_say_while_nobody_serves_is_heard_after_the_next_start(tmp_path: Path):
    async with world(StepBrain(), tmp_path, contents=FILES) as here:
        issue = await here.ask("Add triple")
        pull = await here.draft()
        number = pull["number"]
        await here.kill()
        await here.robin.review(number)
        await here.hub.settle()
        assert any(d.event == "pull_request_review" and d.status != "OK" for d in here.hub.world.courier.log)
        await here.start()
        await here.pull_when(number, "ready", lambda p: not p["draft"])
        await here.kill()
        await here.start()
        await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
        await here.pull_when(number, "merged", lambda p: p["merged"])
        await here.says(issue, "Merged")
        assert await comments_by_bot(here, issue) == 1
