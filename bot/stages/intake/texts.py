"""What people read of this stage. One voice: short, concrete, kind. No text here can be read as a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.domain.action import Answer, Verb
from bot.domain.money import MicroUsd, show
from bot.domain.task import Stage, TaskSpec
from bot.prompting import publishable
from bot.prompting.inert import code
from bot.providers.store.port import TaskRecord

SEEN = "eyes"
CONFUSED = "confused"


@dataclass(frozen=True, slots=True)
class Reply:
    """How to answer: a comment, or only a reaction to the comment that asked (so that nobody can make us write)."""

    text: str | None = None
    reaction: str | None = None


HELP = """\
**What you can ask of me** (write access needed; one command in a comment, at the start of a line)

| command | does |
| --- | --- |
| `/agent run …` or `/agent fix …` | starts on this issue; what you write after it counts. On my pull request: changes it |
| `/agent plan` | shows the plan |
| `/agent approve <hash>` | approves the plan or change with this hash; name what it may touch as `allow:<flag>` |
| `/agent merge <hash>` | merges exactly the change with this hash |
| `/agent retry …` | tries again after an end |
| `/agent stop` | stops; nothing more is spent |
| `/agent status` | says where things are and what they cost |
| `/agent help` | shows this |

The label starts me too. Commands also count in the text of a review and on lines of the change. Edited comments and text in quotes or
code do nothing: write a new comment."""

_STAGES: Mapping[Stage, str] = {
    Stage.QUEUED: "waiting for its turn",
    Stage.PREPARING: "getting the repository ready and running its tests once",
    Stage.PLANNING: "making a plan",
    Stage.AWAITING_PLAN_APPROVAL: "waiting for somebody to approve the plan",
    Stage.CODING: "writing the change",
    Stage.VERIFYING: "checking the change",
    Stage.PUBLISHING: "opening the pull request",
    Stage.IN_REVIEW: "waiting for a review",
    Stage.REVISING: "working on what the review asked for",
    Stage.LANDING: "landing the approved change",
    Stage.LANDED: "landed",
    Stage.READY: "approved and marked ready",
    Stage.NEEDS_HUMAN: "ended: a person is needed",
    Stage.OVER_BUDGET: "ended: the budget is used up",
    Stage.POLICY_DENIED: "ended: the policy does not allow it",
    Stage.CANCELLED: "stopped",
    Stage.INFRASTRUCTURE: "ended: something around it does not work",
}


def reply(answer: Answer) -> Reply:
    """The words for an answer's topic. Somebody who may not write gets no comment for a comment."""
    if answer.topic == "refused" and answer.comment_id is not None:
        return Reply(reaction=CONFUSED)
    return Reply(text=_TEXTS[answer.topic](answer.detail))


def started(spec: TaskSpec) -> str:
    """The first sign that a task began."""
    return (
        f"I'm on it, for at most {show(spec.budget)}. You get a draft pull request, or a word why not.\n\n"
        f"`/agent status` tells where I am, `/agent stop` stops me. Task `{spec.id}`."
    )


def status(record: TaskRecord, spent: MicroUsd) -> str:
    """Where a task is, what it cost and what comes next."""
    pull = f", pull request {record.pull_number}" if record.pull_number is not None else ""
    lines = [f"**{_STAGES[record.stage].capitalize()}**{pull}. {show(spent)} of {show(record.spec.budget)} spent."]
    if record.note and record.ending is None:
        lines.append(publishable(record.note))
    if record.ending is not None:
        lines += [publishable(text) for text in (record.ending.reason, record.ending.next_step) if text]
    return "\n\n".join([*lines, f"Task `{record.spec.id}`."])


def no_task() -> str:
    """A command for a task where there is none."""
    return "No task works on this. Label the issue, or comment `/agent run` there."


def _unknown(word: str) -> str:
    verbs = ", ".join(f"`{verb}`" for verb in Verb)
    return f"I don't know {code(word)}. I know {verbs}. `/agent help` explains them."


def _needs_hash(verb: str) -> str:
    wanted = verb if verb in {Verb.APPROVE, Verb.MERGE} else Verb.APPROVE
    return (
        f"`/agent {wanted}` takes exactly one hash: 12 to 64 characters, digits and `a` to `f`, as I showed it. "
        "After it only `allow:<flag>` words may follow. Nothing was done."
    )


_TEXTS: Mapping[str, Callable[[str], str]] = {
    "help": lambda _: HELP,
    "refused": lambda _: "Starting me needs write access to this repository. Somebody who has it can set the label.",
    "closed": lambda _: "This is closed, so I leave it alone. Reopen it, then ask again.",
    "already_running": lambda task: (
        f"I'm already on this (task {code(task)}). `/agent status` tells where I am; what should change goes to the pull request."
    ),
    "label_off": lambda label: (
        f"The label {code(label)} is off, but I had begun, so I go on. `/agent stop` stops me; then nothing more is spent."
    ),
    "trigger_deleted": lambda _: (
        "The comment that started me is deleted. I go on with what it said then. `/agent stop` stops me."
    ),
    "label_on_pull": lambda label: (
        f"The label {code(label)} starts me on issues only. Describe the change in an issue and label that one."
    ),
    "pull_without_task": lambda _: (
        "I change only pull requests that I opened. Describe the change in an issue and ask there with `/agent run`."
    ),
    "no_task": lambda _: no_task(),
    "several": lambda _: (
        "There are two different commands in this comment, so I did nothing. One comment, one command, please."
    ),
    "unknown": _unknown,
    "invisible": lambda _: (
        "The line with the command holds characters that nobody sees, so I did nothing. Please type it anew in a new comment."
    ),
    "too_long": lambda _: (
        "That is too long for a command. Put the command in a line of its own, with an empty line after it, and the rest below."
    ),
    "extra_words": lambda verb: f"`/agent {verb if verb in set(Verb) else 'stop'}` stands alone. Nothing was done.",
    "needs_hash": _needs_hash,
}

TOPICS = frozenset(_TEXTS)
"""Every topic an `Answer` may name."""
