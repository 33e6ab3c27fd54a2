"""From a frozen conversation to the parameters of one call: markers are added on the way out and are part of nothing.

Layout (design D7): tools, system with the shared breakpoint (BP1), the brief with BP2, appended turns, and the service's
automatic breakpoint on the newest block (BP3). A conversation that is not likely to go on has BP1 alone.
"""

from __future__ import annotations

import json
from typing import Any

from bot.providers.llm.port import Conversation, Message, ModelRequest

Params = dict[str, Any]

_MARK = {"type": "ephemeral"}
_PLACEHOLDER = Message('{"role":"user","content":[{"type":"text","text":"."}]}')


def parameters(request: ModelRequest, *, shared_ttl: str = "5m") -> Params:
    """Equal requests give equal bytes: nothing here depends on time, order of insertion, or environment."""
    talk = request.conversation
    params: Params = {
        "model": talk.model,
        "max_tokens": cap(request),
        "thinking": {"type": talk.thinking},
        "output_config": _output_config(talk),
        "messages": _messages(request),
        "diagnostics": {"previous_message_id": request.previous_message_id},
    }
    if talk.tools is not None:
        params["tools"] = json.loads(talk.tools)
    if talk.system:
        params["system"] = _system(talk.system, shared_ttl)
    if request.messages and talk.continued:
        params["cache_control"] = _MARK
    return params


def cap(request: ModelRequest) -> int:
    """The output cap of this call. A schema cannot be warmed: the service refuses it, and another key would be warmed."""
    value = request.conversation.max_tokens if request.max_tokens is None else request.max_tokens
    if value == 0 and request.conversation.schema is not None:
        raise ValueError("a conversation with a schema cannot be warmed")
    return value


def _output_config(talk: Conversation) -> Params:
    config: Params = {"effort": talk.effort.value}
    if talk.schema is not None:
        config["format"] = {"type": "json_schema", "schema": json.loads(talk.schema)}
    return config


def _system(blocks: tuple[str, ...], ttl: str) -> list[Params]:
    made: list[Params] = [{"type": "text", "text": text} for text in blocks]
    made[-1]["cache_control"] = _MARK if ttl == "5m" else {**_MARK, "ttl": ttl}
    return made


def _messages(request: ModelRequest) -> list[Params]:
    """With no message of its own (a warm-up of the shared prefix) the call carries an unmarked placeholder."""
    if not request.messages:
        return [json.loads(_PLACEHOLDER.json)]
    brief, *rest = (json.loads(message.json) for message in request.messages)
    return [_marked(brief) if request.conversation.continued else brief, *rest]


def _marked(brief: Params) -> Params:
    content = brief["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**brief, "content": [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]}
