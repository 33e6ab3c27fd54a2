"""Misfortunes on request: queued by a test, used up by the requests or deliveries that match."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import TypeAdapter

Kind = Literal["status", "drop", "delay", "secondary", "primary", "duplicate", "reorder", "base_moves"]


@dataclass(slots=True)
class Fault:
    """`target` says whether it hits API requests or webhook deliveries.

    For requests: `status` answers without (when=before) or after (when=after) the effect; `drop` breaks the
    connection; `delay` waits; `secondary` and `primary` are rate limits; `base_moves` pushes a commit to the base
    branch in the middle of a merge. For deliveries: `drop`, `delay`, `duplicate`, `reorder` (hold until the next one).
    """

    kind: Kind
    target: Literal["request", "delivery"] = "request"
    method: str = ".*"
    path: str = ".*"
    event: str = ".*"
    when: Literal["before", "after"] = "before"
    status: int = 502
    message: str = "Server Error"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    retry_after: int | None = None
    times: int = 1
    skip: int = 0


_ONE = TypeAdapter(Fault)


class Faults:
    """The queue. The first fault that matches and has turns left is taken."""

    def __init__(self) -> None:
        self._queue: list[Fault] = []

    def add(self, raw: Mapping[str, Any]) -> None:
        """Raises ValueError or TypeError for what is no fault: an unknown key, a wrong type, a broken pattern."""
        fault = _ONE.validate_python(raw)
        if unknown := raw.keys() - {one.name for one in fields(Fault)}:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        try:
            for pattern in (fault.method, fault.path, fault.event):
                re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a pattern: {error}") from error
        self._queue.append(fault)

    def clear(self) -> None:
        self._queue.clear()

    def pending(self) -> list[Fault]:
        return list(self._queue)

    def for_request(self, method: str, path: str) -> list[Fault]:
        """What happens to this request; `delay` may come together with something else."""
        mine = [
            fault
            for fault in self._queue
            if fault.target == "request"
            and fault.kind != "base_moves"
            and re.fullmatch(fault.method, method)
            and re.search(fault.path, path)
        ]
        return self._take(mine)

    def for_delivery(self, event: str) -> list[Fault]:
        """`event` is `name` or `name.action`."""
        mine = [f for f in self._queue if f.target == "delivery" and re.search(f.event, event)]
        return self._take(mine)

    def base_moves(self, path: str) -> bool:
        mine = [f for f in self._queue if f.kind == "base_moves" and re.search(f.path, path)]
        return bool(self._take(mine))

    def _take(self, faults: list[Fault]) -> list[Fault]:
        taken: list[Fault] = []
        for fault in faults:
            if fault.skip > 0:
                fault.skip -= 1
                continue
            delays = fault.kind == "delay"
            if any((other.kind == "delay") == delays for other in taken):
                continue
            fault.times -= 1
            taken.append(fault)
        self._queue = [fault for fault in self._queue if fault.times > 0]
        return taken
