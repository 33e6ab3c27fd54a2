"""What is sent is a byte log, how failures are read, how long we wait, and how sizes are guessed."""

from __future__ import annotations

import dataclasses
import itertools
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.money import MicroUsd
from bot.domain.spending import Usage
from bot.providers.llm import failure
from bot.providers.llm.attempt import AttemptFailed, Charged, Next
from bot.providers.llm.body import parameters
from bot.providers.llm.estimator import Estimator
from bot.providers.llm.metered import MeteredModel, Patience, Purse
from bot.providers.llm.port import Conversation, Effort, Message, ModelBusy, ModelRequest, ModelTurn, StopReason
from bot.providers.llm.pricing import PriceBook
from tests.contracts.ledgers import MemoryLedger

TOOLS = json.dumps([{"name": "look", "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}}}])
TALK = Conversation("claude-sonnet-5-5", Effort.MEDIUM, "adaptive", ("rules", "map"), TOOLS)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def said(role: str, value: Any) -> Message:
    return Message(json.dumps({"role": role, "content": [{"type": "text", "text": "x", "extra": value}]}))


def stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: stripped(v) for k, v in value.items() if k != "cache_control"}
    return [stripped(v) for v in value] if isinstance(value, list) else value


def rendered(*parts: Any) -> str:
    return json.dumps([stripped(p) for p in parts], separators=(",", ":"))


@given(st.lists(values, min_size=2, max_size=8))
def test_a_request_is_a_byte_prefix_of_every_later_one(contents: list[Any]) -> None:
    log = [said("user", contents[0]), *(said("assistant", v) for v in contents[1:])]
    sent = [parameters(ModelRequest("k", TALK, tuple(log[: n + 1]))) for n in range(len(log))]
    for before, after in itertools.pairwise(sent):
        fixed = ("model", "thinking", "output_config", "tools", "system")
        assert rendered(*(before[k] for k in fixed)) == rendered(*(after[k] for k in fixed))
        assert rendered(*after["messages"]).startswith(rendered(*before["messages"])[:-1])


def test_breakpoints_stand_on_the_prefix_the_brief_and_the_tail() -> None:
    sent = parameters(ModelRequest("k", TALK, (said("user", 1), said("assistant", 2))))
    assert ["cache_control" in block for block in sent["system"]] == [False, True]
    assert ["cache_control" in m["content"][-1] for m in sent["messages"]] == [True, False]
    assert sent["cache_control"] == {"type": "ephemeral"}
    shared = parameters(ModelRequest("k", TALK, ()), shared_ttl="1h")
    assert shared["system"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in shared


def test_of_a_conversation_that_does_not_go_on_only_the_shared_prefix_is_written() -> None:
    once = dataclasses.replace(TALK, continued=False)
    log = (said("user", 1), said("assistant", 2), said("user", 3))
    plain, marked = parameters(ModelRequest("k", once, log)), parameters(ModelRequest("k", TALK, log))
    assert "cache_control" not in plain
    assert "cache_control" not in json.dumps(plain["messages"])
    assert plain["system"] == marked["system"]
    assert stripped(plain) == stripped(marked)


def test_a_brief_that_is_a_string_is_marked_too() -> None:
    sent = parameters(ModelRequest("k", TALK, (Message('{"role":"user","content":"go"}'),)))
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]


def status_error(status: int, kind: str | None, code: str | None = None, **headers: str) -> anthropic.APIStatusError:
    error: dict[str, Any] = {"type": kind, "message": "whatever"}
    if code is not None:
        error["details"] = {"error_code": code}
    request = httpx2.Request("POST", "http://localhost/v1/messages")
    response = httpx2.Response(status, headers=headers, request=request)
    return anthropic.APIStatusError("whatever", response=response, body={"type": "error", "error": error})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (status_error(429, "rate_limit_error", **{"retry-after": "2"}), (Next.RETRY, Charged.NOTHING, 2.0)),
        (status_error(429, "rate_limit_error", **{"retry-after-ms": "1500"}), (Next.RETRY, Charged.NOTHING, 1.5)),
        (status_error(429, "rate_limit_error"), (Next.UNAVAILABLE, Charged.NOTHING, None)),
        (status_error(429, "rate_limit_error", "ramp_limit_exceeded"), (Next.LATER, Charged.NOTHING, 60.0)),
        (status_error(400, "invalid_request_error"), (Next.REJECTED, Charged.NOTHING, None)),
        (status_error(402, "billing_error"), (Next.UNAVAILABLE, Charged.NOTHING, None)),
        (status_error(504, "timeout_error"), (Next.RETRY, Charged.UNKNOWN, None)),
        (status_error(529, "overloaded_error"), (Next.RETRY, Charged.NOTHING, None)),
        (status_error(418, "teapot"), (Next.REJECTED, Charged.NOTHING, None)),
        (status_error(200, "overloaded_error"), (Next.RETRY, Charged.UNKNOWN, None)),
        (status_error(200, "invalid_request_error"), (Next.REJECTED, Charged.UNKNOWN, None)),
    ],
)
def test_failures_are_told_by_status_type_and_code(
    error: anthropic.APIStatusError, expected: tuple[Next, Charged, float | None]
) -> None:
    failed = failure.of_status(error, None)
    assert (failed.next, failed.charged, failed.retry_after) == expected


