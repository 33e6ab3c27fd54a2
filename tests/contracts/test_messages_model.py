"""The language-model role against the stand-in: what is sent, what is learnt, and that no cent is spent unseen."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anthropic
import pytest
import pytest_asyncio

from bot.domain.money import MicroUsd
from bot.emulators.anthropic import Config, Endpoint, Fault, Kind, Text, Thinking, ToolUse, running
from bot.providers.llm.anthropic import AnthropicModel
from bot.providers.llm.keepalive import kept_warm
from bot.providers.llm.metered import MeteredModel, Patience, Purse
from bot.providers.llm.port import (
    Conversation,
    Effort,
    LanguageModel,
    Message,
    ModelBusy,
    ModelRejected,
    ModelRequest,
    ModelTurn,
    ModelUnavailable,
    OverBudget,
    StopReason,
)
from bot.providers.llm.pricing import PriceBook
from tests.contracts.ledgers import MemoryLedger
from tests.contracts.messages import HAIKU, LOOK, OPUS, SONNET, Json, Queued, compact, result, user, words

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRAIN = Queued()
TOOLS = compact([LOOK])
BRIEF = Message(compact(user(words(700))))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config(brain=BRAIN, first_byte=0.0)) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(endpoint: Endpoint) -> AsyncIterator[AnthropicModel]:
    timeout = anthropic.Timeout(connect=3.0, read=1.5, write=3.0, pool=3.0)
    async with connected(endpoint, timeout=timeout, deadline=6.0) as model:
        yield model


@asynccontextmanager
async def connected(endpoint: Endpoint, **more: Any) -> AsyncIterator[AnthropicModel]:
    model = AnthropicModel(api_key=endpoint.api_key, base_url=endpoint.url, prices=PriceBook.load(), **more)
    try:
        yield model
    finally:
        await model.aclose()


@pytest.fixture(autouse=True)
def _fresh(endpoint: Endpoint) -> None:
    endpoint.state.reset()
    BRAIN.waiting.clear()


def conversation(**more: Any) -> Conversation:
    made: dict[str, Any] = {
        "model": SONNET,
        "effort": Effort.MEDIUM,
        "thinking": "adaptive",
        "system": ("You work.", words(600)),
        "tools": TOOLS,
        "max_tokens": 1_000,
        **more,
    }
    return Conversation(**made)


@dataclass(slots=True)
class Bench:
    """A metered model with a ledger and a patience that only writes down how long it would have slept."""

    api: AnthropicModel
    budget: int = 500_000
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    slept: list[float] = field(default_factory=list)

    @property
    def model(self) -> LanguageModel:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        patience = Patience(sleep=sleep, jitter=lambda: 0.0)
        return MeteredModel(
            self.api, Purse("task", MicroUsd(self.budget), self.ledger), PriceBook.load(), patience=patience
        )

    async def send(self, *messages: Message, talk: Conversation | None = None, **more: Any) -> ModelTurn:
        made: dict[str, Any] = {"key": "call:1", **more}
        return await self.model.send(
            ModelRequest(conversation=talk or conversation(), messages=messages or (BRIEF,), **made)
        )


def answered(turn: ModelTurn, content: str = "seen") -> Message:
    results: list[Json] = [result(c.id, content) for c in turn.tool_calls]
    return Message(compact({"role": "user", "content": results}))


def billed(endpoint: Endpoint) -> int:
    return int(endpoint.state.bill.document()["totals"]["micro_dollars"])


async def test_a_turn_is_told_whole(api: AnthropicModel, endpoint: Endpoint) -> None:
    BRAIN.says(Thinking(tokens=30), Text("I look."), ToolUse("look", {"b": 1, "a": "é"}))
    bench = Bench(api)
    turn = await bench.send()
    assert (turn.stop, turn.text, turn.refusal, turn.cache_miss) == (StopReason.TOOL_USE, "I look.", "", "")
    assert [(c.name, c.arguments) for c in turn.tool_calls] == [("look", '{"b":1,"a":"é"}')]
    assert turn.usage.thinking == 30
    assert bench.ledger.outcomes == ["ok"]
    assert bench.ledger.costs == [turn.cost] == [billed(endpoint)]


async def test_a_conversation_only_appends_and_every_call_is_a_byte_prefix_of_the_next(
    api: AnthropicModel, endpoint: Endpoint
) -> None:
    bench, log, previous = Bench(api), [BRIEF], None
    for n in range(4):
        BRAIN.says(Thinking(tokens=30), ToolUse("look", {"zeta": n, "alpha": [1.5, None]}))
        turn = await bench.send(*log, key=f"call:{n}", previous_message_id=previous)
        assert turn.cache_miss == ""
        previous = turn.message_id
        log += [turn.message, answered(turn)]
    bodies = [entry.body for entry in endpoint.state.log]
    for before, after in itertools.pairwise(bodies):
        assert before is not None
        assert after is not None
        assert compact([after["tools"], after["system"]]) == compact([before["tools"], before["system"]])
        assert compact(after["messages"]).startswith(compact(before["messages"])[:-1])
    assert sum(bench.ledger.costs) == billed(endpoint)


async def test_every_call_says_effort_thinking_and_previous_message(api: AnthropicModel, endpoint: Endpoint) -> None:
    await Bench(api).send(previous_message_id="msg_before")
    body = endpoint.state.log[0].body
    assert body is not None
    assert body["output_config"] == {"effort": "medium"}
    assert body["thinking"] == {"type": "adaptive"}
    assert body["diagnostics"] == {"previous_message_id": "msg_before"}
    assert body["stream"] is True


async def test_three_breakpoints_share_the_prefix_the_brief_and_the_turns(
    api: AnthropicModel, endpoint: Endpoint
) -> None:
    bench = Bench(api)
    first = await bench.send(key="a")
    retry = await bench.send(key="b")
    other = await bench.send(Message(compact(user(words(650, "b")))), key="c")
    assert (first.usage.read, first.usage.write_5m) == (0, first.usage.prompt - 3)
    assert (retry.usage.read, retry.usage.write_5m) == (first.usage.write_5m, 0)
    assert other.usage.read == first.usage.write_5m - 700


async def test_a_warm_up_writes_the_shared_prefix_and_nothing_else(api: AnthropicModel, endpoint: Endpoint) -> None:
    bench = Bench(api)
    warm = await bench.model.send(ModelRequest("warm", conversation(), (), max_tokens=0))
    assert (warm.usage.output, warm.stop, warm.tool_calls) == (0, StopReason.MAX_TOKENS, ())
    turn = await bench.send(key="real")
    assert turn.usage.read == warm.usage.write_5m > 600


async def test_a_keep_alive_reads_and_refreshes(api: AnthropicModel, endpoint: Endpoint) -> None:
    bench = Bench(api)
    await bench.send()
    endpoint.state.clock.advance(270)
    kept = await bench.send(key="alive", max_tokens=0)
    assert kept.usage.write_5m == 0
    endpoint.state.clock.advance(270)
    assert (await bench.send(key="later")).usage.read == kept.usage.read > 0


async def test_a_long_command_does_not_cost_a_rewrite(api: AnthropicModel, endpoint: Endpoint) -> None:
    bench = Bench(api)
    asked = ModelRequest("call:1", conversation(), (BRIEF,))
    await bench.model.send(asked)
    pinged = asyncio.Event()

    async def hours_pass(seconds: float) -> None:
        endpoint.state.clock.advance(seconds)
        if len(endpoint.state.bill.charges) == 4:
            pinged.set()
            await asyncio.sleep(60)

    async with kept_warm(bench.model, asked, sleep=hours_pass):
        await asyncio.wait_for(pinged.wait(), 10)
    assert [c.write_5m for c in endpoint.state.bill.charges[1:]] == [0, 0, 0]
    assert (await bench.send(key="call:2")).usage.read == endpoint.state.bill.charges[0].write_5m
    assert [place[1] for place in bench.ledger.rows][1] == "call:1:alive:1"


async def test_a_ping_on_its_way_is_settled_when_the_command_ends(api: AnthropicModel, endpoint: Endpoint) -> None:
    bench = Bench(api)
    asked = ModelRequest("call:1", conversation(), (BRIEF,))
    await bench.model.send(asked)
    strike(endpoint, Fault(Kind.DELAY, seconds=0.2))
    async with kept_warm(bench.model, asked, every=0.01):
        await asyncio.sleep(0.1)
    assert bench.ledger.outcomes == ["ok", "ok"]


async def test_a_ping_that_fails_only_ends_the_pinging(api: AnthropicModel, endpoint: Endpoint) -> None:
    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    async with kept_warm(Bench(api, budget=0).model, ModelRequest("k", conversation(), (BRIEF,)), sleep=at_once):
        await asyncio.sleep(0.05)
    assert endpoint.state.log == []


async def test_a_schema_is_sent_and_cannot_be_warmed(api: AnthropicModel, endpoint: Endpoint) -> None:
    schema = compact({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False})
    BRAIN.says(Text('{"a":"b"}'))
    talk = conversation(model=OPUS, schema=schema, effort=Effort.HIGH)
    turn = await Bench(api).send(talk=talk)
    assert json.loads(turn.text) == {"a": "b"}
    with pytest.raises(ValueError, match="warmed"):
        await Bench(api).send(talk=talk, max_tokens=0)


async def test_a_cache_miss_is_named(api: AnthropicModel, endpoint: Endpoint) -> None:
    bench = Bench(api)
    first = await bench.send()
    second = await bench.send(talk=conversation(system=("Other.",)), key="b", previous_message_id=first.message_id)
    assert second.cache_miss == "system_changed"


@pytest.mark.parametrize(
    ("said", "stop"),
    [
        ("end_turn", StopReason.END_TURN),
        ("pause_turn", StopReason.PAUSE_TURN),
        ("stop_sequence", StopReason.STOP_SEQUENCE),
        ("something_new", StopReason.UNKNOWN),
    ],
)
async def test_stop_reasons_are_mapped_and_new_ones_surface(api: AnthropicModel, said: str, stop: StopReason) -> None:
    BRAIN.says(Text("so"), stop_reason=said)
    assert (await Bench(api).send()).stop is stop


async def test_a_refusal_is_a_turn_that_says_why(api: AnthropicModel) -> None:
    BRAIN.says(Text("no"), stop_reason="refusal", refusal="cyber")
    turn = await Bench(api).send()
    assert (turn.stop, turn.refusal) == (StopReason.REFUSAL, "cyber")


def strike(endpoint: Endpoint, *faults: Fault) -> None:
    for fault in faults:
        endpoint.state.faults.add(fault)


async def test_a_rate_limit_is_waited_for(api: AnthropicModel, endpoint: Endpoint) -> None:
    strike(endpoint, Fault(Kind.STATUS, status=429, headers={"retry-after": "7"}))
    bench = Bench(api)
    await bench.send()
    assert bench.slept == [7.0]
    assert bench.ledger.outcomes == ["429 rate_limit_error", "ok"]
    assert bench.ledger.costs[0] == 0


async def test_a_long_rate_limit_goes_back_to_the_queue(api: AnthropicModel, endpoint: Endpoint) -> None:
    strike(endpoint, Fault(Kind.STATUS, status=429, headers={"retry-after": "3600"}))
    bench = Bench(api)
    with pytest.raises(ModelBusy) as caught:
        await bench.send()
    assert caught.value.retry_after == 3600.0
    assert bench.slept == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Kind.STATUS, status=429),
        Fault(Kind.STATUS, status=429, code="enforced_spend_limit_reached", headers={"retry-after": "5"}),
        Fault(Kind.STATUS, status=400, code="contract_spend_limit_reached"),
        Fault(Kind.STATUS, status=401),
        Fault(Kind.STATUS, status=402),
        Fault(Kind.STATUS, status=403),
    ],
    ids=["429 without a time", "429 spend cap", "400 spend cap", "401", "402", "403"],
)
async def test_what_needs_an_operator_stops_at_once(api: AnthropicModel, endpoint: Endpoint, fault: Fault) -> None:
    strike(endpoint, fault)
    bench = Bench(api)
    with pytest.raises(ModelUnavailable):
        await bench.send()
    assert (len(bench.ledger.rows), bench.ledger.costs) == (1, [0])


@pytest.mark.parametrize("status", [400, 404, 413])
async def test_a_malformed_request_is_never_sent_again(api: AnthropicModel, endpoint: Endpoint, status: int) -> None:
    strike(endpoint, Fault(Kind.STATUS, status=status))
    bench = Bench(api)
    with pytest.raises(ModelRejected):
        await bench.send()
    assert len(endpoint.state.log) == 1


@pytest.mark.parametrize("status", [409, 500, 503, 529])
async def test_a_busy_service_is_tried_three_times_and_costs_nothing(
    api: AnthropicModel, endpoint: Endpoint, status: int
) -> None:
    strike(endpoint, Fault(Kind.STATUS, status=status, times=3))
    bench = Bench(api)
    with pytest.raises(ModelBusy):
        await bench.send()
    assert len(endpoint.state.log) == 3
    assert bench.slept == [0.5, 1.0]
    assert sum(bench.ledger.costs) == 0


async def test_two_failures_and_a_success_make_a_turn(api: AnthropicModel, endpoint: Endpoint) -> None:
    strike(endpoint, Fault(Kind.STATUS, status=529), Fault(Kind.STATUS, status=500))
    bench = Bench(api)
    assert (await bench.send()).text == "ok"
    assert bench.ledger.outcomes == ["529 overloaded_error", "500 api_error", "ok"]
    assert [place[2] for place in bench.ledger.rows] == [1, 2, 3]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Kind.HANG),
        Fault(Kind.DELAY, seconds=3.0),
        Fault(Kind.CUT, after=0),
        Fault(Kind.CUT, after=1),
        Fault(Kind.CUT, after=3),
        Fault(Kind.ERROR, after=0),
        Fault(Kind.ERROR, after=3),
        Fault(Kind.MALFORMED, after=2),
        Fault(Kind.DISORDER),
        Fault(Kind.STATUS, status=504),
        Fault(Kind.STATUS, status=408),
    ],
    ids=lambda f: f"{f.kind}-{f.after}-{f.status}",
)
async def test_an_attempt_of_unknown_fate_is_charged_and_tried_again(
    api: AnthropicModel, endpoint: Endpoint, fault: Fault
) -> None:
    strike(endpoint, fault)
    bench = Bench(api)
    turn = await bench.send()
    assert turn.text == "ok"
    assert len(bench.ledger.rows) == 2
    assert bench.ledger.costs[0] >= endpoint.state.bill.charges[0].micro_dollars > 0
    assert sum(bench.ledger.costs) >= billed(endpoint)


async def test_a_stream_that_drips_forever_meets_the_deadline(api: AnthropicModel, endpoint: Endpoint) -> None:
    strike(endpoint, Fault(Kind.DRIP, seconds=0.3, times=3))
    BRAIN.says(Text("word " * 400))
    BRAIN.says(Text("word " * 400))
    async with connected(endpoint, deadline=0.5) as hasty:
        bench = Bench(hasty)
        with pytest.raises(ModelBusy):
            await bench.send()
    assert sum(bench.ledger.costs) >= billed(endpoint) > 0


async def test_a_line_that_never_opened_costs_nothing() -> None:
    nowhere = AnthropicModel(api_key="key", base_url="http://127.0.0.1:9", prices=PriceBook.load())
    bench = Bench(nowhere)
    with pytest.raises(ModelBusy):
        await bench.send()
    await nowhere.aclose()
    assert (len(bench.ledger.rows), sum(bench.ledger.costs)) == (3, 0)


async def test_a_budget_of_zero_spends_nothing(api: AnthropicModel, endpoint: Endpoint) -> None:
    with pytest.raises(OverBudget) as caught:
        await Bench(api, budget=0).send()
    assert (caught.value.spent, caught.value.budget) == (0, 0)
    assert endpoint.state.log == []


async def test_the_attempt_that_could_cross_the_budget_is_not_made(api: AnthropicModel, endpoint: Endpoint) -> None:
    bench = Bench(api, budget=60_000)

    async def spend() -> None:
        for n in itertools.count():
            BRAIN.says(Text("so"), output_tokens=900)
            await bench.send(key=f"call:{n}")

    with pytest.raises(OverBudget) as caught:
        await spend()
    assert caught.value.spent + caught.value.needed > 60_000
    assert billed(endpoint) == sum(bench.ledger.costs) <= 60_000


async def test_a_retry_that_could_cross_the_budget_is_not_made(api: AnthropicModel, endpoint: Endpoint) -> None:
    strike(endpoint, Fault(Kind.HANG, times=3))
    bench = Bench(api, budget=25_000)
    with pytest.raises(OverBudget):
        await bench.send()
    assert len(endpoint.state.log) == 1


async def test_after_a_crash_the_call_in_flight_is_charged_and_numbered(
    api: AnthropicModel, endpoint: Endpoint
) -> None:
    strike(endpoint, Fault(Kind.HANG))
    bench = Bench(api)
    flight = asyncio.create_task(bench.send())
    await asyncio.wait({flight}, timeout=0.3)
    flight.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flight
    assert bench.ledger.outcomes == ["open"]
    await Bench(api, ledger=bench.ledger).send()
    assert [place[2] for place in bench.ledger.rows] == [1, 2]
    assert sum(bench.ledger.costs) >= billed(endpoint)


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_goes_wrong_the_ledger_is_never_below_the_bill_nor_above_the_budget(
    api: AnthropicModel, endpoint: Endpoint, seed: int
) -> None:
    dice = random.Random(seed)
    bench = Bench(api, budget=300_000)
    log, previous = [BRIEF], None
    kinds = [Kind.CUT, Kind.ERROR, Kind.MALFORMED, Kind.STATUS, Kind.STATUS]
    for n in range(25):
        if dice.random() < 0.4:
            strike(endpoint, Fault(dice.choice(kinds), status=dice.choice([500, 529]), after=dice.randrange(5)))
        BRAIN.says(Thinking(tokens=dice.randrange(400)), ToolUse("look", {"n": n}))
        try:
            turn = await bench.send(*log, key=f"call:{n}", previous_message_id=previous)
        except (ModelBusy, OverBudget):
            continue
        previous = turn.message_id
        log += [turn.message, *([answered(turn, words(200))] if turn.tool_calls else [Message(compact(user("go on")))])]
        assert billed(endpoint) <= sum(bench.ledger.costs) <= 300_000


async def test_a_model_that_cannot_do_what_we_ask_is_found_out_at_the_start(api: AnthropicModel) -> None:
    assert await api.unsupported(conversation()) == ""
    assert await api.unsupported(conversation(model=HAIKU, thinking="disabled")) == ""
    assert "thinking" in await api.unsupported(conversation(thinking="disabled"))
    assert "unknown" in await api.unsupported(conversation(model="claude-9"))


@pytest.mark.parametrize("ruler", [2.5, 3.5])
async def test_reservations_hold_under_other_rulers(ruler: float) -> None:
    brain = Queued()
    async with (
        running(Config(brain=brain, ruler=ruler, first_byte=0.0)) as endpoint,
        connected(endpoint) as api,
    ):
        bench = Bench(api)
        log, previous = [BRIEF], None
        for n in range(10):
            brain.says(Thinking(tokens=900), ToolUse("look", {"n": n}), output_tokens=1_000)
            turn = await bench.send(*log, key=f"call:{n}", previous_message_id=previous)
            previous = turn.message_id
            log += [turn.message, answered(turn, words(300))]
        for attempt, settled in bench.ledger.rows.values():
            assert settled is not None
            assert settled.cost <= attempt.reserved
