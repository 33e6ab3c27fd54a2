"""Is it a request at all: required fields, known keys, containers of the right type."""

from collections.abc import Iterable
from typing import Any

from bot.emulators.anthropic.models import MODELS
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.wire import Draft, Surface

_COUNTED = frozenset(
    {"messages", "model", "cache_control", "output_config", "speed", "system", "thinking", "tool_choice", "tools"}
)
_KNOWN = _COUNTED | {
    "max_tokens",
    "container",
    "diagnostics",
    "inference_geo",
    "metadata",
    "service_tier",
    "stop_sequences",
    "stream",
}
_SAMPLING = ("temperature", "top_p", "top_k")

_CONTAINERS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("model", str),
    ("messages", list),
    ("tools", list),
    ("system", (str, list)),
    ("thinking", dict),
    ("output_config", dict),
    ("tool_choice", dict),
    ("cache_control", (dict, type(None))),
    ("diagnostics", (dict, type(None))),
    ("metadata", dict),
    ("stop_sequences", list),
    ("stream", bool),
)

_BLOCK_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"text", "citations"}),
    "image": frozenset({"source", "transformations"}),
    "document": frozenset({"source", "citations", "context", "title"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "tool_use": frozenset({"id", "input", "name", "caller", "toolset_name"}),
    "tool_result": frozenset({"tool_use_id", "content", "is_error", "toolset_name"}),
}
_REQUIRED_KEYS: dict[str, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "thinking": (("thinking", str), ("signature", str)),
    "redacted_thinking": (("data", str),),
    "tool_use": (("id", str), ("name", str), ("input", dict)),
    "tool_result": (("tool_use_id", str),),
}
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
    known = _COUNTED if draft.surface is Surface.COUNT else _KNOWN
    for name in draft.body:
        if name not in known and name not in _SAMPLING:
            draft.object_to(name)


def containers(draft: Draft) -> None:
    """Everything the later rules walk through has the type they expect."""
    for name, kind in _CONTAINERS:
        if name in draft.body and not isinstance(draft.body[name], kind):
            raise Refusal(f"{name}: Input should be a valid value of another type")
    for i, tool in enumerate(draft.tools):
        if not isinstance(tool, dict):
            raise Refusal(f"tools.{i}: Input should be a valid dictionary")
    system = draft.body.get("system")
    for i, block in enumerate(system if isinstance(system, list) else ()):
        _block(draft, f"system.{i}", block, ("text",))


def messages_shape(draft: Draft) -> None:
    """Messages are objects with a role and blocks of known types, keys and all."""
    for i, message in enumerate(draft.body["messages"]):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Refusal(f"messages.{i}.role: Field required")
        _message_keys(draft, i, message)
        content = message.get("content")
        if content is None:
            raise Refusal(f"messages.{i}.content: Field required")
        if not isinstance(content, str | list):
            raise Refusal(f"messages.{i}.content: Input should be a valid list")
        for j, block in enumerate(content if isinstance(content, list) else ()):
            _block(draft, f"messages.{i}.content.{j}", block, _BLOCK_KEYS)


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
    for key, expected in _REQUIRED_KEYS.get(kind, ()):
        if not isinstance(block.get(key), expected):
            raise Refusal(f"{where}.{kind}.{key}: Field required")
    for key in block:
        if key not in _BLOCK_KEYS[kind] and key not in {"type", "cache_control"}:
            draft.object_to(f"{where}.{kind}.{key}")
    _nested(draft, where, block)


def _nested(draft: Draft, where: str, block: dict[str, Any]) -> None:
    content = block.get("content")
    if block["type"] != "tool_result" or content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal(f"{where}.tool_result.content: Input should be a valid list")
    for k, inner in enumerate(content):
        _block(draft, f"{where}.tool_result.content.{k}", inner, ("text", "image", "document"))


def known_model(draft: Draft) -> None:
    """An unknown model is a 404, not a 400."""
    name = draft.body["model"]
    if not isinstance(name, str) or name not in MODELS:
        raise Refusal(f"model: {name}", status=404, type="not_found_error")
