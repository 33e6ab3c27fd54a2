"""Everything the stand-in remembers, and the clock it lives by."""

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.emulators.anthropic.bill import Bill
from bot.emulators.anthropic.brain import Brain
from bot.emulators.anthropic.brains import Echo
from bot.emulators.anthropic.cache import Cache
from bot.emulators.anthropic.diagnosis import Fingerprint
from bot.emulators.anthropic.faults import FaultQueue
from bot.emulators.anthropic.modes import EffortLevel, Mode, Policy, policy
from bot.emulators.anthropic.ruler import Ruler
from bot.emulators.anthropic.wire import Json

if TYPE_CHECKING:
    from bot.emulators.anthropic.batches import Batch


@dataclass(frozen=True, slots=True)
class Config:
    """How a stand-in behaves; the defaults are the strict ones."""

    brain: Brain = field(default_factory=Echo)
    api_key: str = field(default_factory=lambda: f"stand-in-{uuid.uuid4().hex}")
    mode: Mode = "strict"
    ruler: float = 3.0
    wording: str = "plain"
    effort_level: EffortLevel | None = None
    first_byte: float = 0.005
    """Seconds before a response begins: parallel cold requests are then really parallel."""
    batch_seconds: float = 0.0
    more_keys: tuple[str, ...] = ()
    port: int = 0


@dataclass(slots=True)
class Clock:
    """Real time plus what was added; cache entries age by it."""

    offset: float = 0.0

    def now(self) -> float:
        """Seconds since the epoch, as the stand-in sees it."""
        return time.time() + self.offset

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.offset += seconds

    def set(self, now: float) -> None:
        """Jump to a moment; time goes on from there."""
        self.offset = now - time.time()

    def move(self, *, set: float | None = None, advance: float = 0.0) -> None:  # noqa: A002 - the control surface's word
        """Jump, then let time pass; raises ValueError or TypeError for what is no moment that a calendar has."""
        moment = (self.now() if set is None else float(set)) + float(advance)
        datetime.fromtimestamp(moment, UTC)
        self.set(moment)


@dataclass(slots=True)
class LogEntry:
    """One request seen, accepted or not."""

    index: int
    at: float
    method: str
    path: str
    request_id: str
    headers: dict[str, str]
    body: Json | None = None
    status: int = 0
    tolerated: list[str] = field(default_factory=list)

    def document(self) -> Json:
        """As `GET log` shows it."""
        return {
            "index": self.index,
            "at": self.at,
            "method": self.method,
            "path": self.path,
            "request_id": self.request_id,
            "status": self.status,
            "tolerated": self.tolerated,
            "headers": self.headers,
            "body": self.body,
        }


@dataclass(slots=True)
class State:
    """The mutable side; `reset` forgets everything but the configuration."""

    config: Config
    clock: Clock = field(default_factory=Clock)
    cache: Cache = field(default_factory=Cache)
    bill: Bill = field(default_factory=Bill)
    faults: FaultQueue = field(default_factory=FaultQueue)
    log: list[LogEntry] = field(default_factory=list)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    remembered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    batches: dict[str, "Batch"] = field(default_factory=dict)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def policy(self) -> Policy:
        """The switches of the configured mode."""
        return policy(self.config.mode, self.config.effort_level)

    @property
    def ruler(self) -> Ruler:
        """The configured ruler."""
        return Ruler(self.config.ruler)

    @property
    def keys(self) -> frozenset[str]:
        """Keys that are let in; each has a cache of its own."""
        return frozenset({self.config.api_key, *self.config.more_keys})

    def reset(self) -> None:
        """Forget everything, the passed time included."""
        self.clock.offset = 0.0
        self.cache.entries.clear()
        self.bill.charges.clear()
        self.bill.prefixes.clear()
        self.faults.waiting.clear()
        for store in (self.log, self.fingerprints, self.remembered, self.paused, self.batches):
            store.clear()
