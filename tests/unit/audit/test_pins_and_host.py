"""A6, A7: pins; A9, A15: this machine."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bot.audit.facts import Host, PinFacts
from bot.audit.findings import Severity
from bot.audit.host import check_sandboxes, check_versions, older
from bot.audit.operator import Operator, PinEntry
from bot.audit.pins import check_lock, check_upstreams
from bot.providers.organisation.port import Read
from tests.unit.audit.builders import snapshot

H, M, L, U = Severity.HIGH, Severity.MEDIUM, Severity.LOW, Severity.UNKNOWN
WHOLE = PinEntry(name="x", repository="https://example.org/x", commit="a" * 40, owner="core", tree="b" * 40)


def pins(entry: PinEntry, **changes: Any) -> tuple[list[Severity], list[Severity]]:
    seen = snapshot(pins=(PinFacts(entry, **changes),))
    return [one.severity for one in check_lock(seen)], [one.severity for one in check_upstreams(seen)]


def test_a_whole_pin_is_silent():
    assert pins(WHOLE, tree=Read("b" * 40)) == ([], [])
    assert pins(WHOLE) == ([], [])


@pytest.mark.parametrize(
    ("change", "severity"),
    [
        ({"repository": ""}, H),
        ({"commit": ""}, H),
        ({"commit": "v1.2"}, H),
        ({"commit": "main"}, H),
        ({"commit": "a" * 12}, H),
        ({"commit": "A" * 40}, H),
        ({"owner": ""}, L),
        ({"tree": ""}, L),
    ],
)
def test_each_thing_that_is_lacking_is_one_finding(change: dict[str, str], severity: Severity):
    assert pins(WHOLE.model_copy(update=change), tree=Read("b" * 40)) == ([severity], [])


def test_what_an_upstream_does_with_a_pin_is_found():
    assert pins(WHOLE, tree=Read("c" * 40)) == ([H], [])
    assert pins(WHOLE, refs="refs/heads/aaaa") == ([], [H])
    assert pins(WHOLE, commit="no branch leads to it") == ([], [H])
    assert pins(WHOLE, tree=Read(None, "does not answer")) == ([], [U])


ORDER = [
    "1.0~rc1",
    "1.0",
    "1.0-1",
    "1.0-1+deb12u2",
    "1.0-1+deb12u3",
    "1.0-1+deb12u10",
    "1.0a",
    "1.0.1",
    "1.9",
    "1.10",
    "1:0.1",
]


def test_versions_are_ordered_as_debian_orders_them():
    for lower, higher in pairwise(ORDER):
        assert older(lower, higher), (lower, higher)
        assert not older(higher, lower), (higher, lower)
    assert not older("1:2.39.5-0+deb12u3", "1:2.39.5-0+deb12u3")
    assert not older("1.0-0", "1.0")


def versions(floor: str, installed: Read[str | None] | None) -> list[Severity]:
    host = Host(Read(""), versions={} if installed is None else {"git": installed})
    return [one.severity for one in check_versions(snapshot(operator=Operator(floors={"git": floor}), host=host))]


def test_floors():
    assert versions("2.39", Read("2.39")) == []
    assert versions("2.39", Read("2.38.9")) == [M]
    assert versions("2.39", Read(None, "is not installed")) == [U]
    assert versions("2.39", None) == [U]
    assert versions("new enough", Read("2.39")) == [U]
    assert versions("2.39", Read("unstable?")) == [U]
    assert list(check_versions(snapshot())) == []


def sandboxes(host: Host | None) -> list[Severity]:
    return [one.severity for one in check_sandboxes(snapshot(host=host))]


def test_sandboxes_and_hosts_that_take_uploads():
    assert sandboxes(Host(Read(""))) == []
    assert sandboxes(None) == []
    assert sandboxes(Host(Read("reached the network"))) == [H]
    assert sandboxes(Host(Read("", "bubblewrap is missing"))) == [U]
    assert sandboxes(Host(Read(""), shortfall="No control groups.")) == [L]
    assert sandboxes(Host(Read(""), uploads=Read(("github.com:443", "x.s3.amazonaws.com:443")))) == [M, M]
    assert sandboxes(Host(Read(""), uploads=Read((), "*.x is no host"))) == [U]
