"""Batches, the control surface, and the stand-in as a program of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anthropic
import httpx
import pytest
import pytest_asyncio

from bot.emulators.anthropic import Config, Endpoint, Text, Thinking, ToolUse, running
from tests.contracts.messages import HAIKU, LOOK, MARK, Json, Queued, answers, back, body, sdk, send, user, words

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRAIN = Queued()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config(brain=BRAIN, first_byte=0.0, batch_seconds=60.0)) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(endpoint: Endpoint) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with sdk(endpoint) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def control(endpoint: Endpoint) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"{endpoint.url}/_stand-in") as control:
        yield control


@pytest.fixture(autouse=True)
def _fresh(endpoint: Endpoint) -> None:
    endpoint.state.reset()
    BRAIN.waiting.clear()


def items(*bodies: Json) -> list[anthropic.types.messages.batch_create_params.Request]:
    return [{"custom_id": f"item-{n}", "params": b} for n, b in enumerate(bodies)]  # type: ignore[typeddict-item]


def summary(text: str) -> Json:
    return body(user(text), model=HAIKU, thinking={"type": "disabled"})


async def test_a_batch_takes_its_time_and_costs_half(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    single = await send(client, summary(words(3_000)))
    assert single.usage.service_tier == "standard"
    batch = await client.messages.batches.create(requests=items(summary(words(3_000)), summary("x")))
    assert (batch.processing_status, batch.request_counts.processing, batch.results_url) == ("in_progress", 2, None)
    endpoint.state.clock.advance(61)
    batch = await client.messages.batches.retrieve(batch.id)
    assert (batch.processing_status, batch.request_counts.succeeded) == ("ended", 2)
    results = {r.custom_id: r.result async for r in await client.messages.batches.results(batch.id)}
    assert set(results) == {"item-0", "item-1"}
    first = results["item-0"]
    assert first.type == "succeeded"
    assert first.message.usage.service_tier == "batch"
    alone, in_batch = endpoint.state.bill.charges[:2]
    assert in_batch.micro_dollars == -(-alone.micro_dollars // 2)


async def test_items_are_judged_one_by_one(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    bad, warm = {**summary("x"), "temperature": 0}, {**summary("x"), "max_tokens": 0}
    streamed = {**summary("x"), "stream": True}
    batch = await client.messages.batches.create(requests=items(bad, summary("y"), warm, streamed))
    endpoint.state.clock.advance(61)
    kinds = {}
    async for r in await client.messages.batches.results(batch.id):
        kinds[r.custom_id] = r.result.type
        if r.result.type == "errored":
            assert r.result.error.error.type == "invalid_request_error"
    assert kinds == {"item-0": "errored", "item-1": "succeeded", "item-2": "errored", "item-3": "errored"}


async def test_a_canceled_batch_runs_nothing(client: anthropic.AsyncAnthropic, endpoint: Endpoint) -> None:
    batch = await client.messages.batches.create(requests=items(summary("x")))
    assert (await client.messages.batches.cancel(batch.id)).processing_status == "canceling"
    endpoint.state.clock.advance(61)
    done = await client.messages.batches.retrieve(batch.id)
    assert (done.processing_status, done.request_counts.canceled) == ("ended", 1)
    assert endpoint.state.bill.charges == []
    assert (await client.messages.batches.delete(batch.id)).id == batch.id
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.batches.retrieve(batch.id)


async def test_batches_are_listed_newest_first(client: anthropic.AsyncAnthropic) -> None:
    made = [(await client.messages.batches.create(requests=items(summary("x")))).id for _ in range(3)]
    assert [b.id async for b in client.messages.batches.list()] == made[::-1]
    assert [b.id async for b in client.messages.batches.list(limit=2)] == made[::-1]
    page = await client.messages.batches.list(limit=1, before_id=made[0])
    assert ([b.id for b in page.data], page.has_more) == ([made[1]], True)
    for wrong in ({"limit": 0}, {"after_id": "msgbatch_nowhere"}):
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.batches.list(**wrong)


async def test_a_batch_item_drops_moved_thinking_instead_of_failing(
    client: anthropic.AsyncAnthropic, endpoint: Endpoint
) -> None:
    BRAIN.says(Thinking("hm"), ToolUse("look", {}))
    message = await send(client, body(user("go"), tools=[LOOK]))
    edited = body(user("go!"), back(message), answers(message), tools=[LOOK])
    with pytest.raises(anthropic.BadRequestError):
        await send(client, edited)
    batch = await client.messages.batches.create(requests=items(edited))
    endpoint.state.clock.advance(61)
    assert (await client.messages.batches.retrieve(batch.id)).request_counts.succeeded == 1


async def test_malformed_batches_are_refused_whole(client: anthropic.AsyncAnthropic) -> None:
    twice = [*items(summary("x")), *items(summary("y"))]
    [odd], [more] = items(summary("x")), items(summary("y"))
    odd["custom_id"], more["colour"] = "a b", "red"  # type: ignore[typeddict-unknown-key]
    for requests in ([], twice, [{"custom_id": "a"}], [odd], [more]):
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.batches.create(requests=requests)  # type: ignore[arg-type]
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.batches.retrieve("msgbatch_nowhere")


async def test_the_bill_says_who_cost_what(client: anthropic.AsyncAnthropic, control: httpx.AsyncClient) -> None:
    BRAIN.says(Text("so"), output_tokens=100)
    message = await send(client, body(user(words(1_000)), cache_control=MARK, max_tokens=200))
    bill = (await control.get("/bill")).json()
    row = bill["requests"][0]
    assert (row["message_id"], row["model"], row["status"], row["fate"]) == (
        message.id,
        "claude-sonnet-5-5",
        200,
        "answered",
    )
    assert row["usage"] == {"input": 3, "read": 0, "write_5m": 1_000, "write_1h": 0, "output": 100, "thinking": 0}
    assert row["micro_dollars"] == bill["totals"]["micro_dollars"] == 2_500 + 1_000 + 6
    assert bill["totals"]["hit_rate"] == 0.0


async def test_the_log_shows_every_request_without_its_key(
    client: anthropic.AsyncAnthropic, control: httpx.AsyncClient, endpoint: Endpoint
) -> None:
    await send(client, body())
    with pytest.raises(anthropic.BadRequestError):
        await send(client, body(temperature=1))
    log = (await control.get("/log")).json()
    assert [entry["status"] for entry in log] == [200, 400]
    assert log[0]["body"]["messages"] == body()["messages"]
    assert endpoint.api_key not in json.dumps(log)
    assert len((await control.get("/log", params={"since": 1})).json()) == 1


async def test_faults_and_clock_are_ordered_over_http(
    client: anthropic.AsyncAnthropic, control: httpx.AsyncClient
) -> None:
    ordered = await control.post(
        "/faults", json=[{"kind": "status", "status": 529}, {"kind": "delay", "seconds": 0.01}]
    )
    assert ordered.json() == {"waiting": 2}
    assert (await control.post("/faults", json={"kind": "miracle"})).status_code == 400
    assert (await control.post("/faults", json={"kind": "cut", "colour": "red"})).status_code == 400
    with pytest.raises(anthropic.OverloadedError):
        await send(client, body())
    await send(client, body())
    assert (await control.post("/clock", json={"set": 1_000_000})).json()["now"] == pytest.approx(1_000_000, abs=1)
    assert (await control.post("/clock", json={"advance": 300})).json()["now"] == pytest.approx(1_000_300, abs=2)
    for moment in ({"advance": "soon"}, {"advance": 10**400}, {"later": 1}, [1]):
        assert (await control.post("/clock", json=moment)).status_code == 400
    assert (await control.post("/clock", content=b'{"advance": NaN}')).status_code == 400
    assert (await control.post("/faults", json={"kind": "delay", "seconds": "long"})).status_code == 400
    assert (await control.get("/log", params={"since": "then"})).status_code == 400
    assert (await control.post("/reset")).json() == {"reset": True}
    assert (await control.get("/log")).json() == []


async def test_unknown_paths_and_bodies_have_the_apis_error_shape(endpoint: Endpoint) -> None:
    headers = {"authorization": f"Bearer {endpoint.api_key}", "anthropic-version": "2026-10-21"}
    async with httpx.AsyncClient(base_url=endpoint.url, headers=headers) as plain:
        nowhere = await plain.get("/v1/nowhere")
        assert (nowhere.status_code, nowhere.json()["error"]["type"]) == (404, "not_found_error")
        deep = b'{"messages": ' + b"[" * 50_000
        for body in (b"{", b"[]", deep, b'{"max_tokens": NaN}', b'{"model": "\\ud800"}', b"\xff"):
            garbled = await plain.post("/v1/messages", content=body)
            assert (garbled.status_code, garbled.json()["error"]["type"]) == (400, "invalid_request_error")
        unversioned = await plain.get("/v1/models", headers={"anthropic-version": ""})
        assert unversioned.status_code == 400
    assert nowhere.json()["request_id"] == nowhere.headers["request-id"]


PROGRAM = """
import asyncio
from bot.emulators.{name} import Config, serve_forever
asyncio.run(serve_forever(Config(), lambda line: print(line, flush=True)))
"""


@pytest.mark.parametrize("name", ["anthropic", "voyage"])
async def test_by_hand_it_announces_itself_and_serves_until_told_to_stop(name: str) -> None:
    root = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM.format(name=name), stdout=asyncio.subprocess.PIPE, cwd=root
    )
    assert process.stdout is not None
    announced = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
    assert set(announced) == {"url", "api_key"}
    async with httpx.AsyncClient() as plain:
        assert (await plain.get(f"{announced['url']}/_stand-in/bill")).json()["requests"] == []
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 30) == 0
