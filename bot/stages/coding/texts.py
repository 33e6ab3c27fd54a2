"""What people read of this stage: how a step ended when it did not end well."""

from __future__ import annotations

from bot.domain.task import Ending, Stage
from bot.domain.verdict import Failure, FailureKind

NOTHING_CHANGED = Failure(
    FailureKind.EMPTY,
    "the step changed no file",
    "finish was called, but the files are as they were when the step began.",
    "empty:step",
)

ONE_FINISH = "finish was called twice; the first call is the one that counts."
"""For the model: every call of a turn has to be answered."""

_RETRY = "Reply `/agent retry` to try again. What is on GitHub stays."


def stuck(reason: str, failures: tuple[Failure, ...] = ()) -> Ending:
    """The step needs a person; the last failures are named."""
    named = "".join(f"\n- {failure.kind.value}: {failure.subject}" for failure in failures[:5])
    return Ending(Stage.NEEDS_HUMAN, reason + named, _RETRY)


def over_budget(reason: str) -> Ending:
    """The next call could have cost more than is left."""
    return Ending(
        Stage.OVER_BUDGET,
        f"The task could cross its budget. {reason} Nothing more was sent.",
        "What is on GitHub stays. Raise the budget or split the task, then reply `/agent retry`.",
    )


def model_unavailable(reason: str) -> Ending:
    """Key, credit or permission at the model's service."""
    return Ending(
        Stage.INFRASTRUCTURE,
        f"The model service does not accept our calls: {reason}",
        "The operator has to look at the key or the account; then reply `/agent retry`.",
    )


def not_kept(meaning: str) -> str:
    """For the model: what a command left cannot be part of a change."""
    return f"Nothing of this was kept, the files are as before it. {meaning}"
