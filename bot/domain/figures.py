"""Figures for operators: how much waits, works, ended and cost. Counted over everything, never by repository or person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.money import MicroUsd
from bot.domain.task import Stage


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What one model was asked and cost, in all and since a day ago.

    `unheard` counts attempts of unknown fate after an hour, which are charged in full; younger ones are `under_way`.
    `day` counts these by their reservation, as the daily limit does.
    """

    model: str
    answered: int
    failed: int
    unheard: int
    under_way: int
    spent: MicroUsd
    day: MicroUsd


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """What the store tells at one moment. `waiting_since` is when the oldest delivery that waits was received (ISO)."""

    waiting: int
    waiting_since: str | None
    tasks: Mapping[Stage, int]
    models: tuple[ModelFigures, ...]
    summaries: MicroUsd


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """One queue of the engine. `waiting` is counted up to a bound; `oldest` is in seconds, 0 when nothing waits."""

    queue: str
    waiting: int
    running: int
    oldest: float
