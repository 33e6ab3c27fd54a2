"""The same work for every agent, as data: one small feature of marshmallow 3.23.2, in the tools of the product and in bash.

A list, 2 searches, 8 reads (parts of 6 files), 6 edits in 4 files, a test run (107 tests, 1 fails), a fixing edit, a test run, the
end: 21 actions. Serial is one action a call, batched is 5 calls. Sizes are those of the work that the anchors were measured on.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Call = tuple[str, Mapping[str, Any]]
Turns = Sequence[Sequence[Call]]
Reads = Literal["default", "ranges", "twice"]
"""How the product's `read` is asked: a first line only, the same ranges as the others', or a second time where the first ended."""

PLANNER, CODER = "claude-opus-5-5", "claude-sonnet-5-5"
PROJECT, VERSION = "marshmallow", "3.23.2"
TITLE = "Give ValidationError its messages as a flat dictionary"
REQUEST = (
    "ValidationError.messages is nested as the schema is. Add ValidationError.flat_messages(): one dictionary from the dotted path of a "
    "field to its list of messages, indices of collections included ('users.0.email'). Messages of a schema as a whole stay under "
    "'_schema'. Document it in the quickstart, add tests, and add a line to the changelog."
)
SUMMARY = "ValidationError.flat_messages() gives messages by dotted path; tested and documented."
TESTS = ("exceptions", "error_store", "utils", "options", "registry")
TEST = "PYTHONPATH=src python -m pytest -v " + " ".join(f"tests/test_{name}.py" for name in TESTS)
PASSING = 107
LIST = "find src tests docs -type f | sort"
SEARCHES = (("messages", "src"), ("ValidationError", "src"))


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a file. `look` is where a reader begins who names no last line."""

    path: str
    first: int
    last: int
    look: int


READS = (
    Part("src/marshmallow/exceptions.py", 1, 71, 15),
    Part("src/marshmallow/error_store.py", 1, 60, 1),
    Part("src/marshmallow/schema.py", 590, 808, 640),
    Part("src/marshmallow/schema.py", 810, 1040, 860),
    Part("tests/test_exceptions.py", 1, 42, 1),
    Part("docs/quickstart.rst", 90, 250, 172),
    Part("docs/quickstart.rst", 250, 390, 300),
    Part("CHANGELOG.rst", 1, 90, 1),
)
WINDOW = 40
"""About what a read without a last line shows."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the one occurrence of `old`."""

    path: str
    old: str
    new: str


_RIGHT = "            yield from _flattened(inner, (*path, str(key)))\n"
_WRONG = "            yield from _flattened(inner, (*path, key))\n"
_FLATTEN = (
    """def _flattened(
    errors: typing.Any, path: tuple[str, ...] = ()
) -> typing.Iterator[tuple[tuple[str, ...], list]]:
    if isinstance(errors, dict):
        for key, inner in errors.items():
"""
    + _WRONG
    + """    else:
        yield path or (SCHEMA,), errors if isinstance(errors, list) else [errors]


class ValidationError(MarshmallowError):
"""
)
_METHOD = '''        return self.messages

    def flat_messages(self) -> dict[str, list]:
        """The messages by the dotted path of what they are about.

        Indices of collections are part of the path: ``users.0.email``. Messages
        of a schema as a whole stay under the key ``_schema``.

        .. versionadded:: 3.24.0
        """
        return {".".join(path): found for path, found in _flattened(self.messages)}


class RegistryError(NameError):
'''
_TESTS = """            excinfo.value
        )

    @pytest.mark.parametrize(
        ("messages", "flat"),
        [
            ("foo", {"_schema": ["foo"]}),
            (["foo", "bar"], {"_schema": ["foo", "bar"]}),
            ({"email": ["bad"]}, {"email": ["bad"]}),
            ({"user": {"email": ["bad"]}}, {"user.email": ["bad"]}),
            ({"users": {0: {"email": ["bad"]}}}, {"users.0.email": ["bad"]}),
            ({"a": ["x"], "b": {"c": ["y"]}}, {"a": ["x"], "b.c": ["y"]}),
        ],
    )
    def test_flat_messages(self, messages, flat):
        assert ValidationError(messages).flat_messages() == flat

    def test_flat_messages_of_one_text_in_a_dict(self):
        assert ValidationError({"a": "x"}).flat_messages() == {"a": ["x"]}

    def test_flat_messages_of_nothing(self):
        assert ValidationError({}).flat_messages() == {}
"""
EDITS = (
    Edit("src/marshmallow/exceptions.py", "class ValidationError(MarshmallowError):\n", _FLATTEN),
    Edit(
        "src/marshmallow/exceptions.py", "        return self.messages\n\n\nclass RegistryError(NameError):\n", _METHOD
    ),
    Edit(
        "tests/test_exceptions.py",
        "from marshmallow.exceptions import ValidationError\n",
        "from marshmallow import ValidationError\n",
    ),
    Edit("tests/test_exceptions.py", "            excinfo.value\n        )\n", _TESTS),
    Edit(
        "docs/quickstart.rst",
        '        print(err.valid_data)  # => {"name": "John"}\n\n',
        '        print(err.valid_data)  # => {"name": "John"}\n'
        "        print(err.flat_messages())  # the same by dotted path, for forms\n\n",
    ),
    Edit(
        "CHANGELOG.rst",
        "Changelog\n---------\n\n",
        "Changelog\n---------\n\n3.24.0 (unreleased)\n*******************\n\nFeatures:\n\n"
        "- Add ``ValidationError.flat_messages()``, which gives messages by the dotted\n  path of their field.\n\n",
    ),
)
PATHS = tuple(sorted({edit.path for edit in EDITS}))
FIX = Edit("src/marshmallow/exceptions.py", _WRONG, _RIGHT)


