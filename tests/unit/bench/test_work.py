import pytest

from bench import work
from bench.peers import anchors, cheapest
from bot.stages.coding.tools import parse
from bot.stages.planning.validate import validate


@pytest.mark.parametrize("actions", [work.ours(), work.ours("ranges"), work.bash()])
def test_the_work_is_21_calls_one_at_a_time_and_5_together(actions: work.Actions):
    serial, batched = actions.turns(batched=False), actions.turns(batched=True)
    assert [len(turn) for turn in serial] == [1] * 21
    assert [len(turn) for turn in batched] == [3, 8, 7, 2, 1]
    assert [call for turn in batched for call in turn] == [call for turn in serial for call in turn]


def test_reading_everything_twice_is_8_calls_more():
    assert len(work.ours("twice").turns(batched=False)) == 29


def test_the_reference_task_has_25_calls_of_the_coder():
    _, steps = work.reference()
    assert sum(len(turns) for turns in steps.values()) == 25


def test_every_call_is_one_that_the_tools_take():
    _, steps = work.reference()
    for name, arguments in (call for turns in steps.values() for turn in turns for call in turn):
        assert not isinstance(parse(name, work.as_json(arguments)), str), name


def test_the_plans_hold():
    paths = frozenset({*work.PATHS, "docs/extending.rst"})
    for plan, titles in ((work.plan(), {work.TITLE}), (work.reference()[0], set(work.reference()[1]))):
        outcome = validate(work.as_json(plan), paths)
        assert {step.title for step in getattr(outcome, "steps", ())} == titles


def test_work_that_does_not_fit_the_files_is_refused():
    with pytest.raises(ValueError, match="does not hold this once"):
        work.applied(dict.fromkeys(work.PATHS, "something else"))


def test_the_cheapest_is_one_of_the_agents_the_target_names():
    assert cheapest(anchors(), "serial") == 0.1648
    assert cheapest(anchors(), "batched") == 0.1135
