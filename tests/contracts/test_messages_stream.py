"""Streams, turns that come back, faults as the SDK meets them, and the SDK's own loops."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import pytest
import pytest_asyncio
from anthropic import beta_async_tool
from anthropic.types import Message

from bot.emulators.anthropic import (
    BrainAnswer,
    BrainRequest,
    Config,
    Endpoint,
    Fault,
    Kind,
    Text,
    Thinking,
    ToolUse,
    running,
    scripted,
)
from tests.contracts.messages import LOOK, MARK, Json, Queued, answers, assistant, back, body, sdk, send, user, words

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRAIN = Queued()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config(brain=BRAIN, first_byte=0.0)) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(endpoint: Endpoint) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk(endpoint) as client:
        yield client


@pytest.fixture(autouse=True)
def _fresh(endpoint: Endpoint) -> None:
    endpoint.state.reset()
    BRAIN.waiting.clear()
    BRAIN.heard.clear()


async def streamed(client: anthropic.AsyncAnthropic, request: Json) -> Message:
    async with client.messages.stream(**request) as stream:
        return await stream.get_final_message()


def _says_everything() -> None:
    arguments = {"zeta": 1, "alpha": ["é", {"b": None, "a": "line\nline"}], "long": "x" * 500}
    BRAIN.says(Thinking(tokens=40), Text("I look."), ToolUse("look", arguments))


async def test_a_stream_and_a_document_tell_the_same(client: anthropic.AsyncAnthropic) -> None:
    request = body(user(words(600)), tools=[LOOK], max_tokens=1_000)
    _says_everything()
    document = await send(client, request)
    _says_everything()
    stream = await streamed(client, request)
    same = [b.to_dict(mode="json") for b in stream.content]
    for got, expected in zip(same, (b.to_dict(mode="json") for b in document.content), strict=True):
        got.pop("id", None), expected.pop("id", None)
        assert json.dumps(got) == json.dumps(expected)
    assert stream.usage.to_dict() == document.usage.to_dict()
    assert stream.stop_reason == document.stop_reason == "tool_use"


async def test_events_come_in_order_and_usage_is_whole(client: anthropic.AsyncAnthropic) -> None:
    _says_everything()
    names: list[str] = []
    deltas: list[str] = []
    raw = await client.messages.create(**body(tools=[LOOK], max_tokens=1_000, cache_control=MARK), stream=True)
    async for event in raw:
        names.append(event.type)
        if event.type == "message_start":
            assert (event.message.content, event.message.stop_reason) == ([], None)
            assert event.message.usage.cache_creation is not None
            assert event.message.usage.output_tokens == 1
        if event.type == "content_block_delta":
            deltas.append(event.delta.type)
        if event.type == "message_delta":
            assert event.usage.output_tokens > 40
            assert event.usage.output_tokens_details is not None
            assert event.usage.output_tokens_details.thinking_tokens == 40
    assert (names[0], names[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert deltas[0] == "signature_delta"
    assert "thinking_delta" not in deltas


async def test_thinking_text_is_shown_only_when_asked(client: anthropic.AsyncAnthropic) -> None:
    shown = {"thinking": {"type": "adaptive", "display": "summarized"}}
    for more, expected in ((shown, "because"), ({}, "")):
        BRAIN.says(Thinking("because"), Text("so"))
        message = await streamed(client, body(**more))
        assert message.content[0].type == "thinking"
        assert message.content[0].thinking == expected
        assert message.content[0].signature
        assert message.usage.output_tokens_details is not None
        assert message.usage.output_tokens_details.thinking_tokens == 3


async def test_text_between_tool_calls_comes_back_as_thinking(client: anthropic.AsyncAnthropic) -> None:
    opening = user("go")
    BRAIN.says(Text("first I look"), ToolUse("look", {}))
    first = await streamed(client, body(opening, tools=[LOOK]))
    assert [b.type for b in first.content] == ["text", "tool_use"]
    BRAIN.says(Text("then again"), ToolUse("look", {}))
    second = await streamed(client, body(opening, back(first), answers(first), tools=[LOOK]))
    assert [b.type for b in second.content] == ["thinking", "tool_use"]


async def test_with_thinking_off_nothing_is_thought(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(Thinking(tokens=500), Text("so"))
    message = await streamed(client, body(thinking={"type": "between_tools"}))
    assert [b.type for b in message.content] == ["text"]
    assert message.usage.output_tokens == 1


TURNS: dict[str, Any] = {
    "to_dict": lambda m: [b.to_dict(mode="json") for b in m.content],
    "to_json": lambda m: [json.loads(b.to_json()) for b in m.content],
    "to_param": lambda m: m.to_param()["content"],
}


@pytest.mark.parametrize("how", TURNS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_that_comes_back_as_it_was_is_no_edit(
    client: anthropic.AsyncAnthropic, how: str, *, stream: bool
) -> None:
    log = [user(words(600))]
    previous: str | None = None
    for _ in range(3):
        _says_everything()
        request = body(
            *log,
            tools=[LOOK],
            max_tokens=1_000,
            cache_control=MARK,
            diagnostics={"previous_message_id": previous},
        )
        message = await (streamed(client, request) if stream else send(client, request))
        assert message.diagnostics is None
        previous = message.id
        log += [{"role": "assistant", "content": TURNS[how](message)}, answers(message)]


def _dumped(message: Message) -> list[Any]:
    return [b.model_dump() for b in message.content]


def _sorted(message: Message) -> list[Any]:
    return json.loads(json.dumps([b.to_dict(mode="json") for b in message.content], sort_keys=True))  # type: ignore[no-any-return]


@pytest.mark.parametrize("how", [_dumped, _sorted])
async def test_other_ways_to_store_a_turn_are_edits(client: anthropic.AsyncAnthropic, how: Any) -> None:
    opening = user("go")
    _says_everything()
    first = await send(client, body(opening, tools=[LOOK], max_tokens=1_000))
    BRAIN.says(Thinking("hm"), ToolUse("look", {}))
    second = await send(client, body(opening, back(first), answers(first), tools=[LOOK]))
    changed = {"role": "assistant", "content": how(first)}
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(opening, changed, answers(first), back(second), answers(second), tools=[LOOK]))


async def test_a_cap_inside_a_call_leaves_it_unfinished(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(Text("ok"), ToolUse("look", {"text": "x" * 900}))
    message = await streamed(client, body(tools=[LOOK], max_tokens=60))
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 60)
    assert message.content[-1].type == "tool_use"
    assert message.content[-1].input != {"text": "x" * 900}


async def test_thinking_can_eat_the_cap(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(Thinking(tokens=500), Text("never said"))
    message = await streamed(client, body(max_tokens=100))
    assert (message.content, message.stop_reason, message.usage.output_tokens) == ([], "max_tokens", 100)


async def test_a_stop_sequence_ends_the_answer_before_it(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(Text("one END two"), ToolUse("look", {}))
    message = await send(client, body(tools=[LOOK], stop_sequences=["two", "END"]))
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "END")
    assert [b.to_dict() for b in message.content] == [{"type": "text", "text": "one "}]
    assert message.usage.output_tokens == 2
    BRAIN.says(Text("END"))
    assert (await send(client, body(stop_sequences=["END"]))).content == []


async def test_a_paused_turn_is_gone_on_with_when_it_comes_back_as_it_was(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(Text("wait"), stop_reason="pause_turn")
    paused = await send(client, body())
    assert paused.stop_reason == "pause_turn"
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(user("hello"), assistant("wait!")))
    assert (await send(client, body(user("hello"), back(paused)))).stop_reason == "end_turn"


async def test_a_refusal_names_its_category(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(Text("I can't help with that."), stop_reason="refusal", refusal="cyber")
    message = await streamed(client, body())
    assert message.stop_reason == "refusal"
    assert message.stop_details is not None
    assert message.stop_details.category == "cyber"


async def test_a_brain_without_an_answer_is_a_server_error(client: anthropic.AsyncAnthropic) -> None:
    async with running(Config(brain=scripted([[{"type": "text", "text": "only"}]]), first_byte=0.0)) as short:
        async with sdk(short) as impatient:
            first = await send(impatient, body())
            with pytest.raises(anthropic.InternalServerError):
                await send(impatient, body(user("hello"), back(first), user("and then?")))
        assert len(short.state.bill.charges) == 1


STATUSES: list[tuple[int, type[anthropic.APIStatusError], int]] = [
    (400, anthropic.BadRequestError, 1),
    (401, anthropic.AuthenticationError, 1),
    (402, anthropic.PaymentRequiredError, 1),
    (403, anthropic.PermissionDeniedError, 1),
    (404, anthropic.NotFoundError, 1),
    (408, anthropic.RequestTimeoutError, 3),
    (409, anthropic.ConflictError, 3),
    (413, anthropic.ContentTooLargeError, 1),
    (429, anthropic.RateLimitError, 3),
    (500, anthropic.InternalServerError, 3),
    (503, anthropic.ServiceUnavailableError, 3),
    (504, anthropic.GatewayTimeoutError, 3),
    (529, anthropic.OverloadedError, 3),
]


@pytest.mark.parametrize(("status", "error", "attempts"), STATUSES, ids=[str(s[0]) for s in STATUSES])
async def test_the_sdk_retries_what_its_table_says_and_every_attempt_is_seen(
    endpoint: Endpoint, status: int, error: type[anthropic.APIStatusError], attempts: int
) -> None:
    endpoint.state.faults.add(Fault(Kind.STATUS, status=status, times=3, headers={"retry-after-ms": "1"}))
    async with sdk(endpoint, max_retries=2) as retrying:
        with pytest.raises(error):
            await send(retrying, body())
    assert len(endpoint.state.log) == attempts
    assert [e.headers["x-stainless-retry-count"] for e in endpoint.state.log] == [str(n) for n in range(attempts)]
    assert endpoint.state.bill.charges == []


async def test_a_server_can_forbid_a_retry(endpoint: Endpoint) -> None:
    endpoint.state.faults.add(Fault(Kind.STATUS, status=500, times=3, headers={"x-should-retry": "false"}))
    async with sdk(endpoint, max_retries=2) as retrying:
        with pytest.raises(anthropic.InternalServerError):
            await send(retrying, body())
    assert len(endpoint.state.log) == 1


async def test_one_time_out_of_a_plain_call_is_three_billed_requests(endpoint: Endpoint) -> None:
    endpoint.state.faults.add(Fault(Kind.HANG, times=3))
    async with sdk(endpoint, max_retries=2, timeout=0.2) as impatient:
        with pytest.raises(anthropic.APITimeoutError):
            await impatient.messages.create(**body(user(words(600))))
    assert [c.fate for c in endpoint.state.bill.charges] == ["hung"] * 3
    assert endpoint.state.bill.document()["totals"]["usage"]["input"] == 3 * 603


async def test_an_error_inside_a_stream_is_a_plain_status_error_that_nobody_retries(endpoint: Endpoint) -> None:
    endpoint.state.faults.add(Fault(Kind.ERROR, after=2))
    async with sdk(endpoint, max_retries=2) as retrying:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await streamed(retrying, body())
    assert not isinstance(caught.value, anthropic.OverloadedError)
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    assert len(endpoint.state.log) == 1
    assert endpoint.state.bill.charges[0].fate == "error"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(Kind.CUT, after=2), httpx2.RemoteProtocolError),
        (Fault(Kind.MALFORMED, after=2), json.JSONDecodeError),
        (Fault(Kind.DISORDER), (IndexError, RuntimeError)),
    ],
    ids=["cut", "malformed", "disorder"],
)
async def test_broken_streams_reach_the_client_broken(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint, fault: Fault, error: Any
) -> None:
    endpoint.state.faults.add(fault)
    with pytest.raises(error):
        await streamed(client, body())


async def test_a_slow_stream_arrives_whole(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    endpoint.state.faults.add(Fault(Kind.DRIP, seconds=0.01))
    assert (await streamed(client, body())).content[0].type == "text"


async def test_a_late_first_byte_arrives(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    endpoint.state.faults.add(Fault(Kind.DELAY, seconds=0.05))
    assert (await send(client, body())).stop_reason == "end_turn"


async def test_a_fault_can_wait_for_its_turn(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    endpoint.state.faults.add(Fault(Kind.STATUS, status=500, skip=1))
    await send(client, body())
    with pytest.raises(anthropic.InternalServerError):
        await send(client, body())
    await send(client, body())


async def test_answers_carry_request_ids_and_limits(client: anthropic.AsyncAnthropic) -> None:
    raw = await client.messages.with_raw_response.create(**body())
    assert raw.headers["request-id"].startswith("req_")
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        for field in ("limit", "remaining", "reset"):
            assert raw.headers[f"anthropic-ratelimit-{kind}-{field}"]
    assert "retry-after" not in raw.headers


async def test_a_brain_hears_the_request_parsed(client: anthropic.AsyncAnthropic) -> None:
    BRAIN.says(ToolUse("look", {"a": 1}))
    first = await send(client, body(user("go"), tools=[LOOK], system="be brief"))
    await send(client, body(user("go"), back(first), answers(first, "a tree"), tools=[LOOK], system="be brief"))
    heard = BRAIN.heard[-1]
    assert (heard.system, heard.first, heard.turn, heard.tools[0].name) == ("be brief", "go", 1, "look")
    assert [r.text for r in heard.last.results] == ["a tree"]
    assert heard.messages[1].calls[0].input == {"a": 1}


class Weather:
    """Asks for the weather once, then tells it."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        if request.turn == 0:
            return BrainAnswer((Thinking("hm"), ToolUse("weather", {"city": "Bern"})))
        return BrainAnswer((Text(request.last.results[0].text),))


@beta_async_tool
async def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


async def test_the_sdks_tool_runner_completes_without_threads_and_not_with_them() -> None:
    async with running(Config(brain=Weather(), first_byte=0.0)) as endpoint, sdk(endpoint) as client:
        request: Any = {**body(user("Bern?")), "tools": [weather]}
        runner = client.beta.messages.tool_runner(**request, thread=False)
        last = await runner.until_done()
        assert last.content[0].type == "text"
        assert last.content[0].text == "sun in Bern"
        assert len(endpoint.state.bill.charges) == 2
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.beta.messages.tool_runner(**request).until_done()
        assert "thread" in str(caught.value.api_message)
