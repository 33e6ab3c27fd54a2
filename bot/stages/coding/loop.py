"""Decides the next move of a step from what has happened. No I/O: the same transcript gives the same move on replay."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.verdict import Failure
from bot.providers.llm.port import ModelTurn, StopReason, ToolCall


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one step may go on. Counts, not time: money has its own limit."""

    calls: int = 40
    attempts: int = 3
    capped_answers: int = 1
    silent_turns: int = 2


@dataclass(frozen=True, slots=True)
class Progress:
    """What the loop remembers of a step beyond the log itself."""

    calls: int = 0
    attempts: int = 0
    capped: int = 0
    silent: int = 0
    signatures: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class UseTools:
    """Execute these calls, in order."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Nudge:
    """Append this as a user message and ask again."""

    text: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Send the log again as it is (the service paused the turn)."""


@dataclass(frozen=True, slots=True)
class Widen:
    """The answer was cut by the output cap: drop it and make the same call once more with a higher cap."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the step; `reason` is for people."""

    reason: str


Move = UseTools | Nudge | Resume | Widen | GiveUp

_UNFINISHED = "You have not called a tool. If the step is done, call finish; otherwise go on with it."


def next_move(turn: ModelTurn, progress: Progress, limits: Limits) -> Move:
    """What to do about the newest assistant turn (specs/anthropic.md §3)."""
    match turn.stop:
        case StopReason.REFUSAL:
            return GiveUp(f"The model declined this step ({turn.refusal or 'no category given'}).")
        case StopReason.CONTEXT_EXCEEDED:
            return GiveUp("The step grew beyond what the model can read at once. Smaller steps would help.")
        case StopReason.UNKNOWN:
            return GiveUp("The model stopped for a reason this version does not know.")
        case StopReason.MAX_TOKENS:
            if progress.capped >= limits.capped_answers:
                return GiveUp("The model's answer was cut off twice at its length limit.")
            return Widen()
        case _:
            pass
    if progress.calls >= limits.calls:
        return GiveUp(f"The step was not finished after {limits.calls} model calls.")
    if turn.tool_calls:
        return UseTools(turn.tool_calls)
    if turn.stop is StopReason.PAUSE_TURN:
        return Resume()
    if progress.silent >= limits.silent_turns:
        return GiveUp("The model stopped working without finishing the step.")
    return Nudge(_UNFINISHED)


def after_check(failures: tuple[Failure, ...], progress: Progress, limits: Limits) -> GiveUp | None:
    """What a failed check means: None to try again, GiveUp when attempts are used up or the same thing failed before."""
    now = frozenset(failure.signature for failure in failures)
    if now and now in progress.signatures:
        names = ", ".join(sorted({failure.subject for failure in failures})[:3])
        return GiveUp(f"The same check failed twice in the same way: {names}.")
    if progress.attempts + 1 >= limits.attempts:
        return GiveUp(f"The checks still fail after {limits.attempts} attempts.")
    return None


def grouped(calls: tuple[ToolCall, ...], families: tuple[frozenset[str], ...]) -> tuple[tuple[ToolCall, ...], ...]:
    """Calls in runs that go together: neighbours of one family form one group, every other call stands alone."""
    groups: list[list[ToolCall]] = []
    for call in calls:
        family = next((names for names in families if call.name in names), frozenset[str]())
        if groups and groups[-1][0].name in family:
            groups[-1].append(call)
        else:
            groups.append([call])
    return tuple(tuple(group) for group in groups)
