"""The tools the coder may call: frozen JSON text, in a fixed order (design §9). Arguments are checked here, not trusted."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bot.prompting import whole_json


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Search(_Input):
    """Find a regular expression in the files."""

    name: Literal["search"] = "search"
    pattern: str = Field(min_length=1, max_length=500)
    path: str = Field(default=".", max_length=400)
    tokens: int = Field(default=500, ge=100, le=4000)


class Read(_Input):
    """Read lines of a file."""

    name: Literal["read"] = "read"
    path: str = Field(min_length=1, max_length=400)
    first: int | None = Field(default=None, ge=1)
    last: int | None = Field(default=None, ge=1)


class Edit(_Input):
    """Replace one exact passage, or create a file."""

    name: Literal["edit"] = "edit"
    path: str = Field(min_length=1, max_length=400)
    old: str
    new: str


class Run(_Input):
    """Run a shell command."""

    name: Literal["run"] = "run"
    command: str = Field(min_length=1, max_length=20_000)
    seconds: int = Field(default=120, ge=1, le=900)


class Finish(_Input):
    """Say the step is done."""

    name: Literal["finish"] = "finish"
    summary: str = Field(max_length=2_000)


ToolInput = Search | Read | Edit | Run | Finish
_ADAPTER: TypeAdapter[ToolInput] = TypeAdapter(Annotated[ToolInput, Field(discriminator="name")])

READ_ONLY = (Search, Read)
"""Calls of these kinds in a row run at the same time."""

FAMILIES = (frozenset({"search", "read"}), frozenset({"edit"}))
"""Calls of one family in a row are one act: one checkpoint, and one look at the tree afterwards if they change it."""

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}


def _tool(name: str, description: str, properties: dict[str, object], required: list[str]) -> dict[str, object]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS_JSON = json.dumps(
    [
        _tool(
            "search",
            "Search the files with an extended regular expression. Answers lines by file: definitions and product code first, tests and "
            "documents last, then what is left by file. Without a match it names the files nearest to the words.",
            {
                "pattern": _STRING,
                "path": {**_STRING, "description": "file or directory, default the whole repository"},
                "tokens": {**_INTEGER, "description": "room for the answer, default 500, at most 4000"},
            },
            ["pattern"],
        ),
        _tool(
            "read",
            "Read numbered lines of a file; ask for the range you need, at most 400. Without `last` you get about 500 tokens, 60 lines at "
            "most, and with neither `first` nor `last` the outline of a file of more than 200 lines.",
            {"path": _STRING, "first": _INTEGER, "last": _INTEGER},
            ["path"],
        ),
        _tool(
            "edit",
            "Replace `old`, which must occur exactly once, by `new`. With empty `old` the file is created and must not exist.",
            {"path": _STRING, "old": _STRING, "new": _STRING},
            ["path", "old", "new"],
        ),
        _tool(
            "run",
            "Run a bash command in the repository's root. There is no network. Long output is cut; the rest stays in the file named.",
            {"command": _STRING, "seconds": {**_INTEGER, "description": "time limit, default 120"}},
            ["command"],
        ),
        _tool(
            "finish",
            "Say that the step is done. The tests and the security scan run then; if they fail you get the failures back.",
            {"summary": {**_STRING, "description": "one or two sentences on what you changed"}},
            ["summary"],
        ),
    ],
    separators=(",", ":"),
    ensure_ascii=False,
)


def parse(name: str, arguments: str) -> ToolInput | str:
    """The checked input of a call, or one sentence for the model that says what is wrong with it."""
    try:
        given = whole_json(arguments)
    except ValueError as error:
        return f"The arguments of {name} are not JSON: {error}."
    if not isinstance(given, dict):
        return f"The arguments of {name} must be an object."
    try:
        return _ADAPTER.validate_python({**given, "name": name})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part != name) or name
        return f"{name}: {where}: {first['msg']}."
