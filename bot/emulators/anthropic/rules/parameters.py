"""Rules on parameters: caps, pre-warm, thinking and effort, tool choice, tool and output schemas."""

import re
from collections.abc import Iterator
from typing import Any

from bot.emulators.anthropic.models import EFFORTS, HIGH_EFFORTS, OFF_TYPES
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.wire import Draft, Surface

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_FORCED = frozenset({"any", "tool"})
_CHOICES = frozenset({"auto", "none"}) | _FORCED
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
    for key in given:
        if key not in {"type", "display", "block_binding"} or (key == "display" and kind != "adaptive"):
            draft.object_to(f"thinking.{kind}.{key}")
    if given.get("display") not in {None, "summarized", "omitted"}:
        raise Refusal("thinking.adaptive.display: Input should be 'summarized' or 'omitted'")


def effort(draft: Draft) -> None:
    """V5: effort levels, and nothing unknown beside them."""
    for key in draft.output_config:
        if key not in {"effort", "format"}:
            draft.object_to(f"output_config.{key}")
    if draft.effort not in EFFORTS:
        raise Refusal(f"output_config.effort: Input should be one of {', '.join(EFFORTS)}")


def forced_tools(draft: Draft) -> None:
    """V6: in count_tokens too."""
    choice = draft.body.get("tool_choice") or {}
    if choice.get("type") in _FORCED and not draft.model.forced_tools:
        raise Refusal('tool_choice: type "tool" and "any" are not supported for this model.')


def tools(draft: Draft) -> None:
    """V7."""
    choice = draft.body.get("tool_choice")
    if choice is not None and choice.get("type") not in _CHOICES:
        raise Refusal("tool_choice: Input tag does not match any of the expected tags")
    if choice is not None and not draft.tools:
        raise Refusal("tool_choice: may only be specified while providing tools.")
    seen: set[str] = set()
    for i, tool in enumerate(draft.tools):
        _tool(i, tool)
        if tool["name"] in seen:
            raise Refusal("tools: Tool names must be unique.")
        seen.add(tool["name"])


def _tool(i: int, tool: dict[str, Any]) -> None:
    name = tool.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Refusal(f"tools.{i}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if tool.get("type") not in {None, "custom"}:
        return
    schema = tool.get("input_schema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise Refusal(f"tools.{i}.custom.input_schema.type: Input should be 'object'")


def schemas(draft: Draft) -> None:
    """Structured output takes a subset of JSON Schema: closed objects, no bounds on numbers, strings or lists."""
    form = draft.output_config.get("format")
    if form is not None:
        if not isinstance(form, dict) or form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
            raise Refusal("output_config.format: Input should be {type: json_schema, schema: {...}}")
        _subset("output_config.format.schema", form["schema"])
    for i, tool in enumerate(draft.tools):
        if tool.get("strict"):
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
    if not isinstance(controls, dict) or controls.get("prefix_mismatch_behavior") not in {None, "error", "drop_block"}:
        raise Refusal("thinking.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'")
