"""Rules on parameters: caps, pre-warm, thinking and effort, tool choice, tool and output schemas."""

import re
from collections.abc import Iterator
from typing import Any

from bot.emulators.anthropic.models import HIGH_EFFORTS, OFF_TYPES
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.rules.fields import BINDING, FORMAT, fit
from bot.emulators.anthropic.wire import Draft, Surface

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FORCED = frozenset({"any", "tool"})
_CONTROLS = "thinking-binding-controls-2026-08-01"
_UNSUPPORTED_KEYWORDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"}
)


def max_tokens(draft: Draft) -> None:
    """V2."""
    if draft.surface is Surface.COUNT:
        return
    value = draft.body["max_tokens"]
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refusal("max_tokens: Input should be a valid integer")
    if value < 0:
        raise Refusal("max_tokens: Input should be greater than or equal to 0")
    if value > draft.model.max_output:
        raise Refusal(
            f"max_tokens: {value} > {draft.model.max_output}, which is the maximum allowed number of output tokens "
            f"for {draft.model.name}"
        )


def prewarm(draft: Draft) -> None:
    """V3: a request for nothing cannot also ask for a stream, a format, a forced tool, or a batch."""
    if draft.body.get("max_tokens") != 0:
        return
    choice = draft.body.get("tool_choice") or {}
    conflicts = {
        "stream": bool(draft.body.get("stream")),
        "thinking.type.enabled": draft.thinking.get("type") == "enabled",
        "output_config.format": bool(draft.output_config.get("format")),
        "tool_choice": choice.get("type") in _FORCED,
        "message batches": draft.surface is Surface.BATCH_ITEM,
    }
    for name, present in conflicts.items():
        if present:
            raise Refusal(f"max_tokens: 0 is not supported together with {name}.")


def plain_batch(draft: Draft) -> None:
    """An item of a batch is never streamed."""
    if draft.surface is Surface.BATCH_ITEM and draft.body.get("stream"):
        raise Refusal("stream: not supported in message batches")


def thinking(draft: Draft) -> None:
    """V5: which thinking types a model takes, and at which effort thinking can be off."""
    given, model = draft.thinking, draft.model
    kind = given.get("type")
    if kind not in model.thinking:
        if kind == "disabled" and "between_tools" in model.thinking:
            raise Refusal(
                "To turn thinking off on this model, send "
                '"thinking": {"type": "between_tools"} instead of {"type": "disabled"}.'
            )
        raise Refusal(
            f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    if kind in OFF_TYPES and draft.effort in HIGH_EFFORTS:
        raise Refusal(f'"thinking.type.{kind}" is not supported with effort "{draft.effort}".')
    for key in ("budget_tokens", "display"):
        if key in given and (key, kind) != ("display", "adaptive"):
            draft.object_to(f"thinking.{kind}.{key}")


def speed(draft: Draft) -> None:
    """Fast mode is there for the models that have a price for it."""
    if draft.body.get("speed") == "fast" and draft.model.fast is None:
        raise Refusal(f"speed: 'fast' is not supported for {draft.model.name}")


def forced_tools(draft: Draft) -> None:
    """V6: in count_tokens too."""
    choice = draft.body.get("tool_choice") or {}
    if choice.get("type") in _FORCED and not draft.model.forced_tools:
        raise Refusal('tool_choice: type "tool" and "any" are not supported for this model.')


def tools(draft: Draft) -> None:
    """V7."""
    choice = draft.body.get("tool_choice")
    if choice is not None and not draft.tools:
        raise Refusal("tool_choice: may only be specified while providing tools.")
    seen: set[str] = set()
    for i, tool in enumerate(draft.tools):
        _tool(i, tool)
        if tool["name"] in seen:
            raise Refusal("tools: Tool names must be unique.")
        seen.add(tool["name"])
    if choice is not None and choice["type"] == "tool" and choice.get("name") not in seen:
        raise Refusal(f"Tool '{choice.get('name')}' not found in provided tools")


def _tool(i: int, tool: dict[str, Any]) -> None:
    if not _NAME.fullmatch(tool.get("name", "")):
        raise Refusal(f"tools.{i}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if "input_schema" not in tool:
        return
    schema = tool["input_schema"]
    if schema.get("type") != "object":
        raise Refusal(f"tools.{i}.custom.input_schema.type: Input should be 'object'")
    if not isinstance(schema.get("properties"), dict | None):
        raise Refusal(f"tools.{i}.custom.input_schema.properties: Input should be a valid dictionary")


def schemas(draft: Draft) -> None:
    """Structured output takes a subset of JSON Schema: closed objects, no bounds on numbers, strings or lists."""
    form = draft.output_config.get("format")
    if form is not None:
        fit(draft, "output_config.format.", form, FORMAT)
        _subset("output_config.format.schema", form["schema"])
    for i, tool in enumerate(draft.tools):
        if tool.get("strict") and "input_schema" in tool:
            _subset(f"tools.{i}.custom.input_schema", tool["input_schema"])


def _subset(where: str, schema: dict[str, Any]) -> None:
    for node in _nodes(schema):
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            raise Refusal(f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false")
        for keyword in _UNSUPPORTED_KEYWORDS & node.keys():
            raise Refusal(f"{where}: For '{node.get('type')}' type, property '{keyword}' is not supported")


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema inside a schema; the children of `properties` are schemas, its keys are not keywords."""
    if isinstance(schema, list):
        for item in schema:
            yield from _nodes(item)
    if not isinstance(schema, dict):
        return
    yield schema
    for key, value in schema.items():
        if key in {"properties", "$defs", "definitions"} and isinstance(value, dict):
            yield from _nodes(list(value.values()))
        elif key in {"items", "anyOf", "allOf", "oneOf"}:
            yield from _nodes(value)


def binding_controls(draft: Draft) -> None:
    """V26: a beta field needs its header."""
    controls = draft.thinking.get("block_binding")
    if controls is None:
        return
    if _CONTROLS not in draft.betas:
        raise Refusal(f"thinking.{draft.thinking['type']}.block_binding: Extra inputs are not permitted")
    fit(draft, "thinking.block_binding.", controls, BINDING)