@dataclass(frozen=True, slots=True)
class Actions:
    """The calls of the work, in the tools of one agent."""

    look: list[Call]
    read: list[Call]
    write: list[Call]
    fix: Call
    test: Call
    end: Call

    def turns(self, *, batched: bool) -> Turns:
        """As 5 turns, or one call a turn."""
        if batched:
            return [self.look, self.read, [*self.write, self.test], [self.fix, self.test], [self.end]]
        every = (*self.look, *self.read, *self.write, self.test, self.fix, self.test, self.end)
        return [[call] for call in every]


def ours(reads: Reads = "default") -> Actions:
    """The work in the tools of the product."""
    return Actions(
        look=[("run", {"command": LIST}), *(("search", {"pattern": text, "path": path}) for text, path in SEARCHES)],
        read=[call for part in READS for call in _read(part, reads)],
        write=[_edit(edit) for edit in EDITS],
        fix=_edit(FIX),
        test=("run", {"command": TEST}),
        end=("finish", {"summary": SUMMARY}),
    )


def _read(part: Part, reads: Reads) -> list[Call]:
    if reads == "ranges":
        return [("read", {"path": part.path, "first": part.first, "last": part.last})]
    once: Call = ("read", {"path": part.path, "first": part.look})
    return [once] if reads == "default" else [once, ("read", {"path": part.path, "first": part.look + WINDOW})]


def _edit(edit: Edit) -> Call:
    return "edit", {"path": edit.path, "old": edit.old, "new": edit.new}


def bash() -> Actions:
    """The work for an agent whose one tool is bash: the same looks, the same ranges with numbered lines, the same edits."""
    return Actions(
        look=[_bash(LIST), *(_bash(f"grep -rnE {shlex.quote(text)} {path}") for text, path in SEARCHES)],
        read=[_bash(f"nl -ba {part.path} | sed -n '{part.first},{part.last}p'") for part in READS],
        write=[_bash(_replacing(edit)) for edit in EDITS],
        fix=_bash(_replacing(FIX)),
        test=_bash(TEST),
        end=_bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    )


def _bash(command: str) -> Call:
    return "bash", {"command": command}


def _replacing(edit: Edit) -> str:
    return (
        f"python3 - <<'EOF'\nfrom pathlib import Path\np = Path({edit.path!r})\n"
        f"p.write_text(p.read_text().replace('''{edit.old}''', '''{edit.new}''', 1))\nEOF"
    )


def plan() -> dict[str, Any]:
    """The work as a plan of one step."""
    return {"summary": SUMMARY, "steps": [_step("flat", TITLE, REQUEST, PATHS)]}


def _step(name: str, title: str, goal: str, paths: Sequence[str], after: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "id": name,
        "title": title,
        "goal": goal,
        "files": [{"path": path, "new": False} for path in paths],
        "depends_on": list(after),
        "checks": ["`tests/test_exceptions.py` covers nested, indexed and schema-level messages."],
    }


_MORE = "Show flat messages where error handling is explained"
_EXTENDING = "docs/extending.rst"


def reference() -> tuple[dict[str, Any], dict[str, Turns]]:
    """A task of the reference size, 25 calls of the coder: the plan, and the turns of its two steps."""
    goal = "docs/extending.rst says in one sentence that flat_messages() suits forms, where it logs errors."
    steps = [_step("flat", TITLE, REQUEST, PATHS), _step("more", _MORE, goal, [_EXTENDING], ["flat"])]
    old = "            logging.error(exc.messages)\n"
    more: list[Call] = [
        ("search", {"pattern": "messages", "path": _EXTENDING}),
        ("read", {"path": _EXTENDING, "first": 355}),
        ("edit", {"path": _EXTENDING, "old": old, "new": f"{old}            # exc.flat_messages() suits forms\n"}),
        ("finish", {"summary": "The section on handling errors names flat_messages()."}),
    ]
    return {"summary": SUMMARY, "steps": steps}, {TITLE: ours().turns(batched=False), _MORE: [[call] for call in more]}


def as_json(value: Mapping[str, Any]) -> str:
    """As a model would send it."""
    return json.dumps(value, ensure_ascii=False)


def applied(texts: Mapping[str, str]) -> dict[str, str]:
    """The files as the work leaves them. Raises ValueError where a passage does not occur exactly once."""
    now = dict(texts)
    for edit in (*EDITS, FIX):
        if now[edit.path].count(edit.old) != 1:
            raise ValueError(f"{edit.path} does not hold this once: {edit.old[:60]!r}")
        now[edit.path] = now[edit.path].replace(edit.old, edit.new)
    return now
