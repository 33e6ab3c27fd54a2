"""What a recorded step was and what came of it, for people who read a task's transcript. Pure: a step's name and its value in, words out.

A step of another version, or one whose value is gone, is still told, without what came of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.custody.raw import quoted
from bot.domain.action import ClosedMessage, CommandMessage, PullMessage, ReviewMessage, TaskMessage
from bot.domain.decision import Decision
from bot.domain.egress import Attempts
from bot.domain.ids import short
from bot.domain.verdict import Failure, TestOutcome, TestReport
from bot.providers.llm.port import ToolCall
from bot.stages.coding.log import ToolAnswer
from bot.stages.coding.run import Asked, Checked, Used
from bot.stages.publishing.run import PublishedCommit
from bot.workflow.records import Envelope, Examined, Landed, Prepared, Published, Verified


class Kind(StrEnum):
    """What a step was. An effect is something that others see outside."""

    MODEL = "model"
    TOOL = "tool"
    CHECK = "check"
    EFFECT = "effect"
    HEARD = "heard"
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a step did, and what came of it. `ok` False: it failed, or was refused."""

    what: str
    outcome: str = ""
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """How the value of a step is read: what it was, the record it holds, and the words for it."""

    kind: Kind
    holds: Any
    told: Callable[[Any], tuple[Said, ...]]


def reading(name: str) -> Reading | None:
    """How to read a step of this name; None for one that tells people nothing."""
    return next((row for pattern, row in _READINGS.items() if re.fullmatch(pattern, name)), None)


def tools(used: Used, calls: Mapping[str, ToolCall]) -> tuple[Said, ...]:
    """A group of tool calls; `calls` are those that the model asked for, by id."""
    return tuple(_tool(answer, calls.get(answer.call_id)) for answer in used.answers)


_ARGUMENT = {"search": "pattern", "read": "path", "edit": "path", "run": "command"}


def _tool(answer: ToolAnswer, call: ToolCall | None) -> Said:
    what = "a tool" if call is None else f"{call.name} {_argument(call)}".strip()
    first = next((line for line in answer.text.splitlines() if line.strip()), "")
    return Said(what, first, not answer.is_error)


def _argument(call: ToolCall) -> str:
    try:
        given = json.loads(call.arguments)
    except ValueError:
        return ""
    value = given.get(_ARGUMENT.get(call.name, "")) if isinstance(given, dict) else None
    if not isinstance(value, str):
        return ""
    return quoted(value) if _ARGUMENT[call.name] == "path" else value


def _pinned(prepared: Prepared) -> tuple[Said, ...]:
    tests = prepared.settings.test
    return (Said(f"{prepared.base_ref} at {short(prepared.base)}", f"tests: {tests}" if tests else "no tests"),)


def _ran(report: TestReport) -> tuple[Said, ...]:
    return (Said("tests on the base", _counts(report), report.exit_code == 0 and not report.timed_out),)


def _counts(report: TestReport) -> str:
    if report.is_command:
        counted = f"exit {report.exit_code}"
    else:
        counts = ((report.count(outcome), outcome.value) for outcome in TestOutcome)
        counted = ", ".join(f"{number:,} {word}" for number, word in counts if number) or "no tests"
    return counted + (", out of time" if report.timed_out else "")


def _asked(asked: Asked) -> tuple[Said, ...]:
    if asked.turn is not None:
        return (Said("", asked.turn.stop.value),)
    return (Said("", asked.ending.reason if asked.ending is not None else "", ok=False),)


def _checked(checked: Checked) -> tuple[Said, ...]:
    return (Said("tests and scan", _against(checked.failures) or "passed", not checked.failures),)


def _verified(verified: Verified) -> tuple[Said, ...]:
    against = _against(verified.failures)
    return (
        Said(f"full check of {short(verified.change.tree)}", against or _counts(verified.verdict.after), not against),
    )


def _against(failures: tuple[Failure, ...]) -> str:
    named = ", ".join(f"{each.kind.value.replace('_', ' ')}: {each.subject}" for each in failures[:3])
    return named + (f" and {len(failures) - 3} more" if len(failures) > 3 else "")


def _decided(what: str, decision: Decision) -> tuple[Said, ...]:
    reasons = " ".join(reason.text for reason in decision.against())
    return (Said(what, "allowed" if decision.allowed else f"{decision.outcome.value}: {reasons}", decision.allowed),)


