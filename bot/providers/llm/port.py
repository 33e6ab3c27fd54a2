"""The language-model role: an append-only conversation in, one assistant turn and its exact usage out.

A request is a byte log (design D7): tools, system and every earlier message are frozen JSON text; sending never edits them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bot.domain.errors import Transient
from bot.domain.money import MicroUsd, show
from bot.domain.spending import Attempt, LedgerTotals, Settled, Usage

__all__ = [
    "Attempt",
    "Conversation",
    "Effort",
    "LanguageModel",
    "Ledger",
    "LedgerTotals",
    "Message",
    "ModelBusy",
    "ModelRejected",
    "ModelRequest",
    "ModelTurn",
    "ModelUnavailable",
    "OverBudget",
    "Settled",
    "StopReason",
    "ToolCall",
    "Usage",
]


class Effort(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class StopReason(StrEnum):
    """Why the model stopped. Anything the service adds later reads as UNKNOWN: stop and surface it."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    CONTEXT_EXCEEDED = "model_context_window_exceeded"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything of a request but the message log. Frozen for the life of a conversation; a change is another conversation.

    `tools` and `schema` are JSON text. `system` blocks: the last one carries the shared breakpoint (BP1).
    `thinking` is sent explicitly on every call, as is `effort`.
    """

    model: str
    effort: Effort
    thinking: str
    system: tuple[str, ...]
    tools: str | None = None
    schema: str | None = None
    max_tokens: int = 8_000
    continued: bool = True
    """Whether later calls are likely to read what a call sends. If not, only the shared prefix is written to the cache: a write
    costs a quarter more than plain input and pays from one later call in about four on."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message as the JSON text that is sent, byte for byte, on this and every later call."""

    json: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `key` names the call inside the task ("step:s1:1:call:3"); the same key is the same call.

    messages[0] is the brief and carries BP2. `previous_message_id` feeds the cache diagnosis.
    """

    key: str
    conversation: Conversation
    messages: tuple[Message, ...]
    previous_message_id: str | None = None
    max_tokens: int | None = None
    """Overrides the conversation's cap for this call; 0 warms the cache and answers nothing."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model asks for; `arguments` is the JSON text of its input object."""

    id: str
    name: str
    arguments: str


_NOTHING = '{"role":"assistant","content":[]}'


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One assistant turn. `message` is the answer as it came; the log takes `said`, unchanged."""

    message: Message
    message_id: str
    stop: StopReason
    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: Usage
    cost: MicroUsd
    refusal: str = ""
    cache_miss: str = ""
    """Reason of a cache miss as the service diagnosed it; empty when there was none."""

    @property
    def said(self) -> tuple[Message, ...]:
        """What the log takes: nothing of an empty answer, as the service takes no empty message back (V12)."""
        return () if self.message.json == _NOTHING else (self.message,)


class ModelBusy(Transient):
    """Overloaded, rate-limited or cut off, after our own bounded retries."""


class ModelRejected(Exception):  # noqa: N818 - the service's verdict about our request
    """The service refuses the request as malformed: a bug of ours. Never retried."""


class ModelUnavailable(Exception):  # noqa: N818 - needs an operator
    """Key, credit or permission is missing; every task stops until the operator acts."""


class OverBudget(Exception):  # noqa: N818 - a stop, not a fault
    """The next attempt could cross the task's budget. Never retried; nothing was sent. Its text is for people."""

    def __init__(self, *, needed: MicroUsd, totals: LedgerTotals, budget: MicroUsd) -> None:
        self.needed, self.spent, self.budget = needed, totals.spent, budget
        lost = (
            f" ({show(totals.unknown)} of it for calls whose answers a restart lost; they count at their highest price)"
            if totals.unknown
            else ""
        )
        super().__init__(
            f"The next model call may cost up to {show(needed)}, and {show(totals.spent)} of {show(budget)} are spent{lost}."
        )


class LanguageModel(Protocol):
    """Sends one request. `attempts` are the implementation's affair; every attempt is in the ledger."""

    async def send(self, request: ModelRequest) -> ModelTurn:
        """Raises ModelBusy, ModelRejected, ModelUnavailable, OverBudget."""
        ...


class Ledger(Protocol):
    """The durable record of spending. Implemented by the store role; wiring connects them."""

    async def open(self, attempt: Attempt, *, budget: MicroUsd) -> bool:
        """Atomically record the attempt if what is spent and reserved plus this reservation stays within `budget`.

        False: nothing was recorded and the attempt must not be made. A budget of zero allows nothing.
        """
        ...

    async def settle(self, attempt: Attempt, settled: Settled) -> None:
        """Replace the reservation of this attempt (task, key, number) by what it really cost."""
        ...

    async def totals(self, task: str) -> LedgerTotals: ...

    async def attempts(self, task: str, key: str) -> int:
        """How many attempts of this call were ever opened; the next attempt's number is one more."""
        ...
