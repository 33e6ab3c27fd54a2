"""What people read of this stage."""

from __future__ import annotations

import hashlib
import json

from bot.domain.plan import Plan
from bot.domain.task import Ending, Stage


def render_plan(plan: Plan) -> str:
    """The plan as Markdown: summary and numbered steps with their files. Text is the model's; sanitise before posting."""
    lines = [plan.summary, ""]
    number = {step.id: index for index, step in enumerate(plan.steps, 1)}
    for step in plan.steps:
        after = ", ".join(str(number[other]) for other in step.depends_on)
        lines.append(f"{number[step.id]}. **{step.title}**" + (f" (after {after})" if after else ""))
        files = ", ".join(f"`{file.path}`" + (" (new)" if file.new else "") for file in step.files)
        if files:
            lines.append(f"   {files}")
    return "\n".join(lines)


def plan_hash(plan: Plan) -> str:
    """sha256 over the plan's content in canonical form; people approve its first 12 characters."""
    steps = [
        [
            step.id,
            step.title,
            step.goal,
            [[f.path, f.new] for f in step.files],
            list(step.depends_on),
            list(step.checks),
        ]
        for step in plan.steps
    ]
    return hashlib.sha256(json.dumps([plan.summary, steps], separators=(",", ":"), sort_keys=True).encode()).hexdigest()


_RETRY = "Make the request more concrete and reply `/agent retry`."


def unusable(faults: tuple[str, ...]) -> Ending:
    """Two answers, neither a plan."""
    named = "".join(f"\n- {fault}" for fault in faults[:5])
    return Ending(Stage.NEEDS_HUMAN, f"The planner found no workable plan:{named}", _RETRY)


def refused(category: str) -> Ending:
    """The model declined."""
    return Ending(
        Stage.NEEDS_HUMAN, f"The model declined to plan this task ({category or 'no category given'}).", _RETRY
    )


def cut_off() -> Ending:
    """The answer did not fit."""
    return Ending(
        Stage.NEEDS_HUMAN,
        "The plan did not fit into the answer's length limit.",
        "Split the task, then reply `/agent retry`.",
    )


def over_budget(reason: str) -> Ending:
    """No money for a plan."""
    return Ending(
        Stage.OVER_BUDGET,
        f"Planning could cross the budget. {reason} Nothing more was sent.",
        "Raise the budget, then reply `/agent retry`.",
    )


def model_unavailable(reason: str) -> Ending:
    """Key, credit or permission at the model's service."""
    return Ending(
        Stage.INFRASTRUCTURE,
        f"The model service does not accept our calls: {reason}",
        "The operator has to look at the key or the account; then reply `/agent retry`.",
    )
