"""The attempt loop: reserve the worst case, try, settle from usage. The only way a task spends money on a model.

An attempt is in the ledger before it is sent (design D5), so neither a crash nor a time-out can spend unseen.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from bot.domain.money import ZERO, MicroUsd
from bot.domain.spending import Attempt, Settled, Usage
from bot.providers.llm import pricing
from bot.providers.llm.attempt import AttemptFailed, Charged, Next
from bot.providers.llm.body import cap
from bot.providers.llm.estimator import Estimator
from bot.providers.llm.port import (
    Ledger,
    ModelBusy,
    ModelRejected,
    ModelRequest,
    ModelTurn,
    ModelUnavailable,
    OverBudget,
)


class Attempts(Protocol):
    """Whatever can try a call once."""

    async def attempt(self, request: ModelRequest) -> ModelTurn:
        """Raises AttemptFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long we try: a service that asks for more than `longest_wait` gets the task back in its queue instead."""

    retries: int = 2
    first_delay: float = 0.5
    longest_delay: float = 8.0
    longest_wait: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random

    def delay(self, number: int, retry_after: float | None) -> float:
        """Seconds before attempt `number + 1`; jittered down by up to a quarter unless the service named a time."""
        if retry_after is not None:
            return retry_after
        return min(self.first_delay * 2.0**number, self.longest_delay) * (1 - 0.25 * self.jitter())


@dataclass(frozen=True, slots=True)
class Purse:
    """One task's money."""

    task: str
    budget: MicroUsd
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class MeteredModel:
    """A LanguageModel that spends from one purse. The estimator may be shared: it learns per model."""

    attempts: Attempts
    purse: Purse
    prices: pricing.PriceBook
    estimator: Estimator = field(default_factory=Estimator)
    patience: Patience = field(default_factory=Patience)
    long_entries: bool = False

    async def send(self, request: ModelRequest) -> ModelTurn:
        """At most `retries + 1` attempts, each reserved first."""
        for tried in range(self.patience.retries + 1):
            attempt = await self._reserve(request)
            try:
                turn = await self.attempts.attempt(request)
            except AttemptFailed as failed:
                await self._settle_failed(attempt, request, failed)
                await self._after(failed, tried)
            else:
                settled = Settled(turn.usage, turn.cost, "ok", request_id=turn.message_id, cache_miss=turn.cache_miss)
                await self.purse.ledger.settle(attempt, settled)
                self.estimator.learn(request, turn)
                return turn
        raise ModelBusy("the model did not answer")

    async def _reserve(self, request: ModelRequest) -> Attempt:
        talk, purse = request.conversation, self.purse
        prompt = self.estimator.prompt_tokens(request)
        needed = pricing.worst(prompt, cap(request), self.prices.of(talk.model), long_entries=self.long_entries)
        number = await purse.ledger.attempts(purse.task, request.key) + 1
        attempt = Attempt(purse.task, request.key, number, talk.model, talk.effort.value, needed)
        if purse.budget <= 0 or not await purse.ledger.open(attempt, budget=purse.budget):
            totals = await purse.ledger.totals(purse.task)
            raise OverBudget(needed=needed, totals=totals, budget=purse.budget)
        return attempt

    async def _settle_failed(self, attempt: Attempt, request: ModelRequest, failed: AttemptFailed) -> None:
        match failed.charged:
            case Charged.NOTHING:
                cost = ZERO
            case Charged.INPUT_KNOWN:
                # How much was said before the line broke is not known, so the whole cap is charged.
                used = failed.usage
                full = Usage(used.input, used.write_5m, used.write_1h, used.read, output=cap(request))
                cost = pricing.cost(full, self.prices.of(request.conversation.model))
            case Charged.UNKNOWN:
                cost = attempt.reserved
        settled = Settled(failed.usage, cost, failed.outcome, request_id=failed.request_id)
        await self.purse.ledger.settle(attempt, settled)

    async def _after(self, failed: AttemptFailed, tried: int) -> None:
        """Waits before the next attempt, or raises what the caller is to know."""
        match failed.next:
            case Next.REJECTED:
                raise ModelRejected(failed.outcome) from failed
            case Next.UNAVAILABLE:
                raise ModelUnavailable(failed.outcome) from failed
            case Next.LATER:
                raise ModelBusy(failed.outcome, failed.retry_after) from failed
            case Next.RETRY:
                too_long = failed.retry_after is not None and failed.retry_after > self.patience.longest_wait
                if too_long or tried >= self.patience.retries:
                    raise ModelBusy(failed.outcome, failed.retry_after) from failed
                await self.patience.sleep(self.patience.delay(tried, failed.retry_after))
