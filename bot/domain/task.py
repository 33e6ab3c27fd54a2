"""A task: its identity, its life, and how it may end (design §6)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.event import Actor, Subject
from bot.domain.ids import TaskId
from bot.domain.money import MicroUsd


class Stage(StrEnum):
    """Where a task is. The order of the names is the order of its life."""

    QUEUED = "queued"
    PREPARING = "preparing"
    PLANNING = "planning"
    AWAITING_PLAN_APPROVAL = "awaiting_plan_approval"
    CODING = "coding"
    VERIFYING = "verifying"
    PUBLISHING = "publishing"
    IN_REVIEW = "in_review"
    REVISING = "revising"
    LANDING = "landing"
    LANDED = "landed"
    READY = "ready"
    NEEDS_HUMAN = "needs_human"
    OVER_BUDGET = "over_budget"
    POLICY_DENIED = "policy_denied"
    CANCELLED = "cancelled"
    INFRASTRUCTURE = "infrastructure"

    @property
    def ended(self) -> bool:
        return self in ENDINGS


# `ready` is no ending: a later push voids the approval, and a merge is still to be checked.
ENDINGS = frozenset(
    {
        Stage.LANDED,
        Stage.NEEDS_HUMAN,
        Stage.OVER_BUDGET,
        Stage.POLICY_DENIED,
        Stage.CANCELLED,
        Stage.INFRASTRUCTURE,
    }
)


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What a task is asked to do, fixed at its start: text as it was at the trigger, budget, who asked."""

    id: TaskId
    subject: Subject
    requester: Actor
    title: str
    request: str
    budget: MicroUsd


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task ended: the stage it ended in, one sentence why, and what the person can do next."""

    stage: Stage
    reason: str
    next_step: str = ""
