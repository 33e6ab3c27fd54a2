"""Bodies that two readers could understand differently are faults."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.stages.intake.body import DEEPEST, BodyFault, read_body
from tests.unit.stages.intake.builders import examples


def nested(depth: int, opening: str = '{"a":', closing: str = "}") -> bytes:
    return (opening * depth + "1" + closing * depth).encode()


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON"),
        (b"payload=%7B%7D", "not JSON"),
        (b'{"a": 1', "not JSON"),
        (b'{"a": 1} {}', "not JSON"),
        (b"{'a': 1}", "not JSON"),
        (b"\xff{}", "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"[]", "not an object"),
        (b'"text"', "not an object"),
        (b"null", "not an object"),
        (b'{"a": 1, "a": 2}', "key twice"),
        (b'{"b": {"a": 1, "\\u0061": 2}}', "key twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": 123456789012345678901}', "too long"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"\\udfff": 1}', "half a character"),
        (b'{"a": ["\\ude00\\ud83d"]}', "half a character"),
        (nested(DEEPEST + 1), "too deeply"),
        (b'{"a":' + nested(DEEPEST, "[", "]") + b"}", "too deeply"),
        (nested(100_000), "too deeply"),
        (b'{"a":' + b"[" * 100_000, "too deeply"),
    ],
)
def test_a_fault_says_why(raw: bytes, reason: str):
    fault = read_body(raw)
    assert isinstance(fault, BodyFault)
    assert reason in fault.reason


def test_what_is_whole_is_read():
    raw = '{"a": [1, 2.5, true, null, "é \\ud83d\\ude00"], "b": {"a": {}}, "c": -1234567890123456789}'.encode()
    assert read_body(raw) == json.loads(raw)
    assert not isinstance(read_body(nested(DEEPEST - 1)), BodyFault)


def test_every_example_of_github_is_read():
    for _, payload in examples():
        assert read_body(json.dumps(payload).encode()) == payload


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(raw: bytes):
    assert isinstance(read_body(raw), BodyFault | dict)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_it_reads_what_json_writes(value: dict[str, object]):
    assert read_body(json.dumps(value).encode()) == value
