"""Small scripted models for scenarios: one-file repositories, one step, quick to work; the demo and the real projects bring pytest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.emulators.anthropic.brain import BrainAnswer, BrainRequest, Text, Thinking, ToolUse

FILES: Mapping[str, str] = {
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return a + a\n",
    "test_calc.py": (
        "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n\n"
        "    def test_double(self):\n        self.assertEqual(calc.double(4), 8)\n"
    ),
    ".github/pullwright.toml": 'test = "python -m unittest -v"\n',
}

Call = tuple[str, Mapping[str, Any]]

TRIPLE = "\n\ndef triple(a):\n    return 3 * a\n"
LAST_TEST = "        self.assertEqual(calc.double(4), 8)\n"
TEST_TRIPLE = "\n    def test_triple(self):\n        self.assertEqual(calc.triple(2), 6)\n"


def plan(*paths: str, title: str = "Add triple") -> str:
    """A plan of one step over these files."""
    step = {
        "id": "only",
        "title": title,
        "goal": "calc.triple(a) is three times a, with a test.",
        "files": [{"path": path, "new": False} for path in paths or ("calc.py", "test_calc.py")],
        "depends_on": [],
        "checks": ["test_triple passes"],
    }
    return json.dumps({"summary": "Adds triple.", "steps": [step]})


def edit(path: str, old: str, new: str) -> Call:
    return "edit", {"path": path, "old": old, "new": new}


def append(path: str, last: str, more: str) -> Call:
    return edit(path, last, last + more)


def finish(summary: str = "Done.") -> Call:
    return "finish", {"summary": summary}


GOOD: Sequence[Sequence[Call]] = (
    [("read", {"path": "calc.py"}), ("read", {"path": "test_calc.py"})],
    [
        append("calc.py", "    return a + a\n", TRIPLE),
        append("test_calc.py", LAST_TEST, TEST_TRIPLE),
        finish("triple is there and tested."),
    ],
)


@dataclass
class StepBrain:
    """Plans one step and plays `turns`; revisions and repairs play `more`, in order of their conversations."""

    turns: Sequence[Sequence[Call]] = GOOD
    plan: str = field(default_factory=plan)
    more: Sequence[Sequence[Sequence[Call]]] = ()
    thinking: int = 40
    heard: list[BrainRequest] = field(default_factory=list)

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.heard.append(request)
        if request.output_config.get("format"):
            return BrainAnswer((Thinking(tokens=self.thinking), Text(self.plan)))
        turns = self._turns(request)
        if request.turn >= len(turns):
            return BrainAnswer((Text("Nothing further."),))
        calls = tuple(ToolUse(name, given) for name, given in turns[request.turn])
        return BrainAnswer((Thinking(tokens=self.thinking), *calls))

    def _turns(self, request: BrainRequest) -> Sequence[Sequence[Call]]:
        later = [line for line in request.first.splitlines() if line.startswith("Your step now:")]
        title = later[0].removeprefix("Your step now:").strip() if later else ""
        if title in {"Work in the review", "Make the full check pass"} and self.more:
            return self.more[0]
        return self.turns
