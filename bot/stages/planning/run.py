"""Asks the planner for a plan, checks it, and asks once more with the faults when it does not hold."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.domain.plan import Plan
from bot.domain.task import Ending
from bot.prompting import render
from bot.providers.journal.port import Journal
from bot.providers.llm.port import (
    Conversation,
    LanguageModel,
    Message,
    ModelRequest,
    ModelTurn,
    ModelUnavailable,
    OverBudget,
    StopReason,
)
from bot.stages.planning import texts
from bot.stages.planning.validate import validate

ANSWERS = 2


@dataclass(frozen=True, slots=True)
class PlanningWork:
    """What to plan: `brief` is the rendered first message, `existing` the base tree's paths."""

    key: str
    conversation: Conversation
    brief: str
    existing: frozenset[str]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, or why there is none."""

    plan: Plan | None
    ending: Ending | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    turn: ModelTurn | None
    ending: Ending | None = None


async def run(work: PlanningWork, *, journal: Journal, model: LanguageModel) -> Planned:
    """At most two answers; each model call is one checkpoint."""
    log: list[Message] = [_user(work.brief)]
    previous: str | None = None
    faults: tuple[str, ...] = ()
    for number in range(1, ANSWERS + 1):
        request = ModelRequest(f"{work.key}:call:{number}", work.conversation, tuple(log), previous)
        asked = await journal.step(request.key, lambda request=request: _ask(model, request), _Asked)  # type: ignore[misc]
        if asked.turn is None:
            return Planned(None, asked.ending)
        ending = _stopped(asked.turn)
        if ending is not None:
            return Planned(None, ending)
        outcome = validate(asked.turn.text, work.existing)
        if isinstance(outcome, Plan):
            return Planned(outcome)
        faults = outcome.faults
        previous = asked.turn.message_id
        log += [*asked.turn.said, _user(render("bot.stages.planning", "faults.md.j2", faults=faults))]
    return Planned(None, texts.unusable(faults))


async def _ask(model: LanguageModel, request: ModelRequest) -> _Asked:
    try:
        return _Asked(await model.send(request))
    except OverBudget as stop:
        return _Asked(None, texts.over_budget(str(stop)))
    except ModelUnavailable as stop:
        return _Asked(None, texts.model_unavailable(str(stop)))


def _stopped(turn: ModelTurn) -> Ending | None:
    match turn.stop:
        case StopReason.REFUSAL:
            return texts.refused(turn.refusal)
        case StopReason.MAX_TOKENS | StopReason.CONTEXT_EXCEEDED:
            return texts.cut_off()
        case _:
            return None


def _user(text: str) -> Message:
    content = [{"type": "text", "text": text}]
    return Message(json.dumps({"role": "user", "content": content}, separators=(",", ":"), ensure_ascii=False))
