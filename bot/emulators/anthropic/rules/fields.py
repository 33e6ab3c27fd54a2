"""The type of every field a request may carry, as data; the other rules rely on it.

Source: the parameter types of the SDK. A misfit is refused; an unknown key is refused too, or noted in lenient mode.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bot.emulators.anthropic.models import EFFORTS
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.wire import Draft


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field holds: the service's words for it, and the check."""

    wanted: str
    holds: Callable[[Any], bool]
    required: bool = False

    def or_null(self) -> "Kind":
        """The same, or null."""
        return Kind(self.wanted, lambda value: value is None or self.holds(value))

    def needed(self) -> "Kind":
        """The same, and it has to be there."""
        return replace(self, required=True)


Fields = Mapping[str, Kind]


def one_of(*names: str) -> Kind:
    """One of these words."""
    wanted = f"Input should be {' or '.join(repr(name) for name in names)}"
    return Kind(wanted, lambda value: isinstance(value, str) and value in names)


def _typed(noun: str, *kinds: type) -> Kind:
    return Kind(f"Input should be a valid {noun}", lambda value: isinstance(value, kinds))


TEXT, FLAG = _typed("string", str), _typed("boolean", bool)
OBJECT, LIST = _typed("dictionary", dict), _typed("list", list)
PROSE = _typed("string or list", str, list)
TEXTS = Kind(
    "Input should be a list of non-empty strings",
    lambda value: isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value),
)
_CALL = re.compile(r"[a-zA-Z0-9_-]+")
CALL_ID = Kind(
    "String should match pattern '^[a-zA-Z0-9_-]+$'",
    lambda value: isinstance(value, str) and _CALL.fullmatch(value) is not None,
)
MARKER = OBJECT.or_null()
EFFORT = one_of(*EFFORTS).or_null()

REQUEST: Fields = {
    "model": TEXT,
    "messages": LIST,
    "tools": LIST,
    "system": PROSE,
    "thinking": OBJECT,
    "output_config": OBJECT,
    "tool_choice": OBJECT,
    "cache_control": MARKER,
    "diagnostics": OBJECT.or_null(),
    "metadata": OBJECT,
    "stop_sequences": TEXTS,
    "stream": FLAG,
    "container": _typed("string or dictionary", str, dict).or_null(),
    "inference_geo": TEXT.or_null(),
    "service_tier": one_of("auto", "standard_only"),
    "speed": one_of("standard", "fast").or_null(),
}

INSIDE: Mapping[str, Fields] = {
    "thinking": {
        "type": TEXT.needed(),
        "display": one_of("summarized", "omitted").or_null(),
        "budget_tokens": _typed("integer", int),
        "block_binding": OBJECT.or_null(),
    },
    "output_config": {"effort": EFFORT, "format": OBJECT.or_null()},
    "tool_choice": {
        "type": one_of("auto", "any", "tool", "none").needed(),
        "name": TEXT,
        "disable_parallel_tool_use": FLAG,
    },
    "metadata": {"user_id": TEXT.or_null()},
    "diagnostics": {"previous_message_id": TEXT.or_null()},
}

BINDING: Fields = {"prefix_mismatch_behavior": one_of("error", "drop_block").or_null()}
FORMAT: Fields = {"type": one_of("json_schema").needed(), "schema": OBJECT.needed()}
CACHE_CONTROL: Fields = {"type": one_of("ephemeral").needed(), "ttl": one_of("5m", "1h")}

TOOL: Fields = {
    "type": one_of("custom").or_null(),
    "name": TEXT.needed(),
    "description": TEXT,
    "input_schema": OBJECT.needed(),
    "strict": FLAG,
    "defer_loading": FLAG,
    "eager_input_streaming": FLAG.or_null(),
    "allowed_callers": TEXTS,
    "input_examples": LIST,
    "cache_control": MARKER,
}

_PICTURES = one_of("image/jpeg", "image/png", "image/gif", "image/webp")
_URL: Fields = {"url": TEXT.needed()}
_FILE: Fields = {"file_id": TEXT.needed()}
SOURCES: Mapping[str, Mapping[str, Fields]] = {
    "image": {"base64": {"data": TEXT.needed(), "media_type": _PICTURES.needed()}, "url": _URL, "file": _FILE},
    "document": {
        "base64": {"data": TEXT.needed(), "media_type": one_of("application/pdf").needed()},
        "text": {"data": TEXT.needed(), "media_type": one_of("text/plain").needed()},
        "content": {"content": PROSE.needed()},
        "url": _URL,
        "file": _FILE,
    },
}

CITATIONS: Fields = {"enabled": FLAG}
_ANY_BLOCK: Fields = {"type": TEXT, "cache_control": MARKER}
BLOCKS: Mapping[str, Fields] = {
    "text": {**_ANY_BLOCK, "text": TEXT.needed(), "citations": LIST.or_null()},
    "image": {**_ANY_BLOCK, "source": OBJECT.needed(), "transformations": OBJECT.or_null()},
    "document": {
        **_ANY_BLOCK,
        "source": OBJECT.needed(),
        "citations": OBJECT.or_null(),
        "context": TEXT.or_null(),
        "title": TEXT.or_null(),
    },
    "thinking": {**_ANY_BLOCK, "thinking": TEXT.needed(), "signature": TEXT.needed()},
    "redacted_thinking": {**_ANY_BLOCK, "data": TEXT.needed()},
    "tool_use": {
        **_ANY_BLOCK,
        "id": CALL_ID.needed(),
        "name": TEXT.needed(),
        "input": OBJECT.needed(),
        "caller": OBJECT.or_null(),
        "toolset_name": TEXT.or_null(),
    },
    "tool_result": {
        **_ANY_BLOCK,
        "tool_use_id": CALL_ID.needed(),
        "content": PROSE.or_null(),
        "is_error": FLAG.or_null(),
        "toolset_name": TEXT.or_null(),
    },
}


def fit(draft: Draft, where: str, value: Mapping[str, Any], fields: Fields, *, closed: bool = True) -> None:
    """Refuse the first field that is missing, misfit or, where the object is closed, unknown; `where` ends in a dot or is empty."""
    for name, kind in fields.items():
        if name in value and not kind.holds(value[name]):
            raise Refusal(f"{where}{name}: {kind.wanted}")
        if kind.required and name not in value:
            raise Refusal(f"{where}{name}: Field required")
    for name in value if closed else ():
        if name not in fields:
            draft.object_to(f"{where}{name}")
