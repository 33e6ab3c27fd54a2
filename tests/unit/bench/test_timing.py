import gzip
import json
from datetime import UTC, datetime

from bench import timing


def line(step: str, seconds: float, end: float) -> str:
    moment = datetime.fromtimestamp(end, UTC).isoformat()
    return json.dumps({"event": "step", "step": step, "seconds": seconds, "timestamp": moment})


def test_acts_are_read_from_the_log_by_stage_and_cut_to_the_task():
    log = "\n".join(
        [
            "Traceback of something else",
            json.dumps({"event": "delivery routed", "timestamp": "2026-01-01T00:00:00Z"}),
            line("prepare:pin", 2.0, 1001.0),
            line("prepare:baseline", 1.0, 1003.0),
            line("step:only:call:1", 0.5, 1004.0),
            line("verify", 1.0, 1020.0),
        ]
    )
    assert timing.acts(log, 1000.0, 1010.0) == {
        "prepare": [(1000.0, 1001.0), (1002.0, 1003.0)],
        "step": [(1003.5, 1004.0)],
    }


def test_what_the_bot_adds_leaves_out_what_is_outside():
    assert timing.added([(1.0, 2.0), (1.5, 4.0)], [(0.0, 3.0), (3.5, 5.0)]) == 2.0


def test_a_compressed_request_is_read_like_another():
    body = b'{"process":{"cmd":"semgrep"}}'
    assert timing.unpacked(body) == body
    assert timing.unpacked(gzip.compress(body)) == body
    assert timing.unpacked(b"\x01\x00\x00\x00\x30" + gzip.compress(body)) == body


def test_moments_that_overlap_count_once():
    assert timing.covered([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 1.6)]) == 4.0
    assert timing.covered([]) == 0.0


def test_only_what_lies_between_two_moments_is_kept():
    assert timing.within([(0.0, 2.0), (3.0, 9.0), (9.0, 12.0), (4.0, 5.0)], 1.0, 8.0) == [
        (1.0, 2.0),
        (3.0, 8.0),
        (4.0, 5.0),
    ]
