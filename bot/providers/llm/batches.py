"""The batch role: many small questions to a model at half price, answered within a day. Slow, cheap, and resumable by its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.money import MicroUsd


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt; `key` (letters, digits, - and _, at most 64) comes back with its answer and is unique in a batch."""

    key: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is empty when the service gave none, and `failed` says why."""

    key: str
    text: str
    cost: MicroUsd
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    ended: bool
    done: int
    total: int


class Batches(Protocol):
    """Each method raises Transient when the service cannot answer now, UserError when it does not accept us."""

    def worst(self, questions: Sequence[Question]) -> MicroUsd:
        """The most these can cost. No call is made."""
        ...

    async def submit(self, questions: Sequence[Question]) -> str:
        """The id of the batch they are in now."""
        ...

    async def since(self, batch: str) -> tuple[str, ...]:
        """Ids of the batches that came after this one, the newest first; of all when the service does not know it."""
        ...

    async def newest(self) -> str:
        """The id of the last batch that came; nothing when there is none."""
        ...

    async def progress(self, batch: str) -> Progress | None:
        """None when the service no longer knows the batch."""
        ...

    async def answers(self, batch: str) -> tuple[Answer, ...]:
        """Of a batch that has ended."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
