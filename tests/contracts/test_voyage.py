"""The embeddings stand-in through the unmodified client, and the embedding role against it."""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from voyageai import error
from voyageai.client_async import AsyncClient

from bot.domain.errors import Transient
from bot.emulators.voyage import Config, Endpoint, Fault, Kind, running
from bot.providers.embedding.port import Embedder, InputType
from bot.providers.embedding.voyage import VoyageEmbedder, batches

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[Endpoint]:
    async with running(Config()) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _fresh(endpoint: Endpoint) -> None:
    endpoint.state.reset()


@pytest.fixture
def client(endpoint: Endpoint) -> AsyncClient:
    return AsyncClient(api_key=endpoint.api_key, base_url=endpoint.url, timeout=5)


def cosine(a: list[float] | list[int], b: list[float] | list[int]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


async def test_vectors_are_deterministic_unit_and_near_when_words_are_shared(client: AsyncClient) -> None:
    texts = ["def rate_limit(request)", "the rateLimit of a request", "parse a colour from a string"]
    first = (await client.embed(texts, model="voyage-code-4", input_type="document")).embeddings
    again = (await client.embed(texts, model="voyage-code-4", input_type="query")).embeddings
    assert first == again
    assert len(first[0]) == 1024
    assert math.sqrt(sum(x * x for x in first[0])) == pytest.approx(1, abs=1e-5)
    assert cosine(first[0], first[1]) > 0.5 > cosine(first[0], first[2])


@pytest.mark.parametrize("dimension", [256, 512, 1024, 2048])
async def test_bytes_point_where_floats_point(client: AsyncClient, dimension: int) -> None:
    settings: dict[str, Any] = {"model": "voyage-code-4", "output_dimension": dimension}
    floats = (await client.embed(["alpha beta gamma"], **settings)).embeddings[0]
    small = (await client.embed(["alpha beta gamma"], output_dtype="int8", **settings)).embeddings[0]
    assert len(small) == dimension
    assert all(isinstance(x, int) and -128 <= x <= 127 for x in small)
    assert cosine(floats, small) > 0.99


async def test_usage_and_bill_agree(client: AsyncClient, endpoint: Endpoint) -> None:
    made = await client.embed(["x" * 300, "y" * 30], model="voyage-code-4")
    assert made.total_tokens == 110
    bill = endpoint.state.bill()
    assert bill["totals"] == {"requests": 1, "usage": {"input": 110}, "micro_dollars": 14}


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "voyage-9"},
        {"input_type": "code"},
        {"output_dimension": 100},
        {"output_dtype": "int4"},
        {"texts": []},
        {"texts": [""]},
        {"texts": ["x"] * 1_001},
        {"texts": ["x" * 96_003], "truncation": False},
        {"texts": ["x" * 96_000] * 4},
    ],
    ids="-".join,
)
async def test_what_the_service_refuses(client: AsyncClient, endpoint: Endpoint, settings: dict[str, Any]) -> None:
    with pytest.raises(error.InvalidRequestError):
        await client.embed(**{"texts": ["x"], "model": "voyage-code-4", **settings})
    assert endpoint.state.charges == []


async def test_an_unknown_argument_is_refused(endpoint: Endpoint) -> None:
    body = {"input": "x", "model": "voyage-code-4", "colour": "red"}
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {endpoint.api_key}"}) as plain:
        answer = await plain.post(f"{endpoint.url}/v1/embeddings", json=body)
    assert (answer.status_code, list(answer.json())) == (400, ["detail"])


@pytest.mark.parametrize(
    "odd",
    [
        {"input_type": ["query"]},
        {"encoding_format": {}},
        {"output_dimension": 1024.0},
        {"output_dimension": [256]},
        {"output_dtype": []},
        {"truncation": "yes"},
        {"model": []},
        {"input": {}},
        {"input": [["x"]]},
        {"input": "\ud800"},
    ],
)
async def test_values_of_another_type_are_refused_and_cost_nothing(endpoint: Endpoint, odd: dict[str, Any]) -> None:
    body = {"input": "x", "model": "voyage-code-4", **odd}
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {endpoint.api_key}"}) as plain:
        answer = await plain.post(f"{endpoint.url}/v1/embeddings", content=json.dumps(body).encode())
        assert (answer.status_code in {400, 422}, list(answer.json())) == (True, ["detail"])
        deep = await plain.post(f"{endpoint.url}/v1/embeddings", content=b"[" * 50_000)
        assert deep.status_code == 422
        for order in (b'{"advance": NaN}', b'{"set": 1e400}', b"[1]", b"{"):
            assert (await plain.post(f"{endpoint.url}/_stand-in/clock", content=order)).status_code == 400
        wrong = b'{"kind": "delay", "seconds": "long"}'
        assert (await plain.post(f"{endpoint.url}/_stand-in/faults", content=wrong)).status_code == 400
    assert endpoint.state.charges == []


async def test_another_key_is_refused(endpoint: Endpoint) -> None:
    stranger = AsyncClient(api_key="other", base_url=endpoint.url)
    with pytest.raises(error.AuthenticationError):
        await stranger.embed(["x"], model="voyage-code-4")


async def test_requests_beyond_the_rate_wait_a_minute() -> None:
    async with running(Config(requests_per_minute=2)) as slow:
        client = AsyncClient(api_key=slow.api_key, base_url=slow.url)
        for _ in range(2):
            await client.embed(["x"], model="voyage-code-4")
        with pytest.raises(error.RateLimitError):
            await client.embed(["x"], model="voyage-code-4")
        slow.state.offset += 61
        await client.embed(["x"], model="voyage-code-4")


