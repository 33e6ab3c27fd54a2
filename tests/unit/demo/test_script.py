"""The demo's script holds together: its edits apply to the demo's repository, one after the other."""

import json
from pathlib import Path

from bot.demo import script
from bot.demo.brain import DemoBrain
from bot.domain.plan import Plan
from bot.emulators.anthropic.brain import BrainRequest, HeardMessage, Text, ToolUse
from bot.stages.coding import edits
from bot.stages.coding.tools import parse
from bot.stages.planning.validate import validate

REPOSITORY = Path(script.__file__).parent / "repository"


def files() -> dict[str, str]:
    return {
        str(path.relative_to(REPOSITORY)): path.read_text("utf-8") for path in REPOSITORY.rglob("*") if path.is_file()
    }


def test_the_plan_is_one_the_product_accepts():
    made = validate(json.dumps(script.PLAN), frozenset(files()))
    assert isinstance(made, Plan)
    assert len(made.steps) >= 4
    assert len(made.files()) >= 6


def test_every_call_is_well_formed_and_every_edit_applies_in_its_turn():
    now = files()
    for step in script.PLAN["steps"]:
        for turn in script.TURNS[step["title"]]:
            for name, given in turn:
                assert not isinstance(parse(name, json.dumps(given)), str)
                if name == "edit":
                    outcome = edits.apply(given["path"], now.get(given["path"]), given["old"], given["new"])
                    assert isinstance(outcome, edits.Edited), outcome
                    now[given["path"]] = outcome.text


def test_the_model_answers_by_what_it_is_asked_and_how_far_it_is():
    brain = DemoBrain()
    title = script.PLAN["steps"][0]["title"]
    brief = HeardMessage("user", (Text(f"The task\nYour step now: {title}\n"),))
    first = brain.answer(BrainRequest(0, "m", "", (), (brief,)))
    again = brain.answer(BrainRequest(1, "m", "", (), (brief,)))
    assert first == again
    assert any(isinstance(block, ToolUse) for block in first.blocks)
