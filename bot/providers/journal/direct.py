"""A journal that remembers nothing: for `pullwright run` on a local clone, and for trying one stage by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class DirectJournal:
    """Runs each act at once."""

    async def step(self, name: str, act: Callable[[], Awaitable[T]], kind: type[T]) -> T:  # noqa: ARG002 - the port's form
        return await act()
