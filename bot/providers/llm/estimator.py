"""How many tokens a request will have, before it is sent. Used for reservations, never for billing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from bot.providers.llm.port import ModelRequest, ModelTurn

_BYTES_PER_TOKEN = 3
_START = 1.25
_WEIGHT = 0.2
_MARGIN = 1.1
_FRAMING = 64
_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class Known:
    """What an answered request tells about the next one of its conversation."""

    tokens: int
    messages: int


@dataclass(slots=True)
class Estimator:
    """Bytes over three, corrected per model by what answers showed; exact for the part already answered.

    Thinking that is not shown costs input when it is sent back and has no bytes to count, hence the memory of answers.
    """

    corrections: dict[str, float] = field(default_factory=dict)
    answered: dict[str, Known] = field(default_factory=dict)

    def prompt_tokens(self, request: ModelRequest) -> int:
        """An estimate that errs high: the correction and a margin apply to everything not yet measured."""
        factor = self.corrections.get(request.conversation.model, _START) * _MARGIN
        known = self.answered.get(request.previous_message_id or "")
        if known is None or known.messages > len(request.messages):
            return math.ceil(_raw(request, 0) * factor) + _FRAMING
        new = request.messages[known.messages :]
        return known.tokens + math.ceil(sum(_tokens(m.json) for m in new) * factor) + _FRAMING

    def learn(self, request: ModelRequest, turn: ModelTurn) -> None:
        """Fold one answer in."""
        while len(self.answered) >= _REMEMBERED:
            del self.answered[next(iter(self.answered))]
        tokens = turn.usage.prompt + turn.usage.output
        self.answered[turn.message_id] = Known(tokens, len(request.messages) + 1)
        if request.previous_message_id is None:
            model = request.conversation.model
            seen = turn.usage.prompt / max(1.0, _raw(request, 0))
            before = self.corrections.get(model, _START)
            self.corrections[model] = before + _WEIGHT * (seen - before)


def _tokens(text: str) -> float:
    return len(text.encode()) / _BYTES_PER_TOKEN


def _raw(request: ModelRequest, since: int) -> float:
    conversation = request.conversation
    fixed = [*conversation.system, conversation.tools or "", conversation.schema or ""]
    return sum(_tokens(t) for t in fixed) + sum(_tokens(m.json) for m in request.messages[since:])
