"""What the Messages API reads, writes and bills: golden accounting, through the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import anthropic
import httpx2
import pytest
import pytest_asyncio
from anthropic.types import Message

from bot.domain.spending import Usage
from bot.emulators.anthropic import BrainAnswer, BrainRequest, Config, Endpoint, Fault, Kind, Text, running
from bot.providers.llm import pricing
from bot.providers.llm.anthropic import usage_of
from tests.contracts.messages import (
    FETCH,
    HAIKU,
    HOUR,
    LOOK,
    MARK,
    OPUS,
    Json,
    Queued,
    assistant,
    body,
    call,
    result,
    sdk,
    send,
    text,
    user,
    words,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRAIN = Queued()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config(brain=BRAIN, first_byte=0.0, more_keys=("second-key",))) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(endpoint: Endpoint) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk(endpoint) as client:
        yield client


@pytest.fixture(autouse=True)
def _fresh(endpoint: Endpoint) -> None:
    endpoint.state.reset()
    BRAIN.waiting.clear()


def read(message: Message) -> int:
    return message.usage.cache_read_input_tokens or 0


def written(message: Message) -> int:
    return message.usage.cache_creation_input_tokens or 0


async def test_automatic_caching_reads_what_the_request_before_wrote(client: anthropic.AsyncAnthropic) -> None:
    log = [user(words(600))]
    seen = []
    for _ in range(3):
        message = await send(client, body(*log, system=words(400), cache_control=MARK))
        seen.append((read(message), written(message), message.usage.input_tokens))
        log += [assistant(words(50)), user(words(70))]
    assert seen == [(0, 1000, 3), (1000, 120, 3), (1120, 120, 3)]


async def test_mixed_lifetimes_split_the_written_tokens(client: anthropic.AsyncAnthropic) -> None:
    def request(*tail: str) -> Json:
        system = [text(words(600), cache_control=HOUR), text(words(200), cache_control=MARK)]
        return body(user(text(words(300), cache_control=MARK), *tail), system=system)

    first = await send(client, request("tail"))
    split = first.usage.cache_creation
    assert split is not None
    assert (split.ephemeral_1h_input_tokens, split.ephemeral_5m_input_tokens) == (600, 500)
    assert (read(first), written(first), first.usage.input_tokens) == (0, 1100, 5)
    second = await send(client, request("other tail"))
    assert (read(second), written(second), second.usage.input_tokens) == (1100, 0, 7)


async def test_after_five_minutes_only_the_hour_long_entry_is_left(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    request = body(user(words(300)), system=[text(words(600), cache_control=HOUR)], cache_control=MARK)
    await send(client, request)
    endpoint.state.clock.advance(1_800)
    message = await send(client, request)
    assert (read(message), written(message)) == (600, 300)


@pytest.mark.parametrize(("added", "hit"), [(18, True), (19, True), (20, False)])
async def test_a_breakpoint_looks_back_over_twenty_positions(
    client: anthropic.AsyncAnthropic, added: int, *, hit: bool
) -> None:
    first = text(words(600))
    await send(client, body(user({**first, "cache_control": MARK})))
    blocks = [text(f"b{i}") for i in range(added)]
    message = await send(client, body(user(first, *blocks), cache_control=MARK))
    assert read(message) == (600 if hit else 0)


async def test_a_run_of_calls_and_a_run_of_results_are_one_position_each(client: anthropic.AsyncAnthropic) -> None:
    brief = user(words(600))
    await send(client, body(brief, cache_control=MARK))
    ids = [f"t{i}" for i in range(15)]
    rounds = [assistant(*(call(i) for i in ids)), user(*(result(i) for i in ids))]
    message = await send(client, body(brief, *rounds, cache_control=MARK))
    assert read(message) == 600


async def test_an_entry_lives_three_hundred_seconds(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    request = body(user(words(600)), cache_control=MARK)
    await send(client, request)
    endpoint.state.clock.advance(299)
    assert read(await send(client, request)) == 600
    endpoint.state.clock.advance(301)
    assert read(await send(client, request)) == 0


async def test_reads_refresh_the_entry(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    request = body(user(words(600)), cache_control=MARK)
    await send(client, request)
    for _ in range(5):
        endpoint.state.clock.advance(250)
        assert read(await send(client, request)) == 600


async def test_a_read_refreshes_the_marked_entries_before_it_and_no_others(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    marked, middle, tail = text(words(600), cache_control=MARK), text(words(50)), text(words(50))
    await send(client, body(user(marked)))
    await send(client, body(user(marked, {**middle, "cache_control": MARK})))
    await send(client, body(user(marked, middle, {**tail, "cache_control": MARK})))
    endpoint.state.clock.advance(250)
    await send(client, body(user(marked, middle, {**tail, "cache_control": MARK})))
    endpoint.state.clock.advance(100)
    assert read(await send(client, body(user(marked, text("x"))))) == 600
    unmarked = {**middle, "cache_control": MARK}
    assert read(await send(client, body(user(text(words(600)), unmarked)))) == 600


async def test_lifetime_counts_from_the_start_of_the_request(endpoint: Endpoint) -> None:
    clock: list[Callable[[float], None]] = []

    @dataclass(frozen=True, slots=True)
    class Slow:
        def answer(self, request: BrainRequest) -> BrainAnswer:
            clock[0](100)
            return BrainAnswer((Text("done"),))

    async with running(Config(brain=Slow(), first_byte=0.0)) as slow, sdk(slow) as client:
        clock.append(slow.state.clock.advance)
        request = body(user(words(600)), cache_control=MARK)
        await send(client, request)
        slow.state.clock.advance(199)
        assert read(await send(client, request)) == 600
        slow.state.clock.advance(201)
        assert read(await send(client, request)) == 0


@pytest.mark.parametrize(("model", "least"), [("claude-sonnet-5-5", 512), (OPUS, 512), (HAIKU, 4096)])
async def test_a_prefix_below_the_minimum_is_billed_in_full_without_an_error(
    client: anthropic.AsyncAnthropic, model: str, least: int
) -> None:
    small = await send(client, body(user(words(least - 1)), model=model, cache_control=MARK))
    assert (read(small), written(small), small.usage.input_tokens) == (0, 0, least + 2)
    enough = await send(client, body(user(words(least)), model=model, cache_control=MARK))
    assert (written(enough), enough.usage.input_tokens) == (least, 3)


async def test_parallel_cold_requests_all_write_and_a_warm_up_saves_it() -> None:
    async with running(Config(brain=BRAIN, first_byte=0.2)) as endpoint, sdk(endpoint) as client:
        shared = [text(words(900), cache_control=MARK)]

        async def branch(n: int) -> Message:
            return await send(client, body(user(f"branch {n}"), system=shared))

        cold = await asyncio.gather(*(branch(n) for n in range(4)))
        assert [written(m) for m in cold] == [900] * 4
        endpoint.state.reset()
        warm = await send(client, body(user("."), system=shared, max_tokens=0))
        assert (warm.content, warm.stop_reason, warm.usage.output_tokens, written(warm)) == ([], "max_tokens", 0, 900)
        branches = await asyncio.gather(*(branch(n) for n in range(4)))
        assert [read(m) for m in branches] == [900] * 4


async def test_keep_alive_reads_once_and_refreshes(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    request = body(user(words(600)), cache_control=MARK)
    await send(client, request)
    endpoint.state.clock.advance(270)
    kept = await send(client, {**request, "max_tokens": 0})
    assert (read(kept), written(kept)) == (600, 0)
    endpoint.state.clock.advance(270)
    assert read(await send(client, request)) == 600


async def test_a_request_refused_before_its_first_byte_writes_nothing(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    request = body(user(words(600)), cache_control=MARK)
    endpoint.state.faults.add(Fault(Kind.STATUS, status=529))
    with pytest.raises(anthropic.OverloadedError):
        await send(client, request)
    assert endpoint.state.bill.charges == []
    assert read(await send(client, request)) == 0


async def test_a_stream_that_dies_has_written_and_is_billed_for_its_input(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    endpoint.state.faults.add(Fault(Kind.CUT, after=1))
    with pytest.raises(httpx2.RemoteProtocolError):
        async with client.messages.stream(**body(user(words(600)), cache_control=MARK)) as stream:
            await stream.get_final_message()
    assert endpoint.state.bill.document()["totals"]["usage"]["write_5m"] == 600
    assert read(await send(client, body(user(words(600)), cache_control=MARK))) == 600


async def test_each_key_has_a_cache_of_its_own(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    request = body(user(words(600)), cache_control=MARK)
    await send(client, request)
    async with sdk(endpoint, api_key="second-key") as other:
        assert read(await send(other, request)) == 0


TOOL, SYSTEM, BRIEF, TURN = 90, 600, 300, 100
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def _matrix_request(**more: Any) -> Json:
    tool = {**LOOK, "description": words(800), "cache_control": MARK}
    messages = [
        user(text(words(BRIEF), cache_control=MARK)),
        assistant(words(TURN)),
        user(words(TURN)),
    ]
    return body(
        *more.pop("messages", messages),
        tools=more.pop("tools", [tool]),
        system=more.pop("system", [text(words(SYSTEM), cache_control=MARK)]),
        cache_control=more.pop("cache_control", MARK),
        **more,
    )


def _changed(name: str) -> Json:
    base = _matrix_request()
    brief, turn, last = base["messages"]
    tool = base["tools"][0]
    unmarked_system = [text(words(SYSTEM), cache_control=HOUR)]
    changes: dict[str, Json] = {
        "nothing": {},
        "model": {"model": OPUS},
        "tool added": {"tools": [tool, FETCH]},
        "tool edited": {"tools": [{**tool, "description": words(800, "b")}]},
        "tool renamed": {"tools": [{**tool, "name": "see"}]},
        "system text": {"system": [text(words(SYSTEM, "b"), cache_control=MARK)]},
        "output format": {
            "output_config": {
                "format": {
                    "type": "json_schema",
                    "schema": {"type": "object", "properties": {}, "additionalProperties": False},
                }
            }
        },
        "tool choice": {"tool_choice": {"type": "none"}},
        "image present": {"messages": [brief, turn, {**last, "content": [*last["content"], IMAGE]}]},
        "thinking type": {"thinking": {"type": "between_tools"}},
        "thinking display": {"thinking": {"type": "adaptive", "display": "summarized"}},
        "effort": {"output_config": {"effort": "low"}},
        "default effort spelled out": {"output_config": {"effort": "high"}},
        "default thinking spelled out": {"thinking": {"type": "adaptive", "display": "omitted"}},
        "earlier message edited": {"messages": [brief, assistant(words(TURN, "b")), last]},
        "brief edited": {"messages": [user(text(words(BRIEF, "b"), cache_control=MARK)), turn, last]},
        "marker removed": {"messages": [user(words(BRIEF)), turn, last]},
        "marker lifetimes": {"tools": [{**tool, "cache_control": HOUR}], "system": unmarked_system},
        "max_tokens": {"max_tokens": 7},
        "metadata": {"metadata": {"user_id": "someone"}},
        "diagnostics": {"diagnostics": {"previous_message_id": None}},
        "deferred tool": {"tools": [tool, {**FETCH, "defer_loading": True}]},
    }
    return _matrix_request(**changes[name])


MATRIX = [
    ("nothing", "all"),
    ("model", "nothing"),
    ("tool added", "tools but the new"),
    ("tool edited", "nothing"),
    ("tool renamed", "nothing"),
    ("system text", "tools"),
    ("output format", "tools"),
    ("tool choice", "system"),
    ("image present", "system"),
    ("thinking type", "by effort level"),
    ("thinking display", "by effort level"),
    ("effort", "by effort level"),
    ("default effort spelled out", "all"),
    ("default thinking spelled out", "all"),
    ("earlier message edited", "brief"),
    ("brief edited", "system"),
    ("marker removed", "all"),
    ("marker lifetimes", "all"),
    ("max_tokens", "all"),
    ("metadata", "all"),
    ("diagnostics", "all"),
    ("deferred tool", "all"),
]


@pytest.mark.parametrize(("change", "kept"), MATRIX, ids=[m[0] for m in MATRIX])
@pytest.mark.parametrize("level", ["all", "messages"])
async def test_what_a_change_between_requests_keeps(change: str, kept: str, level: Any) -> None:
    brain = Queued()
    async with running(Config(brain=brain, first_byte=0.0, effort_level=level)) as endpoint, sdk(endpoint) as client:
        first = await send(client, _matrix_request())
        total = written(first)
        tools = total - SYSTEM - BRIEF - 2 * TURN
        if change == "output format":
            brain.says(Text("{}"))
        message = await send(client, _changed(change))
    expected = {
        "all": total,
        "nothing": 0,
        "tools but the new": tools,
        "tools": tools,
        "system": tools + SYSTEM,
        "brief": tools + SYSTEM + BRIEF,
        "by effort level": tools + SYSTEM if level == "messages" else 0,
    }[kept]
    assert read(message) == expected


async def test_fast_mode_keeps_the_tools_and_costs_double(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    await send(client, _matrix_request(model=OPUS))
    fast = await send(client, _matrix_request(model=OPUS, speed="fast"))
    assert 0 < read(fast) < 512 + 400
    assert fast.usage.speed == "fast"
    first, second = endpoint.state.bill.charges
    assert second.model.rates_for(100, "fast").input == 2 * first.model.rates_for(100, "standard").input


async def _diagnosed(client: anthropic.AsyncAnthropic, first: Json, second: Json) -> str | None:
    before = await send(client, {**first, "diagnostics": {"previous_message_id": None}})
    assert before.diagnostics is None
    after = await send(client, {**second, "diagnostics": {"previous_message_id": before.id}})
    if after.diagnostics is None:
        return None
    assert after.diagnostics.cache_miss_reason is not None
    return after.diagnostics.cache_miss_reason.type


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("nothing", None),
        ("model", "model_changed"),
        ("system text", "system_changed"),
        ("tool edited", "tools_changed"),
        ("earlier message edited", "messages_changed"),
        ("effort", "unavailable"),
        ("tool choice", "unavailable"),
    ],
)
async def test_the_service_names_why_a_prefix_was_not_reused(
    client: anthropic.AsyncAnthropic, change: str, reason: str | None
) -> None:
    assert await _diagnosed(client, _matrix_request(), _changed(change)) == reason


async def test_an_unknown_previous_message_is_said_to_be_unknown(client: anthropic.AsyncAnthropic) -> None:
    message = await send(client, body(diagnostics={"previous_message_id": "msg_nowhere"}))
    assert message.diagnostics is not None
    assert message.diagnostics.cache_miss_reason is not None
    assert message.diagnostics.cache_miss_reason.type == "previous_message_not_found"


@dataclass(frozen=True, slots=True)
class Layout:
    """Conversations of `calls` calls each, over a prefix, a brief and a growth per call, in thousands of tokens."""

    prefix: float
    brief: float
    growth: float
    conversations: int = 1
    calls: int = 25
    anchored: bool = True


LAYOUTS = {
    "A": (Layout(8, 4, 1.5), 0.936, 0.320, 0.250),
    "A2": (Layout(18, 7.2, 0.4), 0.954, 0.290, 0.219),
    "A5": (Layout(8, 4, 0.6), 0.945, 0.217, 0.171),
    "B": (Layout(8, 4, 1.5, conversations=5, calls=5), 0.845, 0.268, 0.237),
    "B no anchor": (Layout(8, 4, 1.5, conversations=5, calls=5, anchored=False), 0.760, 0.342, 0.314),
    "B7": (Layout(8, 3, 0.8, conversations=5, calls=5), 0.876, 0.213, 0.185),
}


def _spoken(layout: Layout, conversation: int) -> list[Json]:
    """All messages of one conversation; call k sends the first 2k+1."""
    log = [user(text(words(round(1000 * layout.brief), chr(98 + conversation)), cache_control=MARK))]
    if not layout.anchored:
        del log[0]["content"][0]["cache_control"]
    for _ in range(layout.calls - 1):
        log += [assistant(words(200)), user(words(round(1000 * layout.growth) - 200))]
    return log


@pytest.mark.parametrize("name", LAYOUTS)
async def test_the_bill_of_a_layout_is_within_a_percent_of_its_formula(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint, name: str
) -> None:
    layout, hit, dear, cheap = LAYOUTS[name]
    output = 6_000 // (layout.calls * layout.conversations)
    mark = {"cache_control": MARK} if layout.anchored else {}
    usages = []
    for conversation in range(layout.conversations):
        log = _spoken(layout, conversation)
        for k in range(layout.calls):
            BRAIN.says(Text("go on"), output_tokens=output)
            system = [text(words(round(1000 * layout.prefix)), **mark)]
            request = body(*log[: 2 * k + 1], system=system, cache_control=MARK, max_tokens=4_000)
            usages.append(usage_of((await send(client, request)).usage))
    totals = endpoint.state.bill.document()["totals"]
    assert totals["hit_rate"] == pytest.approx(hit, abs=0.01)
    assert totals["micro_dollars"] / 1e6 == pytest.approx(dear, rel=0.01)
    assert _dollars(usages, pricing.PriceBook.load()) == pytest.approx(totals["micro_dollars"] / 1e6, abs=1e-9)
    assert _dollars(usages, pricing.PriceBook.load().on(date(2026, 10, 7))) == pytest.approx(cheap, rel=0.01)


def _dollars(usages: list[Usage], book: pricing.PriceBook) -> float:
    return sum(pricing.cost(u, book.of("claude-sonnet-5-5")) for u in usages) / 1e6


@pytest.mark.parametrize(("ruler", "tokens"), [(2.5, 120), (3.0, 100), (3.5, 86)])
async def test_the_ruler_can_be_changed(ruler: float, tokens: int) -> None:
    async with running(Config(ruler=ruler, first_byte=0.0)) as endpoint, sdk(endpoint) as client:
        message = await send(client, body(user(words(100))))
    assert message.usage.input_tokens == tokens + 3
