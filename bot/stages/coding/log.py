"""The append-only message log: each function gives the JSON text of one message, which is never touched again (D7)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.prompting import encodable
from bot.providers.llm.port import Message


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of one call as the model will see it."""

    call_id: str
    text: str
    is_error: bool = False


def _message(role: str, content: list[dict[str, object]]) -> Message:
    text = json.dumps({"role": role, "content": content}, separators=(",", ":"), ensure_ascii=False)
    return Message(encodable(text))


def user_text(text: str) -> Message:
    """A user message of one text block."""
    return _message("user", [{"type": "text", "text": text}])


def tool_answers(answers: tuple[ToolAnswer, ...]) -> Message:
    """All results of a turn in one user message, in the order of the calls."""
    return _message("user", [_result(answer) for answer in answers])


def _result(answer: ToolAnswer) -> dict[str, object]:
    block: dict[str, object] = {
        "type": "tool_result",
        "tool_use_id": answer.call_id,
        "content": [{"type": "text", "text": answer.text or "(no output)"}],
    }
    if answer.is_error:
        block["is_error"] = True
    return block
