"""The scripted model of the demo: a planner and a coder who make two honest mistakes and correct them.

It answers by what it is asked (a plan, or the step named in the brief) and by how far the conversation is; it never sees the product.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.demo import script
from bot.emulators.anthropic.brain import BrainAnswer, BrainError, BrainRequest, Text, Thinking, ToolUse

_STEP = re.compile(r"^Your step now: (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DemoBrain:
    """Answers for "Add rate limiting to all API endpoints" in the demo's repository."""

    thinking_tokens: int = 120

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The plan, or the next turn of the step the brief names."""
        if request.output_config.get("format"):
            return BrainAnswer((Thinking(tokens=4 * self.thinking_tokens), Text(json.dumps(script.PLAN))))
        found = _STEP.search(request.first)
        turns = script.TURNS.get(found["title"].strip()) if found else None
        if turns is None:
            raise BrainError("the demo's model knows only the demo's steps")
        if request.turn >= len(turns):
            return BrainAnswer((Text("I have nothing further to do in this step."),))
        return self._say(turns[request.turn])

    def _say(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> BrainAnswer:
        return BrainAnswer((Thinking(tokens=self.thinking_tokens), *(ToolUse(name, given) for name, given in calls)))
