"""Builders for the Messages API contract: requests as plain JSON, a brain that says what a test queued."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anthropic
from anthropic.types import Message, MessageTokensCount

from bot.emulators.anthropic import BrainAnswer, BrainRequest, Endpoint, Text, Thinking, ToolUse

Json = dict[str, Any]

OPUS, SONNET, HAIKU = "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"
MARK: Json = {"type": "ephemeral"}
HOUR: Json = {"type": "ephemeral", "ttl": "1h"}
LOOK: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
FETCH: Json = {"name": "fetch", "description": "Fetches.", "input_schema": {"type": "object", "properties": {}}}


def words(tokens: int, letter: str = "a") -> str:
    """Text of exactly this many tokens at three bytes each."""
    return letter * (3 * tokens)


def text(value: str, **more: Any) -> Json:
    return {"type": "text", "text": value, **more}


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: Json | str) -> Json:
    return {"role": "assistant", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def call(call_id: str, name: str = "look", **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Any = "seen", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def body(*messages: Json, **more: Any) -> Json:
    """A valid request unless told otherwise; a parameter given as None is left out."""
    made = {"model": SONNET, "max_tokens": 100, "messages": list(messages) or [user("hello")], **more}
    return {k: v for k, v in made.items() if v is not None}


def sdk(endpoint: Endpoint, **more: Any) -> anthropic.AsyncAnthropic:
    """The unmodified client, pointed at the stand-in; it retries only where a test says so."""
    settings = {"api_key": endpoint.api_key, "base_url": endpoint.url, "max_retries": 0, **more}
    return anthropic.AsyncAnthropic(**settings)


async def send(client: anthropic.AsyncAnthropic, request: Json, headers: Mapping[str, str] | None = None) -> Message:
    """Through the SDK's own request path, without its argument checks."""
    return await client.post("/v1/messages", cast_to=Message, body=request, options={"headers": dict(headers or {})})


async def count(client: anthropic.AsyncAnthropic, request: Json) -> int:
    counted = await client.post("/v1/messages/count_tokens", cast_to=MessageTokensCount, body=request)
    return counted.input_tokens


def back(message: Message) -> Json:
    """The assistant turn as it must be sent back."""
    return {"role": "assistant", "content": [b.to_dict(mode="json") for b in message.content]}


def answers(message: Message, content: Any = "seen") -> Json:
    """A user turn that answers every call of the message."""
    return {"role": "user", "content": [result(b.id, content) for b in message.content if b.type == "tool_use"]}


@dataclass(slots=True)
class Queued:
    """Says what is queued, then "ok"; remembers what it heard."""

    waiting: list[BrainAnswer] = field(default_factory=list)
    heard: list[BrainRequest] = field(default_factory=list)

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.heard.append(request)
        return self.waiting.pop(0) if self.waiting else BrainAnswer((Text("ok"),))

    def says(self, *blocks: Text | Thinking | ToolUse, **more: Any) -> None:
        self.waiting.append(BrainAnswer(blocks, **more))


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
