"""The planner's answer is outside text: checked in full before anything rests on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.ids import StepId
from bot.domain.plan import Plan, PlannedFile, Step
from bot.prompting import whole_json

MOST_STEPS = 12
MOST_FILES = 60
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_PATH = re.compile(r"(?!/)(?!.*(?:^|/)\.{1,2}(?:/|$))(?!.*//)(?!.*(?:^|/)\.git(?:/|$))[^\x00-\x1f\x7f\\]{1,400}")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    new: bool


class _Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    title: str = Field(min_length=1, max_length=200)
    goal: str = Field(min_length=1, max_length=4000)
    files: list[_File]
    depends_on: list[str]
    checks: list[str]


class _Plan(BaseModel):
    model_config = ConfigDict(extra="forbid")
    summary: str = Field(min_length=1, max_length=4000)
    steps: list[_Step]


@dataclass(frozen=True, slots=True)
class PlanFaults:
    """Why the answer is not a plan; each line is fed back to the planner."""

    faults: tuple[str, ...]


def validate(answer: str, existing: frozenset[str]) -> Plan | PlanFaults:
    """A plan whose steps are in an order that keeps their dependencies, or all faults found.

    `existing` are the paths of the base tree: a named file must be one of them, or be declared new and not be one.
    """
    try:
        given = _Plan.model_validate(whole_json(answer))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:5]
        told = "; ".join(f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in found)
        return PlanFaults((f"The answer does not have the required form: {told[:400]}.",))
    except ValueError as error:
        return PlanFaults((f"The answer does not have the required form: {str(error)[:400]}",))
    faults = (*_counts(given), *_ids(given), *_files(given, existing))
    if faults:
        return PlanFaults(faults)
    steps = tuple(_step(step) for step in given.steps)
    ordered = in_order(steps)
    if ordered is None:
        return PlanFaults(("The steps depend on each other in a circle.",))
    return Plan(given.summary.strip(), ordered)


def _step(step: _Step) -> Step:
    return Step(
        id=StepId(step.id),
        title=step.title.strip(),
        goal=step.goal.strip(),
        files=tuple(PlannedFile(file.path, file.new) for file in step.files),
        depends_on=tuple(StepId(other) for other in step.depends_on),
        checks=tuple(check.strip() for check in step.checks if check.strip()),
    )


def _counts(plan: _Plan) -> tuple[str, ...]:
    if not plan.steps:
        return ("The plan has no steps.",)
    faults = []
    if len(plan.steps) > MOST_STEPS:
        faults.append(f"The plan has {len(plan.steps)} steps; at most {MOST_STEPS} are possible. Join some.")
    named = {file.path for step in plan.steps for file in step.files}
    if len(named) > MOST_FILES:
        faults.append(f"The plan names {len(named)} files; at most {MOST_FILES} are possible.")
    return tuple(faults)


def _ids(plan: _Plan) -> tuple[str, ...]:
    ids = [step.id for step in plan.steps]
    faults = [
        f"The step id {name!r} is not of the form A-Z, a-z, 0-9, -, _." for name in ids if not _ID.fullmatch(name)
    ]
    faults += [f"The step id {name!r} is used twice." for name in sorted({name for name in ids if ids.count(name) > 1})]
    for step in plan.steps:
        faults += [
            f"Step {step.id} depends on {other!r}, which is no step." for other in step.depends_on if other not in ids
        ]
    return tuple(faults)


def _files(plan: _Plan, existing: frozenset[str]) -> tuple[str, ...]:
    faults, made = [], set[str]()
    for step in plan.steps:
        for file in step.files:
            if not _PATH.fullmatch(file.path):
                faults.append(f"Step {step.id}: {file.path!r} is not a path inside the repository.")
            elif file.new and file.path in existing:
                faults.append(f"Step {step.id}: {file.path} exists already; it is not new.")
            elif not file.new and file.path not in existing and file.path not in made:
                faults.append(f"Step {step.id}: {file.path} does not exist; declare it as new or correct the path.")
            if file.new:
                made.add(file.path)
    return tuple(faults)


def in_order(steps: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """The steps so that each follows all it depends on, otherwise in the given order; None when they form a circle."""
    left, done, ordered = list(steps), set[StepId](), []
    while left:
        ready = next((step for step in left if all(other in done for other in step.depends_on)), None)
        if ready is None:
            return None
        left.remove(ready)
        done.add(ready.id)
        ordered.append(ready)
    return tuple(ordered)