async def test_the_control_surface_orders_faults_and_shows_the_bill(client: AsyncClient, endpoint: Endpoint) -> None:
    async with httpx.AsyncClient(base_url=f"{endpoint.url}/_stand-in") as control:
        assert (await control.post("/faults", json={"kind": "status", "status": 503})).json() == {"waiting": 1}
        assert (await control.post("/faults", json={"kind": "miracle"})).status_code == 400
        with pytest.raises(error.ServiceUnavailableError):
            await client.embed(["x"], model="voyage-code-4")
        await client.embed(["x"], model="voyage-code-4")
        assert (await control.get("/bill")).json()["totals"]["requests"] == 1
        assert [entry["status"] for entry in (await control.get("/log")).json()] == [503, 200]
        before = (await control.post("/clock", json={"advance": 0})).json()["now"]
        after = (await control.post("/clock", json={"advance": 100})).json()["now"]
        assert after - before >= 100
        await control.post("/reset")
        assert (await control.get("/log")).json() == []


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def embedder(endpoint: Endpoint, slept: list[float]) -> VoyageEmbedder:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    return VoyageEmbedder(
        endpoint.api_key, base_url=endpoint.url, dimension=256, timeout=30, sleep=sleep, jitter=lambda: 0.0
    )


async def test_the_role_gives_one_small_vector_per_text_and_its_cost(
    embedder: VoyageEmbedder, endpoint: Endpoint
) -> None:
    role: Embedder = embedder
    made = await role.embed(("alpha beta", "beta gamma", "delta"), InputType.DOCUMENT)
    assert [len(v) for v in made.vectors] == [256] * 3
    near, far = (cosine(list(array("b", made.vectors[0])), list(array("b", v))) for v in made.vectors[1:])
    assert near > far
    totals = endpoint.state.bill()["totals"]
    assert (made.tokens, made.cost) == (totals["usage"]["input"], totals["micro_dollars"])
    assert endpoint.state.log[0]["body"]["input_type"] == "document"


async def test_no_texts_need_no_request(embedder: VoyageEmbedder, endpoint: Endpoint) -> None:
    assert (await embedder.embed((), InputType.QUERY)).vectors == ()
    assert endpoint.state.log == []


async def test_many_texts_go_in_batches_and_keep_their_order(embedder: VoyageEmbedder, endpoint: Endpoint) -> None:
    texts = tuple(f"word{'abcdefghij'[n % 10]} {'x' * 600}" for n in range(1_100))
    made = await embedder.embed(texts, InputType.DOCUMENT)
    assert len(made.vectors) == 1_100
    assert made.vectors[7] == made.vectors[17] != made.vectors[8]
    assert len(endpoint.state.charges) == len(list(batches(texts))) > 2


async def test_a_batch_that_the_service_finds_too_large_is_halved() -> None:
    async with running(Config(bytes_per_token=1.0)) as dense:
        embedder = VoyageEmbedder(dense.api_key, base_url=dense.url, dimension=256)
        made = await embedder.embed(("x" * 20_000,) * 10, InputType.DOCUMENT)
        assert len(made.vectors) == 10
        assert made.tokens == 200_000
        assert len(dense.state.charges) == 2


async def test_a_text_above_the_limit_is_an_error_and_never_cut(embedder: VoyageEmbedder) -> None:
    with pytest.raises(ValueError, match="refused"):
        await embedder.embed(("short", "x" * 96_003), InputType.DOCUMENT)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Kind.STATUS, status=429, headers={"retry-after": "3"}),
        Fault(Kind.STATUS, status=500),
        Fault(Kind.STATUS, status=503),
        Fault(Kind.HANG),
        Fault(Kind.DELAY, seconds=3.0),
    ],
    ids=lambda f: f"{f.kind}-{f.status}",
)
async def test_a_temporary_failure_is_tried_again(
    embedder: VoyageEmbedder, endpoint: Endpoint, slept: list[float], fault: Fault
) -> None:
    endpoint.state.faults.waiting.append(fault)
    asking = replace(embedder, timeout=1.5) if fault.kind in {Kind.HANG, Kind.DELAY} else embedder
    assert len((await asking.embed(("x",), InputType.QUERY)).vectors) == 1
    assert slept == [3.0 if fault.headers else 1.0]


async def test_a_service_that_stays_away_is_transient(
    embedder: VoyageEmbedder, endpoint: Endpoint, slept: list[float]
) -> None:
    endpoint.state.faults.waiting.append(Fault(Kind.STATUS, status=503, times=3))
    with pytest.raises(Transient):
        await embedder.embed(("x",), InputType.QUERY)
    assert slept == [1.0, 2.0]
    endpoint.state.faults.waiting.append(Fault(Kind.STATUS, status=429, headers={"retry-after": "600"}))
    with pytest.raises(Transient) as caught:
        await embedder.embed(("x",), InputType.QUERY)
    assert caught.value.retry_after == 600.0


async def test_a_service_that_is_not_there_is_transient(embedder: VoyageEmbedder) -> None:
    with pytest.raises(Transient):
        await replace(embedder, base_url="http://127.0.0.1:9").embed(("x",), InputType.QUERY)


async def test_calls_can_run_together(embedder: VoyageEmbedder) -> None:
    made = await asyncio.gather(*(embedder.embed((f"text {n}",), InputType.QUERY) for n in range(5)))
    assert [len(m.vectors) for m in made] == [1] * 5
