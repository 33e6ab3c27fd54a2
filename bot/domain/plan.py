"""A plan is a DAG of steps. It is data the model proposed and `stages/planning` validated."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.ids import StepId


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file a step means to touch; `new` when it does not exist at the base."""

    path: str
    new: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it achieves, where, after which others, and how one sees that it is done."""

    id: StepId
    title: str
    goal: str
    files: tuple[PlannedFile, ...]
    depends_on: tuple[StepId, ...]
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A validated plan: `steps` is in an order in which each step follows all it depends on."""

    summary: str
    steps: tuple[Step, ...]

    def files(self) -> tuple[str, ...]:
        """Every path the plan names, once each, sorted."""
        return tuple(sorted({file.path for step in self.steps for file in step.files}))
