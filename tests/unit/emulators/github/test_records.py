"""Small things that must hold: clocks, ids, bodies, faults, identities of commits."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.emulators.github.body import Body
from bot.emulators.github.clock import Clock, stamp
from bot.emulators.github.errors import ApiError
from bot.emulators.github.faults import Faults
from bot.emulators.github.gitside.commits import Identity
from bot.emulators.github.identifiers import Identifiers
from bot.emulators.github.urls import Urls


def test_time_moves_forward_on_request_and_has_no_fractions():
    clock = Clock()
    before = clock.now()
    clock.advance(3600)
    assert 3599 <= (clock.now() - before).total_seconds() <= 3601
    assert clock.now().microsecond == 0
    assert stamp(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)) == "2026-01-02T03:04:05Z"


def test_ids_are_fresh_and_kinds_apart():
    ids = Identifiers()
    made = [ids.new(kind) for kind in ("I", "PR", "I", "PR")]
    assert len({number for number, _ in made}) == 4
    assert len({node for _, node in made}) == 4


@given(st.binary(max_size=60))
def test_any_bytes_are_a_body_or_a_clean_refusal(raw):
    assert _status(raw) in {200, 400}


def _status(raw: bytes) -> int:
    try:
        Body.parse(raw)
    except ApiError as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"a": 1}, lambda body: body.text("a")),
        ({}, lambda body: body.text("a")),
        ({"a": "x"}, lambda body: body.flag("a")),
        ({"a": True}, lambda body: body.integer("a")),
        ({"a": [1]}, lambda body: body.texts("a")),
        ({"a": "x"}, lambda body: body.objects("a")),
        ({"a": []}, lambda body: body.object("a")),
        ({"a": "z"}, lambda body: body.one_of("a", ("x", "y"))),
    ],
)
def test_a_misfit_is_unprocessable(value, read):
    with pytest.raises(ApiError) as caught:
        read(Body(value))
    assert caught.value.status == 422


def test_a_fault_is_used_up_and_may_let_some_pass():
    faults = Faults()
    faults.add({"kind": "status", "path": "/x$", "method": "GET", "times": 2, "skip": 1})
    faults.add({"kind": "delay", "seconds": 1, "path": "/x$"})
    told = [[fault.kind for fault in faults.for_request("GET", "/a/x")] for _ in range(4)]
    assert told == [["delay"], ["status"], ["status"], []]
    assert faults.for_request("POST", "/a/x") == []


def test_an_identity_keeps_its_line_whole():
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    assert Identity("A <B>\n", "a@b\n<c>", moment).line() == f"A B <a@bc> {int(moment.timestamp())} +0000"


def test_addresses_follow_host_and_prefix():
    urls = Urls("http://h:1", "/api/v3")
    assert urls.repo("o/r", "/pulls/1") == "http://h:1/api/v3/repos/o/r/pulls/1"
    assert urls.html("o/r") == "http://h:1/o/r"
