"""What the Messages API refuses, rule by rule, through the SDK: each rule with a request it stops and one it lets pass."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
import pytest_asyncio

from bot.emulators.anthropic import Config, Endpoint, Text, Thinking, ToolUse, running
from bot.emulators.anthropic.rules.table import RULES
from tests.contracts.messages import (
    FETCH,
    HAIKU,
    HOUR,
    LOOK,
    MARK,
    OPUS,
    SONNET,
    Json,
    Queued,
    answers,
    assistant,
    back,
    body,
    call,
    count,
    result,
    sdk,
    send,
    text,
    user,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRAIN = Queued()
CONTROLS = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}


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


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**OPEN, "additionalProperties": False}


def schema(document: Json) -> Json:
    return {"format": {"type": "json_schema", "schema": document}}


def tools(*given: Json) -> Json:
    return {"tools": list(given)}


ROUND = (user("go"), assistant(call("t1")), user(result("t1")))
FIVE = [text(f"block {i}", cache_control=MARK) for i in range(5)]
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
CITATION = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
NOTE: Json = {"role": "system", "content": "c"}
BASH = {"type": "bash_20250124", "name": "bash"}
DEFERRED = {**FETCH, "defer_loading": True}

CASES: list[tuple[str, Json, Json]] = [
    ("V1", body(max_tokens=None), body()),
    ("V1", body(model=None), body()),
    ("V2", body(max_tokens=128_001), body(max_tokens=128_000)),
    ("V2", body(max_tokens=-1), body(max_tokens=1)),
    ("V2", body(max_tokens="9"), body(max_tokens=9)),
    ("V3", body(max_tokens=0, stream=True), body(max_tokens=0)),
    ("V3", body(max_tokens=0, output_config=schema(CLOSED)), body(max_tokens=0, output_config={"effort": "low"})),
    (
        "V3",
        body(max_tokens=0, model=HAIKU, tool_choice={"type": "any"}, **tools(LOOK)),
        body(model=HAIKU, tool_choice={"type": "any"}, **tools(LOOK)),
    ),
    ("V4", body(temperature=1.0), body()),
    ("V4", body(top_p=1.0), body()),
    ("V4", body(top_k=0), body()),
    ("V5", body(model=OPUS, thinking={"type": "disabled"}), body(model=OPUS, thinking={"type": "adaptive"})),
    ("V5", body(model=OPUS, thinking={"type": "between_tools"}), body(thinking={"type": "between_tools"})),
    ("V5", body(thinking={"type": "disabled"}), body(model=HAIKU, thinking={"type": "disabled"})),
    ("V5", body(thinking={"type": "enabled", "budget_tokens": 2000}), body(thinking={"type": "adaptive"})),
    (
        "V5",
        body(thinking={"type": "between_tools"}, output_config={"effort": "xhigh"}),
        body(thinking={"type": "between_tools"}, output_config={"effort": "medium"}),
    ),
    (
        "V5",
        body(model=HAIKU, thinking={"type": "disabled"}, output_config={"effort": "max"}),
        body(model=HAIKU, thinking={"type": "adaptive"}, output_config={"effort": "max"}),
    ),
    ("V5", body(output_config={"effort": "extreme"}), body(output_config={"effort": "xhigh"})),
    (
        "V6",
        body(tool_choice={"type": "any"}, **tools(LOOK)),
        body(tool_choice={"type": "auto"}, **tools(LOOK)),
    ),
    (
        "V6",
        body(tool_choice={"type": "tool", "name": "look"}, model=OPUS, **tools(LOOK)),
        body(tool_choice={"type": "tool", "name": "look"}, model=HAIKU, **tools(LOOK)),
    ),
    ("V7", body(tool_choice={"type": "auto"}), body(tool_choice={"type": "auto"}, **tools(LOOK))),
    ("V7", body(**tools(LOOK, LOOK)), body(**tools(LOOK, FETCH))),
    ("V7", body(**tools({**LOOK, "name": "a b"})), body(**tools({**LOOK, "name": "a-b_1"}))),
    ("V7", body(**tools({**LOOK, "input_schema": {"type": "string"}})), body(**tools(LOOK))),
    ("V8", body(assistant("hi"), user("x")), body(user("x"), assistant("hi"), user("y"))),
    ("V8", body({"role": "tool", "content": "x"}), body(user("x"))),
    ("V9", body({"role": "user"}), body(user("a"), user("b"))),
    (
        "V10",
        body(user("a"), assistant("b"), {"role": "system", "content": "c"}, user("d")),
        body(user("a"), {"role": "system", "content": "c"}, assistant("b"), user("d")),
    ),
    ("V10", body({"role": "system", "content": "c"}, user("a")), body(user("a"), {"role": "system", "content": "c"})),
    ("V11", body(user("a"), assistant("The answer is")), body(user("a"), assistant("It is"), user("go on"))),
    ("V12", body(user("")), body(user("x"))),
    ("V12", body(user(" \n")), body(user(" x "))),
    ("V12", body({"role": "user", "content": []}), body(user("x"))),
    ("V12", body(user("go"), assistant(call("t1")), user(result("t1", [text("")]))), body(*ROUND)),
    ("V13", body(user("go"), assistant(call("t1")), user("well?")), body(*ROUND)),
    (
        "V13",
        body(user("go"), assistant(call("t1"), call("t2")), user(result("t1"))),
        body(user("go"), assistant(call("t1"), call("t2")), user(result("t1"), result("t2"))),
    ),
    ("V14", body(user(result("t9"))), body(*ROUND)),
    ("V14", body(*ROUND, assistant("so"), user(result("t1"))), body(*ROUND, assistant("so"), user("and?"))),
    (
        "V15",
        body(user("go"), assistant(call("t1")), user("first", result("t1"))),
        body(user("go"), assistant(call("t1")), user(result("t1"), "then")),
    ),
    ("V15", body(*ROUND, *ROUND[1:]), body(*ROUND, assistant(call("t2")), user(result("t2")))),
    ("V16", body(user("a"), assistant(DOCUMENT), user("b")), body(user(DOCUMENT, "read it"))),
    ("V16", body(user(text("a", citations=[CITATION]))), body(user(text("a", citations=[])))),
    ("V17", body(user(*FIVE)), body(user(*FIVE[:4]))),
    (
        "V18",
        body(user(text("a", cache_control=MARK), text("b", cache_control=HOUR))),
        body(user(text("a", cache_control=HOUR), text("b", cache_control=MARK))),
    ),
    (
        "V18",
        body(system=[text("s", cache_control=MARK)], cache_control=HOUR),
        body(system=[text("s", cache_control=HOUR)], cache_control=MARK),
    ),
    (
        "V19",
        body(**tools({**DEFERRED, "cache_control": MARK})),
        body(**tools(DEFERRED, {**LOOK, "cache_control": MARK})),
    ),
    (
        "V19",
        body(user("go"), assistant(call("t1")), user(result("t1", [text("x", cache_control=MARK)]))),
        body(user("go"), assistant(call("t1")), user(result("t1", [text("x")], cache_control=MARK))),
    ),
    ("V19", body(user(text("", cache_control=MARK))), body(user(text("x", cache_control=MARK)))),
    (
        "V20",
        body(user(text("a", cache_control=MARK)), cache_control=HOUR),
        body(user(text("a", cache_control=MARK)), cache_control=MARK),
    ),
    ("V21", body(user(*FIVE[:4], "end"), cache_control=MARK), body(user(*FIVE[:3], "end"), cache_control=MARK)),
    ("V22", body(user(text("a", cache_control={"type": "durable"}))), body(user(text("a", cache_control=MARK)))),
    ("V22", body(cache_control={"type": "ephemeral", "ttl": "2h"}), body(cache_control=HOUR)),
    (
        "V26",
        body(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}),
        body(thinking={"type": "adaptive"}),
    ),
    ("K1", body(thread={"type": "create"}), body()),
    ("K1", body(context_management={"edits": []}), body()),
    ("K4", body(output_config=schema(OPEN)), body(output_config=schema(CLOSED))),
    ("K5", body(user({"type": "text", "text": "a", "colour": "red"})), body(user("a"))),
    ("K5", body(user({"type": "hologram"})), body(user("a"))),
    ("K6", body(user(call("t1"))), body(*ROUND)),
    ("K6", body(user("go", call("t1")), assistant(result("t1")), user("x")), body(*ROUND)),
    ("K7", body(speed="fast"), body(speed="fast", model=OPUS)),
    ("K2", body(tools=["look"]), body(tools=[])),
    ("K2", body(**tools({**BASH, "name": 1})), body(**tools(BASH, LOOK))),
    ("K4", body(output_config={"format": {"type": "grammar", "schema": CLOSED}}), body()),
    ("K4", body(output_config=schema({**CLOSED, "properties": {"a": {"type": "integer", "minimum": 1}}})), body()),
    ("K5", body({"content": "x"}), body(user("x"))),
    ("K5", body({"role": "user", "content": 5}), body({"role": "user", "content": "5"})),
    ("K5", body({"role": "user", "content": ["x"]}), body(user("x"))),
    ("K5", body({"role": "user", "content": "x", "name": "bob"}), body(user("x"))),
    ("V5", body(thinking={"type": "between_tools", "display": "omitted"}), body(thinking={"type": "between_tools"})),
    ("V8", body(messages=[]), body()),
    ("V8", body(user("x"), {"role": "tool", "content": "y"}), body(user("x"), user("y"))),
    ("V10", body(user("a"), {"role": "system", "content": [IMAGE]}), body(user("a"), NOTE)),
    ("V10", body(user("a"), assistant("b"), NOTE), body(user("a"), NOTE, assistant("b"), user("c"))),
    ("V10", body(user("a"), NOTE, user("b")), body(user("a"), user("b"), NOTE, NOTE)),
    (
        "V15",
        body(user("go"), assistant(call("t1")), user(result("t1"), result("t1"))),
        body(user("go"), assistant(call("t1"), call("t2")), user(result("t2"), result("t1"))),
    ),
    ("K2", body(thinking={}), body(thinking={"type": "adaptive"})),
    ("K2", body(thinking={"type": ["adaptive"]}), body()),
    ("K2", body(stop_sequences=[" "]), body(stop_sequences=["END"])),
    ("K2", body(stop_sequences="END"), body()),
    ("K2", body(metadata={"user": "u"}), body(metadata={"user_id": "u"})),
    ("K2", body(service_tier="cheap"), body(service_tier="auto")),
    ("K2", body(speed="slow"), body(speed="standard")),
    ("K2", body(diagnostics={"previous_message_id": []}), body(diagnostics={"previous_message_id": None})),
    ("K2", body(output_config={"budget": 1}), body(output_config={"effort": None})),
    ("K2", body(tool_choice={"type": "auto", "colour": 1}, **tools(LOOK)), body(**tools(LOOK))),
    ("K2", body(**tools({**LOOK, "colour": "red"})), body(**tools({**LOOK, "strict": False}))),
    ("K2", body(**tools({**LOOK, "description": None})), body(**tools({**LOOK, "description": "Looks."}))),
    ("K2", body(**tools({"type": "magic_20260101", "name": "m"})), body(**tools(BASH))),
    ("K5", body(user({"type": "image"})), body(user(IMAGE))),
    (
        "K5",
        body(user({**IMAGE, "source": {**IMAGE["source"], "media_type": "image/tiff"}})),
        body(user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}})),
    ),
    ("K5", body(user({**DOCUMENT, "source": {"type": "scroll"}})), body(user(DOCUMENT))),
    ("K5", body(user({**DOCUMENT, "citations": {"enabled": "yes"}})), body(user({**DOCUMENT, "citations": {}}))),
    ("K5", body(user("go"), assistant(call("t 1")), user(result("t 1"))), body(*ROUND)),
    ("V7", body(model=HAIKU, tool_choice={"type": "tool", "name": "find"}, **tools(LOOK)), body(model=HAIKU)),
    (
        "V7",
        body(**tools({**LOOK, "input_schema": {"type": "object", "properties": []}})),
        body(**tools({**LOOK, "input_schema": {"type": "object"}})),
    ),
    ("V12", body(system=" "), body(system="")),
    ("V22", body(user(text("a", cache_control={"type": "ephemeral", "ttl": ["5m"]}))), body()),
]


@pytest.mark.parametrize(("rule", "refused", "passing"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
async def test_a_rule_stops_one_request_and_lets_another_pass(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint, rule: str, refused: Json, passing: Json
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, refused)
    assert (caught.value.status_code, caught.value.type) == (400, "invalid_request_error")
    assert caught.value.request_id is not None
    assert caught.value.body["request_id"] == caught.value.request_id  # type: ignore[index]
    assert endpoint.state.bill.charges == []
    if (passing.get("output_config") or {}).get("format"):
        BRAIN.says(Text('{"a": "b"}'))
    await send(client, passing)
    assert len(endpoint.state.bill.charges) == 1


async def test_every_rule_of_the_table_is_exercised() -> None:
    seen = {case[0] for case in CASES} | {"V23", "V24", "V25", "V27", "K3", "K8"}
    assert {rule.number for rule in RULES} <= seen


async def test_wordings_that_people_search_for(client: anthropic.AsyncAnthropic) -> None:
    wordings = {
        "messages: text content blocks must be non-empty": body(user("")),
        "messages: text content blocks must contain non-whitespace text": body(user(" ")),
        "To turn thinking off on this model, send "
        '"thinking": {"type": "between_tools"} instead of {"type": "disabled"}.': body(thinking={"type": "disabled"}),
        "temperature: Extra inputs are not permitted": body(temperature=1.0),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.": body(user(*FIVE)),
        "max_tokens: Field required": body(max_tokens=None),
        'tool_choice: type "tool" and "any" are not supported for this model.': body(
            tool_choice={"type": "any"}, **tools(LOOK)
        ),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message.": body(
            user("go"), assistant(call("t1")), user("well?")
        ),
    }
    for wording, request in wordings.items():
        with pytest.raises(anthropic.BadRequestError) as caught:
            await send(client, request)
        assert caught.value.api_message == wording


async def test_an_unknown_model_is_not_found(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as caught:
        await send(client, body(model="claude-9"))
    assert caught.value.type == "not_found_error"


async def test_containers_of_the_wrong_type_are_refused(client: anthropic.AsyncAnthropic) -> None:
    for request in (body(messages="hi"), body(tools=["look"]), body(thinking="adaptive"), body(system=[1])):
        with pytest.raises(anthropic.BadRequestError):
            await send(client, request)


async def test_key_and_version_are_checked_before_the_body(endpoint: Endpoint) -> None:
    async with sdk(endpoint, api_key="other") as stranger:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await send(stranger, body(temperature=1.0))
    assert caught.value.type == "authentication_error"
    async with sdk(endpoint, default_headers={"anthropic-version": "2023-06-01"}) as dated:
        with pytest.raises(anthropic.BadRequestError):
            await send(dated, body())


async def test_a_body_over_the_limit_is_refused_whole(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.ContentTooLargeError) as caught:
        await send(client, body(user("x" * (33 << 20))))
    assert caught.value.status_code == 413


async def test_a_prompt_beyond_the_window_is_refused_and_output_beyond_it_stops(
    client: anthropic.AsyncAnthropic,
) -> None:
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(user("x" * 3_000_000)))
    BRAIN.says(Text("y" * 3_000))
    message = await send(client, body(user("x" * (3_000_000 - 1_500)), max_tokens=2_000))
    assert message.stop_reason == "model_context_window_exceeded"


async def test_count_tokens_applies_the_same_rules_without_max_tokens(client: anthropic.AsyncAnthropic) -> None:
    assert await count(client, body(user("x" * 300), max_tokens=None)) == 103
    with pytest.raises(anthropic.BadRequestError):
        await count(client, body(tool_choice={"type": "any"}, max_tokens=None, **tools(LOOK)))
    with pytest.raises(anthropic.BadRequestError):
        await count(client, body(max_tokens=100))


async def _thought(client: anthropic.AsyncAnthropic, **more: Any) -> list[Json]:
    """A conversation whose latest assistant turn has signed thinking and a call, answered."""
    BRAIN.says(Thinking("hm"), ToolUse("look", {"b": 1, "a": 2}))
    opening = [user("go")]
    message = await send(client, body(*opening, **tools(LOOK), **more))
    return [*opening, back(message), answers(message)]


async def test_thinking_that_comes_back_untouched_is_accepted(client: anthropic.AsyncAnthropic) -> None:
    log = await _thought(client)
    await send(client, body(*log, **tools(LOOK)))


@pytest.mark.parametrize("damage", ["tampered", "truncated", "foreign"])
async def test_v23_a_signature_that_was_not_ours_is_invalid(client: anthropic.AsyncAnthropic, damage: str) -> None:
    log = await _thought(client)
    block = log[1]["content"][0]
    block["signature"] = {
        "tampered": block["signature"].replace(".1.", ".9."),
        "truncated": block["signature"][:-4],
        "foreign": "EqQBCkYIBxgC",
    }[damage]
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, body(*log, **tools(LOOK)))
    assert "Invalid `signature`" in str(caught.value.api_message)


async def test_v23_another_accounts_thinking_is_invalid(client: anthropic.AsyncAnthropic) -> None:
    log = await _thought(client)
    async with running(Config(first_byte=0.0)) as other, sdk(other) as stranger:
        with pytest.raises(anthropic.BadRequestError):
            await send(stranger, body(*log, **tools(LOOK)))


def _edits(log: list[Json]) -> dict[str, Json]:
    opening, turn, results = log
    renamed = {**turn, "content": [turn["content"][0], {**turn["content"][1], "input": {"a": 2, "b": 1}}]}
    return {
        "system added": body(*log, system="be brief", **tools(LOOK)),
        "tool added": body(*log, **tools(LOOK, FETCH)),
        "tool edited": body(*log, **tools({**LOOK, "description": "Looks!"})),
        "user message edited": body(user("go!"), turn, results, **tools(LOOK)),
        "text added to an old turn": body(user("go", "now"), turn, results, **tools(LOOK)),
        "message inserted": body(opening, user("x"), turn, results, **tools(LOOK)),
        "input reordered after a later thought": body(opening, renamed, results, **tools(LOOK)),
    }


@pytest.mark.parametrize(
    "edit",
    [
        "system added",
        "tool added",
        "tool edited",
        "user message edited",
        "text added to an old turn",
        "message inserted",
    ],
)
async def test_v24_an_edit_before_a_thinking_block_breaks_it(client: anthropic.AsyncAnthropic, edit: str) -> None:
    log = await _thought(client)
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, _edits(log)[edit])
    assert "bound to a different conversation" in str(caught.value.api_message)


async def _two_thoughts(client: anthropic.AsyncAnthropic) -> list[Json]:
    log = await _thought(client)
    BRAIN.says(Thinking("hm again"), ToolUse("look", {}))
    message = await send(client, body(*log, **tools(LOOK)))
    return [*log, back(message), answers(message)]


async def test_v24_reordered_input_of_an_earlier_call_is_an_edit(client: anthropic.AsyncAnthropic) -> None:
    log = await _two_thoughts(client)
    log[1]["content"][1]["input"] = {"a": 2, "b": 1}
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(*log, **tools(LOOK)))


async def test_v24_shortening_an_earlier_result_is_an_edit(client: anthropic.AsyncAnthropic) -> None:
    log = await _two_thoughts(client)
    log[2]["content"][0]["content"] = "cut"
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(*log, **tools(LOOK)))


async def test_parameters_and_markers_are_not_part_of_the_binding(client: anthropic.AsyncAnthropic) -> None:
    log = await _thought(client)
    log[0]["content"][0]["cache_control"] = MARK
    await send(
        client,
        body(
            *log,
            max_tokens=50,
            output_config={"effort": "low"},
            tool_choice={"type": "auto"},
            thinking={"type": "adaptive", "display": "summarized"},
            metadata={"user_id": "u"},
            **tools(LOOK, DEFERRED),
        ),
    )


def _without(message: Json, *kinds: str) -> Json:
    return {**message, "content": [b for b in message["content"] if b["type"] not in kinds]}


async def test_thoughts_may_be_removed_oldest_first_but_not_with_a_gap(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    log = await _two_thoughts(client)
    BRAIN.says(Thinking("third"), ToolUse("look", {}))
    message = await send(client, body(*log, **tools(LOOK)))
    log = [*log, back(message), answers(message)]
    oldest_gone = [log[0], _without(log[1], "thinking"), *log[2:]]
    await send(client, body(*oldest_gone, **tools(LOOK)))
    gap = [*log[:3], _without(log[3], "thinking"), *log[4:]]
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(*gap, **tools(LOOK)))


async def test_v25_the_latest_turn_must_keep_its_thinking(client: anthropic.AsyncAnthropic) -> None:
    log = await _thought(client)
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, body(log[0], _without(log[1], "thinking"), log[2], **tools(LOOK)))
    assert "cannot be modified" in str(caught.value.api_message)


async def test_another_models_thinking_is_dropped_silently_and_not_billed(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    BRAIN.says(Thinking(tokens=5_000), ToolUse("look", {}))
    opening = user("go")
    message = await send(client, body(opening, model=OPUS, max_tokens=9_000, **tools(LOOK)))
    await send(client, body(opening, back(message), answers(message), **tools(LOOK)))
    assert endpoint.state.bill.charges[-1].prompt < 500


async def test_controls_drop_moved_blocks_and_report_it(client: anthropic.AsyncAnthropic) -> None:
    log = await _thought(client)
    thinking = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    for wrong in ("drop", {"prefix_mismatch_behavior": "shrug"}, {"suffix": 1}):
        with pytest.raises(anthropic.BadRequestError):
            await send(
                client, body(*log, thinking={"type": "adaptive", "block_binding": wrong}, **tools(LOOK)), CONTROLS
            )
    edited = body(user("go!"), *log[1:], thinking=thinking, **tools(LOOK))
    message = await send(client, edited, CONTROLS)
    assert message.to_dict()["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ]


async def test_lenient_is_an_old_account_open_to_older_clients() -> None:
    brain = Queued()
    dated = {"anthropic-version": "2023-06-01"}
    async with (
        running(Config(brain=brain, mode="lenient", first_byte=0.0)) as old,
        sdk(old, default_headers=dated) as client,
    ):
        brain.says(Thinking("hm"), ToolUse("look", {}))
        message = await send(client, body(temperature=0, context_management={}, **tools(LOOK)))
        assert old.state.log[0].tolerated == ["temperature", "context_management"]
        await send(client, body(user("edited"), back(message), answers(message), **tools(LOOK)))


async def test_wording_can_be_random_while_status_and_type_stay() -> None:
    config = Config(first_byte=0.0, wording="random")
    said = set()
    async with running(config) as endpoint, sdk(endpoint) as client:
        for _ in range(2):
            with pytest.raises(anthropic.BadRequestError) as caught:
                await send(client, body(temperature=1.0))
            assert caught.value.type == "invalid_request_error"
            said.add(caught.value.api_message)
    assert len(said) == 2


async def test_a_per_message_effort_needs_its_beta_and_no_between_tools(client: anthropic.AsyncAnthropic) -> None:
    note = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    beta = {"anthropic-beta": "mid-conversation-output-config-2026-07-01"}
    await send(client, body(user("a"), note), beta)
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(user("a"), note))
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(user("a"), note, thinking={"type": "between_tools"}), beta)
    for config in ("low", {"effort": "extreme"}, {"effort": "low", "colour": "red"}):
        with pytest.raises(anthropic.BadRequestError):
            await send(client, body(user("a"), {**note, "output_config": config}), beta)


async def test_v19_neither_thinking_nor_a_note_that_will_be_cleared_carries_a_marker(
    client: anthropic.AsyncAnthropic,
) -> None:
    log = await _thought(client)
    log[1]["content"][0]["cache_control"] = MARK
    with pytest.raises(anthropic.BadRequestError) as caught:
        await send(client, body(*log, **tools(LOOK)))
    assert "thinking.cache_control" in str(caught.value.api_message)
    beta = {"anthropic-beta": "mid-conversation-system-clear-at-2026-08-21"}
    note = {"role": "system", "content": [text("c")], "clear_at": "next_user_message"}
    await send(client, body(user("a"), note), beta)
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(user("a"), {**note, "content": [text("c", cache_control=MARK)]}), beta)


async def test_models_tell_what_they_take(client: anthropic.AsyncAnthropic) -> None:
    listed = [model.id async for model in client.models.list()]
    assert listed == [OPUS, SONNET, HAIKU]
    sonnet = await client.models.retrieve(SONNET)
    assert sonnet.capabilities is not None
    assert sonnet.capabilities.thinking.types.between_tools.supported
    assert not sonnet.capabilities.thinking.types.disabled.supported
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("claude-9")
