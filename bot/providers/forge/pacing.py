"""A steady hand: GitHub limits how fast one installation may write, and punishes bursts with hour-long silences."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

_BURST = 30
_PER_SECOND = 1.0


class Pace:
    """Lets a burst of writes through at once and then one a second; waiting writers keep their order."""

    def __init__(
        self,
        wait: Callable[[float], Awaitable[None]],
        now: Callable[[], float] = time.monotonic,
        *,
        burst: int = _BURST,
        per_second: float = _PER_SECOND,
    ) -> None:
        self._wait = wait
        self._now = now
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst)
        self._seen = now()
        self._turn = asyncio.Lock()

    async def take(self) -> None:
        """Return when one more write may go out."""
        async with self._turn:
            self._refill()
            if self._left < 1:
                await self._wait((1 - self._left) / self._per_second)
                self._refill()
            self._left = max(0.0, self._left - 1)

    def _refill(self) -> None:
        now = self._now()
        self._left = min(float(self._burst), self._left + (now - self._seen) * self._per_second)
        self._seen = now
