"""A scripted model that replays an upstream fix as an agent works: look, write the tests, see them fail, change the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.emulators.anthropic.brain import BrainAnswer, BrainError, BrainRequest, Text, Thinking, ToolUse
from tests.scenarios.real.passages import Passage, passages
from tests.scenarios.real.projects import Fix, Project

Call = tuple[str, Mapping[str, Any]]
Turns = Sequence[Sequence[Call]]
_STEP = re.compile(r"^Your step now: (?P<title>.+)$", re.MULTILINE)
_AROUND = 12
_THINKING = 150


@dataclass
class ReplayBrain:
    """Knows one project. `heard` is the last request of each step: all that the product told the model in it."""

    project: Project
    heard: dict[str, BrainRequest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._turns = {fix.title: turns(self.project, fix) for fix in self.project.fixes}

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The plan, or the next turn of the step that the brief names."""
        if request.output_config.get("format"):
            return BrainAnswer((Thinking(tokens=4 * _THINKING), Text(json.dumps(plan(self.project)))))
        found = _STEP.search(request.first)
        title = found["title"].strip() if found else ""
        known = self._turns.get(title)
        if known is None:
            print(request.first)  # pytest shows it when the scenario fails
            raise BrainError(f"the fix has no step {title!r}")
        self.heard[title] = request
        if request.turn >= len(known):
            print(request.last)  # pytest shows it when the scenario fails
            return BrainAnswer((Text("I have nothing further to do in this step."),))
        calls = (ToolUse(name, given) for name, given in known[request.turn])
        return BrainAnswer((Thinking(tokens=_THINKING), *calls))

    def told(self, fix: Fix) -> list[str]:
        """What the tools answered in a step, oldest first."""
        request = self.heard[fix.title]
        return [result.text for message in request.messages for result in message.results]


def plan(project: Project) -> dict[str, Any]:
    """The plan, in the form the product asks for."""
    return {
        "summary": f"{project.title}. The change follows what the report says; tests for it are added first.",
        "steps": [
            {
                "id": f"fix-{number}",
                "title": fix.title,
                "goal": fix.goal,
                "files": [{"path": path, "new": not project.text_before(path)} for path in fix.paths],
                "depends_on": [f"fix-{number - 1}"] if number > 1 else [],
                "checks": [f"`{fix.try_out}` passes with the new cases."],
            }
            for number, fix in enumerate(project.fixes, start=1)
        ],
    }


def turns(project: Project, fix: Fix) -> Turns:
    """All turns of a step."""
    mistaken = fix.mistake
    first = {path: project.text_after(path) for path in fix.code}
    if mistaken is not None:
        if first[mistaken.path].count(mistaken.right) != 1:
            raise AssertionError(f"{mistaken.right!r} is not once in {mistaken.path}")
        first[mistaken.path] = first[mistaken.path].replace(mistaken.right, mistaken.wrong)
    tests = [call for path in fix.tests for call in edits(path, project.text_before(path), project.text_after(path))]
    code = [call for path in fix.code for call in edits(path, project.text_before(path), first[path])]
    run: Call = ("run", {"command": fix.try_out, "seconds": 600})
    found: list[list[Call]] = [list(look(project, fix)), [*tests, run]]
    if mistaken is None:
        return [*found, [*code, run], [finish(fix.title)]]
    correction = list(edits(mistaken.path, first[mistaken.path], project.text_after(mistaken.path)))
    again: Call = ("search", {"pattern": fix.look, "path": mistaken.path})
    return [*found, [*code, finish(fix.title)], [again], [*correction, run], [finish(f"{fix.title}, corrected")]]


def look(project: Project, fix: Fix) -> Iterator[Call]:
    """Search for what the step is about, and read around every place that will change."""
    yield "search", {"pattern": fix.look, "path": fix.code[0].split("/", 1)[0]}
    for path in fix.paths:
        for passage in passages(project.text_before(path), project.text_after(path)):
            yield "read", {"path": path, **_around(passage)}


def _around(passage: Passage) -> dict[str, int]:
    return {"first": max(1, passage.first - _AROUND), "last": passage.last + _AROUND}


def edits(path: str, before: str, after: str) -> Iterator[Call]:
    """The calls of the edit tool that make one text of a file the other."""
    if not before:
        yield "edit", {"path": path, "old": "", "new": after}
        return
    for passage in passages(before, after):
        yield "edit", {"path": path, "old": passage.old, "new": passage.new}


def finish(summary: str) -> Call:
    return "finish", {"summary": f"{summary}."}
