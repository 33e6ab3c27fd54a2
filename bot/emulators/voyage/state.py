"""What the stand-in is told and what it remembers: bill, log, faults, and a clock for the rate limit."""

import asyncio
import math
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from bot.emulators.voyage.faults import FaultQueue

Json = dict[str, Any]
_MILLION = 1_000_000
_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Model:
    """One embedding model: limits and price in micro-dollars per million tokens."""

    name: str
    micro_dollars: int
    context: int = 32_000
    batch_tokens: int = 120_000
    dimensions: tuple[int, ...] = (1024, 256, 512, 2048)


MODELS = {m.name: m for m in (Model("voyage-code-4", 120_000), Model("voyage-code-3", 180_000))}


@dataclass(frozen=True, slots=True)
class Config:
    """How a stand-in behaves."""

    api_key: str = field(default_factory=lambda: f"stand-in-{uuid.uuid4().hex}")
    bytes_per_token: float = 3.0
    requests_per_minute: int = 2_000
    port: int = 0

    def tokens(self, text: str) -> int:
        """Tokens of a text."""
        return math.ceil(len(text.encode()) / self.bytes_per_token)


@dataclass(frozen=True, slots=True)
class Charge:
    """One billed request."""

    request_id: str
    model: Model
    texts: int
    tokens: int

    @property
    def micro_dollars(self) -> int:
        """Rounded up."""
        return -(-self.tokens * self.model.micro_dollars // _MILLION)

    def row(self) -> Json:
        """As `GET bill` shows it."""
        return {
            "request_id": self.request_id,
            "model": self.model.name,
            "texts": self.texts,
            "status": 200,
            "usage": {"input": self.tokens},
            "micro_dollars": self.micro_dollars,
        }


@dataclass(slots=True)
class State:
    """The mutable side; `reset` forgets everything but the configuration."""

    config: Config
    offset: float = 0.0
    charges: list[Charge] = field(default_factory=list)
    log: list[Json] = field(default_factory=list)
    faults: FaultQueue = field(default_factory=FaultQueue)
    accepted: list[float] = field(default_factory=list)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self) -> float:
        """Real time plus what was added."""
        return time.time() + self.offset

    def within_rate(self) -> bool:
        """Whether one more request fits this minute; counts it when it does."""
        now = self.now()
        self.accepted[:] = [at for at in self.accepted if at > now - _MINUTE]
        if len(self.accepted) >= self.config.requests_per_minute:
            return False
        self.accepted.append(now)
        return True

    def bill(self) -> Json:
        """Rows and totals."""
        rows = [charge.row() for charge in self.charges]
        totals = {
            "requests": len(rows),
            "usage": {"input": sum(c.tokens for c in self.charges)},
            "micro_dollars": sum(c.micro_dollars for c in self.charges),
        }
        return {"requests": rows, "totals": totals}

    def reset(self) -> None:
        """A fresh start."""
        self.offset = 0.0
        for store in (self.charges, self.log, self.faults.waiting, self.accepted):
            store.clear()
