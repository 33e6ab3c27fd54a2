"""One task as `pullwright run` does it, inside the benchmark's process: a clone, local sandboxes, the strict model stand-in.

The model stand-in keeps the bill; the product's own ledger is read beside it. What the tools told the model is kept by the brain.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.costing import Part, parts
from bench.work import CODER, PLANNER, Turns
from bot.commands.serve import sandboxes
from bot.custody.clones import number_of
from bot.domain.event import Actor, Subject
from bot.domain.ids import InstallationId, TaskId, UserId
from bot.domain.money import from_dollars
from bot.domain.repository import RepositoryRef
from bot.domain.task import Stage, TaskSpec
from bot.emulators.anthropic import server as anthropic
from bot.emulators.anthropic.brain import BrainAnswer, BrainError, BrainRequest, Spoken, Text, Thinking, ToolUse
from bot.emulators.anthropic.state import Config, State
from bot.settings import Settings
from bot.stages.publishing.texts import Cost
from bot.telemetry import configure
from bot.wiring import local
from bot.workflow.building import Progress
from bot.workflow.local import LocalContext, Proposal, Terminal, propose
from tests.unit.custody.local import Clone

BUDGET = "0.50"
_STEP = re.compile(r"^Your step now: (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """What the model says: the plan, and the turns of each step by its title. Thinking is tokens per answer."""

    plan: Mapping[str, Any]
    steps: Mapping[str, Turns]
    plan_thinking: int = 0
    thinking: int = 0


@dataclass
class ScriptBrain:
    """Says the script. `heard` is the last request of each conversation: all that the product ever told the model in it."""

    script: Script
    heard: dict[str, BrainRequest] = field(default_factory=dict)

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The plan, or the next turn of the step that the brief names."""
        if request.output_config.get("format"):
            self.heard[""] = request
            return _thought(self.script.plan_thinking, [Text(json.dumps(self.script.plan))])
        found = _STEP.search(request.first)
        turns = self.script.steps.get(found["title"].strip() if found else "", ())
        if request.turn >= len(turns):
            last = "\n".join(result.text for result in request.last.results)
            raise BrainError(
                f"the script ends before turn {request.turn + 1} of {found and found[0]!r}: {last[-2000:]}"
            )
        self.heard[found["title"].strip() if found else ""] = request
        return _thought(self.script.thinking, [ToolUse(name, given) for name, given in turns[request.turn]])


def _thought(tokens: int, spoken: Sequence[Spoken]) -> BrainAnswer:
    return BrainAnswer((*([Thinking(tokens=tokens)] if tokens else []), *spoken))


@dataclass(frozen=True, slots=True)
class Worked:
    """A task that was worked to its proposal."""

    proposal: Proposal
    parts: tuple[Part, ...]
    bill: Mapping[str, Any]
    ledger: Cost
    log: Sequence[Mapping[str, Any]]
    brain: ScriptBrain

    @property
    def agrees(self) -> bool:
        """Whether the product's ledger says what the service billed, to the micro-dollar and to the token."""
        usage, cost = self.bill["totals"]["usage"], self.ledger
        billed = (usage["input"], usage["read"], usage["write_5m"] + usage["write_1h"], usage["output"])
        ours = (cost.uncached, cost.read, cost.written, cost.output)
        return billed == ours and self.bill["totals"]["micro_dollars"] == cost.spent


class Stages:
    """Where the bill stood when coding began: all before it is the planner's."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.planned: int | None = None

    def tell(self, stage: Stage, _progress: Progress) -> None:
        """The terminal's side of the product."""
        if stage is Stage.CODING and self.planned is None:
            self.planned = self._distinct()

    def distinct(self) -> dict[str, int]:
        """Distinct tokens by model."""
        planned = self.planned or 0
        return {PLANNER: planned, CODER: self._distinct() - planned}

    def _distinct(self) -> int:
        return int(self._state.bill.document()["totals"]["distinct_tokens"])


async def _silent(_question: str) -> str:
    return ""


async def worked(script: Script, files: Mapping[str, bytes], home: Path, *, title: str, request: str) -> Worked:
    """Work one task on a repository of these files. Raises TaskEnded, with the reason, where the product gives up."""
    clone = Clone(home / "clone")
    clone.commit(files)
    brain = ScriptBrain(script)
    with io.StringIO() as log_lines:
        configure(stream=log_lines)
        async with anthropic.running(Config(brain=brain)) as model:
            settings = Settings(
                home=home / "data",
                anthropic_api_key=SecretStr(model.api_key),
                anthropic_base_url=model.url,
                e2b_api_key=SecretStr(""),
                voyage_api_key=SecretStr(""),
                database_url="",
                budget_usd=Decimal(BUDGET),
                planner_model=PLANNER,
                coder_model=CODER,
            )
            stages = Stages(model.state)
            async with sandboxes(settings) as endpoint, local(settings, endpoint) as services:
                spec = _spec(clone.path, title, request)
                context = LocalContext(services, spec, clone.path, "main")
                proposal = await propose(context, Terminal(stages.tell, _silent))
                ledger = await context.cost()
            bill = model.state.bill.document()
            log = [entry.document() for entry in model.state.log]
    return Worked(proposal, parts(bill, stages.distinct()), bill, ledger, log, brain)


def _spec(clone: Path, title: str, request: str) -> TaskSpec:
    number = number_of(clone)
    reference = RepositoryRef(number, "local/work", InstallationId(0))
    return TaskSpec(
        TaskId(f"run:{number}:1"),
        Subject(reference, 0, is_pull=False),
        Actor(UserId(0), "bench", is_bot=False),
        title,
        request,
        from_dollars(BUDGET),
    )
