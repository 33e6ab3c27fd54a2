"""The embedding role: texts in, vectors out. Retrieval works without it; with it, ranks get better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bot.domain.money import MicroUsd


class InputType(StrEnum):
    DOCUMENT = "document"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One int8 vector per text, in order; `tokens` as billed."""

    vectors: tuple[bytes, ...]
    tokens: int
    cost: MicroUsd


class Embedder(Protocol):
    """Batches and bounded retries are the implementation's affair."""

    @property
    def space(self) -> bytes:
        """Names what its vectors can be compared with, in a few bytes: those of the same model and dimension."""
        ...

    def worst(self, texts: Sequence[str]) -> MicroUsd:
        """The most these can cost. No call is made."""
        ...

    async def embed(self, texts: tuple[str, ...], kind: InputType) -> Embeddings:
        """Raises Transient, UserError when the key is refused, or ValueError for a text above the model's limit."""
        ...
