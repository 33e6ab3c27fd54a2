import json
from typing import Any

import pytest

from bot.domain.plan import Plan
from bot.stages.planning.texts import plan_hash, render_plan
from bot.stages.planning.validate import PlanFaults, validate

EXISTING = frozenset({"a.py", "b.py"})


def step(name: str, *, files: list[tuple[str, bool]] | None = None, after: tuple[str, ...] = ()) -> dict[str, Any]:
    paths = [("a.py", False)] if files is None else files
    return {
        "id": name,
        "title": f"Step {name}",
        "goal": "Do it.",
        "files": [{"path": path, "new": new} for path, new in paths],
        "depends_on": list(after),
        "checks": ["It is done."],
    }


def answer(*steps: dict[str, Any]) -> str:
    return json.dumps({"summary": "A change.", "steps": list(steps)})


def faults(text: str) -> str:
    outcome = validate(text, EXISTING)
    assert isinstance(outcome, PlanFaults)
    return "\n".join(outcome.faults)


def plan(text: str) -> Plan:
    outcome = validate(text, EXISTING)
    assert isinstance(outcome, Plan)
    return outcome


def test_steps_come_out_in_an_order_that_keeps_their_dependencies():
    made = plan(answer(step("c", after=("a", "b")), step("b", after=("a",)), step("a")))
    assert [one.id for one in made.steps] == ["a", "b", "c"]


def test_independent_steps_keep_the_order_of_the_plan():
    assert [one.id for one in plan(answer(step("z"), step("a"))).steps] == ["z", "a"]


def test_a_circle_is_refused():
    assert "circle" in faults(answer(step("a", after=("b",)), step("b", after=("a",))))


def test_an_unknown_dependency_is_refused():
    assert "no step" in faults(answer(step("a", after=("x",))))


def test_a_file_that_does_not_exist_has_to_be_declared_new():
    assert "does not exist" in faults(answer(step("a", files=[("c.py", False)])))
    assert plan(answer(step("a", files=[("c.py", True)]))).files() == ("c.py",)


def test_a_file_that_exists_is_not_new():
    assert "exists already" in faults(answer(step("a", files=[("a.py", True)])))


def test_a_later_step_may_change_a_file_an_earlier_one_makes():
    made = plan(answer(step("a", files=[("c.py", True)]), step("b", files=[("c.py", False)], after=("a",))))
    assert len(made.steps) == 2


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", ".git/config", "a//b", "a\nb", "x/.git/hooks", ""])
def test_paths_that_leave_the_repository_are_refused(path: str):
    assert "not a path inside" in faults(answer(step("a", files=[(path, True)])))


@pytest.mark.parametrize("text", ["", "null", "[]", '{"summary": "x"}', '{"summary":"x","steps":[{}]}', "{{"])
def test_an_answer_without_the_form_is_refused(text: str):
    assert "form" in faults(text)


def test_no_steps_and_too_many_steps_are_refused():
    assert "no steps" in faults(answer())
    assert "at most" in faults(answer(*(step(f"s{number}") for number in range(20))))


def test_two_steps_of_one_id_are_refused():
    assert "twice" in faults(answer(step("a"), step("a")))


def test_a_plan_reads_as_a_numbered_list():
    text = render_plan(plan(answer(step("a"), step("b", files=[("n.py", True)], after=("a",)))))
    assert "1. **Step a**\n   `a.py`" in text
    assert "2. **Step b** (after 1)\n   `n.py` (new)" in text


def test_the_plan_hash_covers_every_word():
    base = plan(answer(step("a")))
    other = plan(answer({**step("a"), "goal": "Do it!"}))
    assert plan_hash(base) == plan_hash(plan(answer(step("a"))))
    assert plan_hash(base) != plan_hash(other)