def _pushed(pushed: PublishedCommit) -> tuple[Said, ...]:
    outcome = "somebody pushed meanwhile; ours is not there" if pushed.moved else f"tree {short(pushed.tree)}"
    return (Said(f"commit {short(pushed.commit)} on the branch", outcome, not pushed.moved),)


def _opened(published: Published) -> tuple[Said, ...]:
    return (Said(f"pull request #{published.number}", f"{published.branch}, digest {published.digest[:12]}"),)


def _adopted(published: Published) -> tuple[Said, ...]:
    return (Said(f"head of somebody else: {short(published.head)}", f"digest {published.digest[:12]}"),)


def _examined(examined: Examined) -> tuple[Said, ...]:
    given = f"approved by {examined.approval.reviewer.login}" if examined.given and examined.approval else ""
    (said,) = _decided("the gate" if not given else f"the gate; {given}", examined.decision)
    return (said,)


def _landed(landed: Landed) -> tuple[Said, ...]:
    if landed.merged is not None:
        tree = f", tree {short(landed.merged_tree)}" if landed.merged_tree is not None else ""
        return (Said("merge", f"merged as {short(landed.merged)}{tree}", not landed.alarm),)
    return _decided("ready to merge" if landed.ready else "merge", landed.decision)


def _egress(attempts: Attempts) -> tuple[Said, ...]:
    return tuple(
        Said(f"network: {each.target}", "allowed" if each.allowed else "denied", each.allowed) for each in attempts.all
    )


def _brief(text: str) -> tuple[Said, ...]:
    return (Said("what the planner is shown", f"{len(text):,} characters"),)


def _heard(envelope: Envelope) -> tuple[Said, ...]:
    return (Said(f"{envelope.message.actor.login}: {_message(envelope.message)}"),)


def _message(message: TaskMessage) -> str:
    match message:
        case ReviewMessage(state=state):
            return f"review, {state.value.replace('_', ' ')}"
        case CommandMessage(command=command):
            return f"/agent {command.verb.value}"
        case PullMessage(activity=activity, merged=merged):
            return "pull request merged" if merged else f"pull request {activity.value.replace('_', ' ')}"
        case ClosedMessage(why=why):
            return why.value.replace("_", " ")


def _effect(what: str) -> Callable[[Any], tuple[Said, ...]]:
    return lambda _: (Said(what),)


MESSAGE = "DBOS.recv"
"""The engine's own name of the step in which a message is waited for."""

CALL = r".+:call:\d+"
TOOL = r".+:tool:\d+:\d+"

_READINGS: Mapping[str, Reading] = {
    r"prepare:pin": Reading(Kind.WORK, Prepared, _pinned),
    r"prepare:(step-)?baseline": Reading(Kind.CHECK, TestReport, _ran),
    r".+:egress": Reading(Kind.WORK, Attempts, _egress),
    r"plan:brief": Reading(Kind.WORK, str, _brief),
    r"plan:policy": Reading(Kind.CHECK, Decision, lambda decision: _decided("may it be done", decision)),
    CALL: Reading(Kind.MODEL, Asked, _asked),
    TOOL: Reading(Kind.TOOL, Used, lambda used: tools(used, {})),
    r".+:check:\d+": Reading(Kind.CHECK, Checked, _checked),
    r"verify": Reading(Kind.CHECK, Verified, _verified),
    r"publish:commit": Reading(Kind.EFFECT, PublishedCommit, _pushed),
    r"publish:pull": Reading(Kind.EFFECT, Published, _opened),
    r"examine": Reading(Kind.CHECK, Examined, _examined),
    r"adopt:read": Reading(Kind.WORK, Published, _adopted),
    r"adopt:body": Reading(Kind.EFFECT, bool, _effect("the pull request's text")),
    r"land": Reading(Kind.EFFECT, Landed, _landed),
    r"land:check": Reading(Kind.EFFECT, bool, _effect("the check says that it landed")),
    r"gate:.+": Reading(Kind.EFFECT, bool, _effect("check run and comment of the gate")),
    r"tell:\d+:.+": Reading(Kind.EFFECT, bool, _effect("status comment")),
    r"end": Reading(Kind.EFFECT, bool, _effect("status comment with the ending, label taken off")),
    re.escape(MESSAGE): Reading(Kind.HEARD, Envelope, _heard),
}
