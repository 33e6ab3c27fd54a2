"""Clumsy and hostile models in the coding loop, over HTTP: whatever they say, the service never refuses what we send next,
and the step ends in words for people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import pytest_asyncio

from bot.custody.workbench import Workbench
from bot.domain.change import Change
from bot.domain.ids import CommitId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.task import Stage
from bot.domain.verdict import Failure
from bot.emulators.anthropic import BrainAnswer, BrainRequest, Config, Endpoint, Fault, Kind, Text, ToolUse, running
from bot.providers.journal.direct import DirectJournal
from bot.providers.llm.anthropic import AnthropicModel
from bot.providers.llm.metered import MeteredModel, Patience, Purse
from bot.providers.llm.port import Conversation, Effort, Message, ModelBusy
from bot.providers.llm.pricing import PriceBook
from bot.providers.sandbox.port import Sandbox
from bot.retrieval.browse import Browser, Matches
from bot.stages.coding.loop import Limits
from bot.stages.coding.run import Collaborators, StepResult, StepWork, run
from bot.stages.coding.tools import TOOLS_JSON
from bot.stages.planning.run import PlanningWork
from bot.stages.planning.run import run as plan
from bot.stages.planning.schema import PLAN_SCHEMA
from tests.contracts.ledgers import MemoryLedger
from tests.contracts.messages import OPUS, SONNET, compact, user, words

START = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
BUDGET = 500_000
NOWHERE = Matches(())


class Idle:
    """A workbench and a browser where nothing ever changes and nothing is found: the loop is what is looked at."""

    def begin(self, tree: TreeId) -> None:
        return None

    def disturbed(self) -> None:
        return None

    async def capture(self) -> Change:
        return Change(CommitId("0" * 40), START, START, ())

    async def act(self, before: TreeId, work: Callable[[Sandbox], Awaitable[Any]]) -> Any:
        return await work(cast(Sandbox, self))

    async def read(self, tree: TreeId, path: str) -> None:
        return None

    async def search(self, tree: TreeId, pattern: str, path: str) -> Matches:
        return NOWHERE


@dataclass(slots=True)
class Says:
    """Says the same turn for ever."""

    turn: BrainAnswer = field(default_factory=lambda: BrainAnswer(()))

    def answer(self, request: BrainRequest) -> BrainAnswer:
        return self.turn


BRAIN = Says()


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config(brain=BRAIN, first_byte=0.0)) as endpoint:
        yield endpoint


async def no_check(sandbox: Sandbox, change: Change) -> tuple[Failure, ...]:
    return ()


@asynccontextmanager
async def metered(endpoint: Endpoint, ledger: MemoryLedger, budget: int = BUDGET) -> AsyncIterator[MeteredModel]:
    async def sleep(seconds: float) -> None:
        return None

    prices, patience = PriceBook.load(), Patience(sleep=sleep, jitter=lambda: 0.0)
    api = AnthropicModel(api_key=endpoint.api_key, base_url=endpoint.url, prices=prices)
    try:
        yield MeteredModel(api, Purse("task", MicroUsd(budget), ledger), prices, patience=patience)
    finally:
        await api.aclose()


async def worked(endpoint: Endpoint, *, budget: int = BUDGET, calls: int = 6) -> tuple[StepResult, MemoryLedger]:
    """One step of a plan to its end."""

    ledger = MemoryLedger()
    talk = Conversation(
        model=SONNET,
        effort=Effort.MEDIUM,
        thinking="adaptive",
        system=("You work.", words(600)),
        tools=TOOLS_JSON,
        max_tokens=1_000,
    )
    work = StepWork("s", talk, Message(compact(user("Do it."))), START, needs_change=True, limits=Limits(calls=calls))
    idle = Idle()
    async with metered(endpoint, ledger, budget) as model:
        using = Collaborators(DirectJournal(), model, cast(Workbench, idle), no_check, cast(Browser, idle))
        return await run(work, using), ledger


FINISH = ToolUse("finish", {"summary": "done"})
ODD_CALLS: dict[str, Sequence[ToolUse]] = {
    "finished twice in one turn": (FINISH, FINISH),
    "a finish that says nothing and one that does": (ToolUse("finish", {}), FINISH),
    "finish between other calls": (ToolUse("search", {"pattern": "a"}), FINISH, ToolUse("search", {"pattern": "b"})),
    "unknown tools": (ToolUse("teleport", {"to": "mars"}), ToolUse("", {})),
    "arguments of other types": (ToolUse("edit", {"path": 1}), ToolUse("run", {}), ToolUse("search", {"pattern": []})),
    "arguments nobody asked for": (ToolUse("search", {"pattern": "a", "colour": "red"}),),
    "the same call twice": (ToolUse("search", {"pattern": "a"}), ToolUse("search", {"pattern": "a"})),
    "ids used twice": (ToolUse("search", {"pattern": "a"}, "t1"), ToolUse("search", {"pattern": "b"}, "t1")),
    "the same call for ever": (ToolUse("search", {"pattern": "a"}),),
}


@pytest.mark.parametrize("calls", ODD_CALLS.values(), ids=ODD_CALLS)
async def test_odd_calls_are_answered_and_the_step_ends_in_words(endpoint: Endpoint, calls: Sequence[ToolUse]) -> None:
    BRAIN.turn = BrainAnswer(calls)
    result, ledger = await worked(endpoint)
    assert [entry.status for entry in endpoint.state.log] == [200] * result.calls
    assert result.ending is not None
    assert result.ending.stage is Stage.NEEDS_HUMAN
    assert result.ending.reason.endswith(("calls.", "no file", "file."))
    assert set(ledger.outcomes) == {"ok"}


ODD_TURNS: dict[str, tuple[BrainAnswer, str]] = {
    "words and no call": (BrainAnswer((Text("Hm."),)), "stopped working"),
    "nothing at all": (BrainAnswer(()), "stopped working"),
    "an empty text": (BrainAnswer((Text(" "),)), "stopped working"),
    "a pause": (BrainAnswer((Text("Wait."),), stop_reason="pause_turn"), "not finished after 6 model calls"),
    "a pause after nothing": (BrainAnswer((), stop_reason="pause_turn"), "not finished after 6 model calls"),
    "a refusal": (BrainAnswer((Text("No."),), stop_reason="refusal", refusal="cyber"), "declined this step (cyber)"),
    "a refusal without a word": (BrainAnswer((), stop_reason="refusal"), "declined this step"),
    "a call cut in its middle": (BrainAnswer((ToolUse("run", {"command": "x" * 9_000}),)), "cut off twice"),
    "a reason nobody knows": (BrainAnswer((Text("x"),), stop_reason="solar_flare"), "does not know"),
}


@pytest.mark.parametrize(("turn", "said"), ODD_TURNS.values(), ids=ODD_TURNS)
async def test_odd_turns_end_the_step_in_words(endpoint: Endpoint, turn: BrainAnswer, said: str) -> None:
    BRAIN.turn = turn
    result, _ = await worked(endpoint)
    assert result.ending is not None
    assert said in result.ending.reason
    assert result.ending.next_step
    assert {entry.status for entry in endpoint.state.log} == {200}


@pytest.mark.parametrize("turn", [BrainAnswer(()), BrainAnswer((Text('{"steps": 7}'),))])
async def test_a_plan_that_is_none_is_asked_for_twice_and_ends_in_words(endpoint: Endpoint, turn: BrainAnswer) -> None:
    BRAIN.turn = turn
    talk = Conversation(OPUS, Effort.HIGH, "adaptive", ("You plan.",), schema=PLAN_SCHEMA)
    async with metered(endpoint, MemoryLedger()) as model:
        work = PlanningWork("plan", talk, "Do it.", frozenset())
        planned = await plan(work, journal=DirectJournal(), model=model)
    assert planned.ending is not None
    assert planned.ending.next_step
    assert [entry.status for entry in endpoint.state.log] == [200, 200]


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_a_storm_is_left_to_the_journal_and_costs_nothing(endpoint: Endpoint, status: int) -> None:
    endpoint.state.faults.add(Fault(Kind.STATUS, status=status, headers={"retry-after": "1"}, times=9))
    with pytest.raises(ModelBusy):
        await worked(endpoint)
    assert endpoint.state.bill.charges == []


async def test_a_budget_is_never_crossed_by_a_model_that_goes_on_for_ever(endpoint: Endpoint) -> None:
    BRAIN.turn = BrainAnswer((ToolUse("search", {"pattern": "a"}), Text("x" * 2_000)))
    result, ledger = await worked(endpoint, budget=60_000, calls=1_000)
    assert result.ending is not None
    assert result.ending.stage is Stage.OVER_BUDGET
    assert sum(ledger.costs) <= 60_000
    assert endpoint.state.bill.document()["totals"]["micro_dollars"] <= sum(ledger.costs)
