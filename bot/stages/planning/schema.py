"""The form of a plan (`output_config.format`). Constant: a change here is a change of the prompt and of every cache entry."""

from __future__ import annotations

import json

_FILE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "new": {"type": "boolean"}},
    "required": ["path", "new"],
    "additionalProperties": False,
}
_STEP = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "goal": {"type": "string"},
        "files": {"type": "array", "items": _FILE},
        "depends_on": {"type": "array", "items": {"type": "string"}},
        "checks": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "title", "goal", "files", "depends_on", "checks"],
    "additionalProperties": False,
}

PLAN_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"summary": {"type": "string"}, "steps": {"type": "array", "items": _STEP}},
        "required": ["summary", "steps"],
        "additionalProperties": False,
    },
    separators=(",", ":"),
)
