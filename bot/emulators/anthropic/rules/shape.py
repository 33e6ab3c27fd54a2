"""Is it a request at all: required fields, known keys, every field of its type."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bot.emulators.anthropic.models import MODELS
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.rules import fields
from bot.emulators.anthropic.wire import Draft, Surface

_COUNTED = frozenset(
    {"messages", "model", "cache_control", "output_config", "speed", "system", "thinking", "tool_choice", "tools"}
)
_SAMPLING = ("temperature", "top_p", "top_k")
_SERVICE_TOOL = re.compile(
    r"(bash|text_editor|memory|code_execution|web_search|web_fetch|(computer|browser)_toolset)_\d{8}"
    r"|tool_search_tool_(bm25|regex)(_\d{8})?"
)
_SERVER_BLOCKS = frozenset({"search_result", "server_tool_use", "web_search_tool_result", "web_fetch_tool_result"})
_MESSAGE_KEYS = frozenset({"role", "content"})
_BETA_MESSAGE_KEYS = {
    "output_config": "mid-conversation-output-config-2026-07-01",
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
}


def required_fields(draft: Draft) -> None:
    """V1."""
    names = ("model", "messages") if draft.surface is Surface.COUNT else ("model", "max_tokens", "messages")
    for name in names:
        if draft.body.get(name) is None:
            raise Refusal(f"{name}: Field required")


def no_sampling(draft: Draft) -> None:
    """V4: gone in this version, even at their old defaults."""
    for name in _SAMPLING:
        if name in draft.body:
            draft.object_to(name)


def known_keys(draft: Draft) -> None:
    """A key nobody knows is refused; older clients' beta keys pass in lenient mode only."""
    known = _COUNTED if draft.surface is Surface.COUNT else {*fields.REQUEST, "max_tokens"}
    for name in draft.body:
        if name not in known and name not in _SAMPLING:
            draft.object_to(name)


def containers(draft: Draft) -> None:
    """Everything the later rules walk through has the type they expect."""
    fields.fit(draft, "", draft.body, fields.REQUEST, closed=False)
    for name, inside in fields.INSIDE.items():
        if draft.body.get(name) is not None:
            fields.fit(draft, f"{name}.", draft.body[name], inside)
    for i, tool in enumerate(draft.tools):
        if not isinstance(tool, dict):
            raise Refusal(f"tools.{i}: Input should be a valid dictionary")
        _tool(draft, i, tool)
    system = draft.body.get("system")
    for i, block in enumerate(system if isinstance(system, list) else ()):
        _block(draft, f"system.{i}", block, ("text",))


def _tool(draft: Draft, i: int, tool: dict[str, Any]) -> None:
    kind = tool.get("type")
    if isinstance(kind, str) and _SERVICE_TOOL.fullmatch(kind):
        fields.fit(draft, f"tools.{i}.", tool, {"name": fields.TEXT, "cache_control": fields.MARKER}, closed=False)
        return
    fields.fit(draft, f"tools.{i}.", tool, fields.TOOL)


def messages_shape(draft: Draft) -> None:
    """Messages are objects with a role and blocks of known types, keys and all."""
    for i, message in enumerate(draft.body["messages"]):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Refusal(f"messages.{i}.role: Field required")
        _message_keys(draft, i, message)
        content = message.get("content")
        if not isinstance(content, str | list):
            raise Refusal(f"messages.{i}.content: Input should be a valid list")
        for j, block in enumerate(content if isinstance(content, list) else ()):
            _block(draft, f"messages.{i}.content.{j}", block, fields.BLOCKS)


def _message_keys(draft: Draft, i: int, message: dict[str, Any]) -> None:
    for key in message:
        beta = _BETA_MESSAGE_KEYS.get(key) if message["role"] == "system" else None
        if key not in _MESSAGE_KEYS and (beta is None or beta not in draft.betas):
            draft.object_to(f"messages.{i}.{key}")


def _block(draft: Draft, where: str, block: Any, allowed: Iterable[str]) -> None:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise Refusal(f"{where}: Input should be a valid dictionary with a type")
    kind = block["type"]
    if kind in _SERVER_BLOCKS:
        return
    if kind not in allowed:
        raise Refusal(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    fields.fit(draft, f"{where}.{kind}.", block, fields.BLOCKS[kind])
    if kind in fields.SOURCES:
        _source(draft, f"{where}.{kind}.source", block["source"], fields.SOURCES[kind])
    if kind == "document" and block.get("citations") is not None:
        fields.fit(draft, f"{where}.document.citations.", block["citations"], fields.CITATIONS)
    _nested(draft, where, block)


def _source(draft: Draft, where: str, source: dict[str, Any], known: Mapping[str, fields.Fields]) -> None:
    kind = fields.one_of(*known)
    fields.fit(draft, f"{where}.", source, {"type": kind.needed()}, closed=False)
    fields.fit(draft, f"{where}.{source['type']}.", source, {"type": kind, **known[source["type"]]})


def _nested(draft: Draft, where: str, block: dict[str, Any]) -> None:
    content = block.get("content")
    if block["type"] != "tool_result" or not isinstance(content, list):
        return
    for k, inner in enumerate(content):
        _block(draft, f"{where}.tool_result.content.{k}", inner, ("text", "image", "document"))


def known_model(draft: Draft) -> None:
    """An unknown model is a 404, not a 400."""
    name = draft.body["model"]
    if name not in MODELS:
        raise Refusal(f"model: {name}", status=404, type="not_found_error")
