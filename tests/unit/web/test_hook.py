"""A webhook is taken only when GitHub signed it, in bounded size and time, and is acknowledged only once it is stored."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest

from bot.domain.errors import Transient, UserError
from bot.stages.intake.signature import signature
from bot.web.app import WebSettings, build
from tests.unit.stages.intake.builders import examples, issue, payload
from tests.unit.web.callers import LABELLED, OLD, SECRET, Receiver, Shelf, web


async def test_a_delivery_is_stored_as_received_and_accepted():
    async with web() as world:
        answer = await world.deliver()
        assert (answer.status_code, answer.json()) == (202, {"status": "accepted"})
        (kept,) = world.receiver.kept
        assert kept.id == "72d3162e-cc78-11e3-81ab-4c9367dc0958"
        assert kept.event == "issues"
        assert json.loads(kept.body) == LABELLED
        assert kept.received_at.endswith("+00:00")


async def test_a_delivery_that_was_here_is_a_duplicate():
    async with web() as world:
        await world.deliver()
        answer = await world.deliver()
        assert (answer.status_code, answer.json()) == (202, {"status": "duplicate"})


async def test_what_does_not_concern_us_is_acknowledged_and_not_kept():
    async with web() as world:
        for event, body in (("star", {}), ("issues", payload("opened", issue=issue()))):
            answer = await world.deliver(body, event)
            assert answer.status_code == 202
            assert answer.json()["status"] == "ignored"
            assert answer.json()["reason"]
        assert world.receiver.kept == []


async def test_a_ping_gets_a_pong():
    async with web() as world:
        answer = await world.deliver({"zen": "Design for failure.", "hook_id": 1}, "ping")
        assert (answer.status_code, answer.json()) == (200, {"status": "pong"})
        assert world.receiver.kept == []


async def test_the_secret_before_is_still_good():
    async with web() as world:
        raw = json.dumps(LABELLED).encode()
        answer = await world.deliver(raw, headers={"x-hub-signature-256": signature(OLD, raw)})
        assert answer.status_code == 202


RAW = json.dumps(LABELLED).encode()
GOOD = signature(SECRET, RAW)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-hub-signature-256": None}, 401),
        ({"x-hub-signature-256": None, "x-hub-signature": "sha1=" + "0" * 40}, 401),
        ({"x-hub-signature-256": GOOD.upper()}, 401),
        ({"x-hub-signature-256": GOOD[:-1]}, 401),
        ({"x-hub-signature-256": f"{GOOD},{GOOD}"}, 401),
        ({"x-hub-signature-256": signature("guess", RAW)}, 401),
        ({"x-hub-signature-256": signature("", RAW)}, 401),
        ({"content-encoding": "gzip"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": None}, 415),
        ({"content-type": "application/json; charset=utf-8"}, 202),
        ({"content-encoding": "identity"}, 202),
        ({"x-github-delivery": None}, 400),
        ({"x-github-delivery": "../../x"}, 400),
        ({"x-github-delivery": "a" * 101}, 400),
        ({"x-github-event": None}, 400),
        ({"x-github-event": "Issues; drop"}, 400),
        ({"content-length": "-1"}, 413),
        ({"content-length": "9" * 30}, 413),
        ({"content-length": "x"}, 413),
    ],
)
async def test_headers_decide(headers: Mapping[str, str | None], status: int):
    async with web() as world:
        answer = await world.deliver(RAW, headers=headers)
        assert answer.status_code == status
        assert len(world.receiver.kept) == (status == 202)


async def test_two_signatures_are_one_too_many():
    async with web() as world:
        sent = [("x-hub-signature-256", GOOD), ("x-hub-signature-256", GOOD), ("content-type", "application/json")]
        answer = await world.client.post("/webhook", content=RAW, headers=sent)
        assert answer.status_code == 401


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"a": 1, "a": 1}', b'{"a": 1e400}', b'{"a": "\\ud800"}', b'{"a":' * 900 + b"1" + b"}" * 900]
)
async def test_a_signed_body_that_is_no_plain_object_is_a_bad_request(body: bytes):
    async with web() as world:
        answer = await world.deliver(body)
        assert answer.status_code == 400
        assert answer.json()["error"]


async def test_nothing_is_parsed_before_the_signature():
    async with web() as world:
        answer = await world.deliver(b"{", headers={"x-hub-signature-256": GOOD})
        assert answer.status_code == 401


async def test_a_body_above_the_limit_is_refused_by_its_length_and_while_reading():
    async with web(largest_body=1000) as world:
        assert (await world.deliver(b'{"a": "' + b"x" * 1000 + b'"}')).status_code == 413
        read = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal read
            while True:
                read += 100
                yield b"x" * 100

        answer = await world.deliver(b"", content=endless())
        assert answer.status_code == 413
        assert answer.headers["connection"] == "close"
        assert read <= 5_000
        assert world.receiver.kept == []


async def test_a_body_at_the_limit_is_taken():
    filled = LABELLED | {"filler": "x" * 300_000}
    raw = json.dumps(filled).encode()
    async with web(largest_body=len(raw)) as world:
        assert (await world.deliver(raw)).status_code == 202


async def test_a_slow_body_is_refused():
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    async with web(body_seconds=0.05) as world:
        assert (await world.deliver(b"{}", content=slow())).status_code == 408


async def test_a_gzip_bomb_is_not_even_read():
    async with web() as world:
        packed = gzip.compress(b"0" * 10_000_000)
        answer = await world.deliver(packed, headers={"content-encoding": "gzip"})
        assert answer.status_code == 415


async def test_when_it_cannot_be_stored_github_records_a_failure():
    async with web() as world:
        world.receiver.fault = Transient("disk is full")
        answer = await world.deliver()
        assert answer.status_code == 503
        assert "disk" not in answer.text


async def test_a_bug_shows_no_traceback():
    async with web() as world:
        world.receiver.fault = RuntimeError("the secret is in here")
        answer = await world.deliver()
        assert answer.status_code == 500
        assert answer.json() == {"error": "something went wrong here; it is in our log"}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_only_post_is_a_webhook(method: str):
    async with web() as world:
        assert (await world.client.request(method, "/webhook")).status_code == 405


@pytest.mark.parametrize("secrets", [(), ("",), (" ",), ("good", "")])
def test_without_a_secret_it_does_not_start(secrets: tuple[str, ...]):
    shelf = Shelf()
    with pytest.raises(UserError, match="No webhook secret"):
        build(Receiver(), WebSettings(secrets=secrets, tasks=shelf, ledger=shelf))  # type: ignore[arg-type]


def test_secrets_do_not_show():
    shelf = Shelf()
    settings = WebSettings(secrets=(SECRET,), tasks=shelf, ledger=shelf, password="hush")  # type: ignore[arg-type]
    assert SECRET not in repr(settings)
    assert "hush" not in repr(settings)


async def test_every_example_of_github_is_answered():
    async with web() as world:
        for event, body in examples():
            answer: httpx.Response = await world.deliver(body, event)
            assert answer.status_code in {200, 202}