def test_once_usage_was_seen_the_input_is_known() -> None:
    failed = failure.of_status(status_error(200, "overloaded_error"), Usage(input=9))
    assert (failed.charged, failed.usage.input) == (Charged.INPUT_KNOWN, 9)


def test_retry_after_can_be_a_date_or_nonsense() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    dated = httpx2.Response(429, headers={"retry-after": soon})
    assert failure.retry_after(dated) == pytest.approx(30, abs=2)
    assert failure.retry_after(httpx2.Response(429, headers={"retry-after": "soon"})) is None


def test_delays_double_are_capped_and_jitter_down() -> None:
    steady, shaky = Patience(jitter=lambda: 0.0), Patience(jitter=lambda: 1.0)
    assert [steady.delay(n, None) for n in range(6)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert shaky.delay(0, None) == 0.375
    assert shaky.delay(0, 7.0) == 7.0


def turn(**usage: int) -> ModelTurn:
    return ModelTurn(Message("{}"), "msg_1", StopReason.END_TURN, "", (), Usage(**usage), MicroUsd(1))


def test_an_estimate_is_exact_for_what_was_answered() -> None:
    estimator = Estimator()
    first = ModelRequest("a", TALK, (said("user", "x" * 3_000),))
    guessed = estimator.prompt_tokens(first)
    estimator.learn(first, turn(input=10_000, output=5_000))
    answered = said("assistant", "y")
    follow = ModelRequest("b", TALK, (*first.messages, answered, said("user", "z")), "msg_1")
    assert guessed < 2_000
    assert 15_000 < estimator.prompt_tokens(follow) < 15_300


def test_estimates_follow_what_answers_show_without_falling_below_it() -> None:
    estimator = Estimator()
    request = ModelRequest("a", TALK, (said("user", "x" * 30_000),))
    for real in (10_000, 10_000, 14_000, 14_000):
        for _ in range(30):
            estimator.learn(request, turn(input=real))
        assert real <= estimator.prompt_tokens(request) <= 1.3 * real


class Failing:
    """Fails as told, every time."""

    def __init__(self, failed: AttemptFailed) -> None:
        self.failed = failed
        self.tries = 0

    async def attempt(self, request: ModelRequest) -> ModelTurn:
        self.tries += 1
        raise self.failed


async def test_the_loop_gives_up_after_two_retries_and_says_when_to_come_back() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    failing = Failing(AttemptFailed("busy", Next.RETRY, Charged.NOTHING, retry_after=9.0))
    purse = Purse("task", MicroUsd(500_000), MemoryLedger())
    model = MeteredModel(failing, purse, PriceBook.load(), patience=Patience(sleep=sleep))
    with pytest.raises(ModelBusy) as caught:
        await model.send(ModelRequest("k", TALK, (said("user", "x"),)))
    assert (failing.tries, waited, caught.value.retry_after) == (3, [9.0, 9.0], 9.0)
