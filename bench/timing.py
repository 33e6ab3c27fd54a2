"""When things were outside the product: doors that note when requests were inside an application, and arithmetic of intervals."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Interval = tuple[float, float]


def covered(intervals: Iterable[Interval]) -> float:
    """Seconds during which at least one of the intervals lasted."""
    total, end = 0.0, float("-inf")
    for first, last in sorted(intervals):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total


def within(intervals: Iterable[Interval], first: float, last: float) -> list[Interval]:
    """The intervals, cut to what lies between two moments."""
    cut = ((max(a, first), min(b, last)) for a, b in intervals)
    return [(a, b) for a, b in cut if a < b]


def acts(log: str, first: float, last: float) -> dict[str, list[Interval]]:
    """When the journal's acts ran, by stage, cut to what lies between two moments."""
    found: dict[str, list[Interval]] = {}
    for line in log.splitlines():
        if not line.startswith("{"):
            continue
        entry = json.loads(line)
        if entry.get("event") != "step":
            continue
        end = datetime.fromisoformat(entry["timestamp"]).timestamp()
        stage = str(entry["step"]).partition(":")[0]
        found.setdefault(stage, []).extend(within([(end - float(entry["seconds"]), end)], first, last))
    return {stage: own for stage, own in found.items() if own}


def added(outside: Sequence[Interval], own: Sequence[Interval]) -> float:
    """Seconds of some intervals during which nothing of `outside` lasted."""
    return covered([*outside, *own]) - covered(outside)


@dataclass
class Door:
    """Notes when requests were inside an application; `counts` is given the path and the body, once it is there."""

    counts: Callable[[str, bytes], bool]
    intervals: list[Interval] = field(default_factory=list)

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            began, body = time.time(), bytearray()

            async def receiving() -> Message:
                message = await receive()
                body.extend(message.get("body", b""))
                return message

            try:
                await app(scope, receiving, send)
            finally:
                if scope["type"] == "http" and self.counts(scope["path"], unpacked(bytes(body))):
                    self.intervals.append((began, time.time()))

        return watched


def unpacked(body: bytes) -> bytes:
    """A request's body as it was before it was compressed."""
    at = body.find(b"\x1f\x8b\x08")
    return gzip.decompress(body[at:]) if 0 <= at <= 5 else body
