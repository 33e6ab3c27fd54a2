"""Seals, faults, brains, the ruler and the bill, each on its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.spending import Usage
from bot.emulators.anthropic.bill import Charge
from bot.emulators.anthropic.brain import BrainError, BrainRequest, HeardMessage, Text
from bot.emulators.anthropic.brains import Echo, named, register, scripted
from bot.emulators.anthropic.faults import Fault, FaultQueue, Kind, parsed
from bot.emulators.anthropic.models import MODELS
from bot.emulators.anthropic.ruler import Ruler
from bot.emulators.anthropic.seals import genuine, parse, sealed_tokens, secret_of
from bot.providers.llm.pricing import PriceBook, cost

tokens = st.integers(min_value=0, max_value=200_000)


@given(
    model=st.sampled_from(sorted(MODELS)), kinds=st.tuples(tokens, tokens, tokens, tokens, tokens), batch=st.booleans()
)
def test_two_books_kept_apart_agree(model: str, kinds: tuple[int, ...], *, batch: bool) -> None:
    plain, short, long, read, output = kinds
    charge = Charge(
        "r", MODELS[model], "/", input=plain, write_5m=short, write_1h=long, read=read, output=output, batch=batch
    )
    usage = Usage(plain, short, long, read, output)
    assert charge.micro_dollars == cost(usage, PriceBook.load().of(model), batch=batch)


@pytest.mark.parametrize("signature", ["", "a.b.c", "a.b.x.d.e", "a.b.1.d.e.f"])
def test_foreign_signatures_are_not_read(signature: str) -> None:
    assert parse(signature) is None
    assert sealed_tokens(signature) is None


def test_a_seal_belongs_to_one_account() -> None:
    seal = parse("model.prefix.7.-.tag")
    assert seal is not None
    assert seal.tokens == 7
    assert not genuine(seal, secret_of("a"), "")


def test_the_ruler_counts_bytes_and_cuts_between_characters() -> None:
    ruler = Ruler()
    assert [ruler.tokens(t) for t in ("", "a", "abc", "abcd", "ééé")] == [0, 1, 1, 2, 2]
    assert ruler.fitting("ééé", 1) == "é"


def test_faults_wait_strike_and_leave() -> None:
    queue = FaultQueue()
    queue.add(Fault(Kind.CUT, skip=1, times=2))
    queue.add(Fault(Kind.HANG, path="/elsewhere"))
    met = [queue.next("/v1/messages") for _ in range(4)]
    assert [f.kind if f is not None else None for f in met] == [None, Kind.CUT, Kind.CUT, None]
    assert len(queue.waiting) == 1


def test_a_fault_that_nobody_knows_is_refused() -> None:
    for document in ({}, {"kind": "miracle"}, {"kind": "cut", "colour": "red"}):
        with pytest.raises(ValueError, match=r"miracle|not a fault"):
            parsed(document)


def request(*texts: str) -> BrainRequest:
    roles = ["user", "assistant"]
    messages = tuple(HeardMessage(roles[i % 2], (Text(t),)) for i, t in enumerate(texts))
    return BrainRequest(0, "model", "system", (), messages)


def test_echo_says_what_it_heard() -> None:
    assert Echo().answer(request("a", "b", "c")).blocks == (Text("c"),)


def test_a_script_answers_turn_by_turn_and_a_retry_gets_the_same(tmp_path: Path) -> None:
    document = {
        "conversations": [
            {"when": "plan", "turns": [[{"type": "text", "text": "planned"}]]},
            {
                "turns": [
                    {"blocks": [{"type": "text", "text": "one"}], "output_tokens": 9},
                    [{"type": "text", "text": "two"}],
                ]
            },
        ]
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(document))
    brain = named(f"scripted:{path}")
    assert brain.answer(request("make a plan")).blocks == (Text("planned"),)
    for _ in range(2):
        assert brain.answer(request("code")).output_tokens == 9
    assert brain.answer(request("code", "one", "more")).blocks == (Text("two"),)
    with pytest.raises(BrainError):
        brain.answer(request("code", "one", "more", "two", "more"))


def test_a_conversation_without_a_script_is_an_error() -> None:
    with pytest.raises(BrainError):
        scripted({"conversations": [{"when": "plan", "turns": []}]}).answer(request("code"))
    with pytest.raises(ValueError, match="cannot say"):
        scripted([[{"type": "image"}]])


def test_brains_are_found_by_name_or_place() -> None:
    register("loud", lambda argument: Echo() if argument == "" else scripted([]))
    assert isinstance(named("loud"), Echo)
    assert isinstance(named("bot.emulators.anthropic.brains:Echo"), Echo)
    with pytest.raises(ValueError, match="no brain named"):
        named("nobody")
