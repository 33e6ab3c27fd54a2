"""The journal role: a checkpoint around each act on the outside, so that a killed process goes on and repeats nothing.

`step(name, act, kind)` runs `act` once and records its value; when the same sequence of steps is replayed, recorded values are
returned and `act` is not called. Between steps the code must be deterministic: no clock, no random, no environment. Steps
are strictly sequential: one coroutine, never `gather` (specs/durable.md §1.i).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Journal(Protocol):
    """Where the values of finished acts are kept."""

    async def step(self, name: str, act: Callable[[], Awaitable[T]], kind: type[T]) -> T:
        """The value of `act`, from the record if it finished before. `kind` tells how the value is written and read:
        a frozen dataclass, a str, int, bool, None or a tuple or union of these."""
        ...
