"""Writes come in a burst, then steadily."""

from __future__ import annotations

from bot.providers.forge.pacing import Pace


class _Time:
    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def read(self) -> float:
        return self.now


async def test_a_burst_passes_and_the_rest_is_spaced():
    time = _Time()
    pace = Pace(time.wait, time.read, burst=3)
    for _ in range(5):
        await pace.take()
    assert time.waits == [1.0, 1.0]


async def test_a_pause_earns_the_burst_back():
    time = _Time()
    pace = Pace(time.wait, time.read, burst=2)
    for _ in range(2):
        await pace.take()
    time.now += 100
    for _ in range(3):
        await pace.take()
    assert time.waits == [1.0]
