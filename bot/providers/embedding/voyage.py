"""Voyage as the embedding role: int8 vectors, batches below the service's limits, bounded retries."""

from __future__ import annotations

import asyncio
import hashlib
import random
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import voyageai
from voyageai import error as voyage_error
from voyageai.client_async import AsyncClient

from bot.domain.errors import Transient, UserError
from bot.domain.money import MicroUsd
from bot.providers.embedding.port import Embeddings, InputType

_MICROS_PER_MILLION_TOKENS = 120_000
_MILLION = 1_000_000
_BYTES_PER_TOKEN = 2
"""Never more tokens than this says."""
_MOST_TEXTS = 512
_MOST_BYTES = 240_000
_RETRIES = 2
_LONGEST_WAIT = 60.0
_TEMPORARY = (
    voyage_error.RateLimitError,
    voyage_error.ServiceUnavailableError,
    voyage_error.ServerError,
    voyage_error.Timeout,
    voyage_error.APIConnectionError,
    voyage_error.TryAgain,
    voyage_error.APIError,
)
"""The last is what the client makes of any other status and of an answer that it cannot read."""


@dataclass(frozen=True, slots=True)
class VoyageEmbedder:
    """An Embedder. Texts are never cut silently: one above the model's limit is a ValueError."""

    api_key: str = field(repr=False)
    base_url: str | None = None
    model: str = "voyage-code-4"
    dimension: int = 1024
    proxy: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random

    @property
    def space(self) -> bytes:
        """Of the model's name and the dimension."""
        return hashlib.sha256(f"voyage {self.model} {self.dimension}".encode()).digest()[:8]

    def worst(self, texts: Sequence[str]) -> MicroUsd:
        """Every byte pair a token."""
        tokens = sum(len(text.encode()) // _BYTES_PER_TOKEN + 1 for text in texts)
        return _cost(tokens)

    async def embed(self, texts: tuple[str, ...], kind: InputType) -> Embeddings:
        """Raises Transient when the service cannot answer now, ValueError for a text above the model's limit."""
        voyageai.proxy = self.proxy  # type: ignore[assignment]  # the vendor's client takes one for the whole process
        client = AsyncClient(api_key=self.api_key, max_retries=0, timeout=self.timeout, base_url=self.base_url)
        vectors: list[bytes] = []
        tokens = 0
        for batch in batches(texts):
            made, used = await self._batch(client, batch, kind)
            vectors += made
            tokens += used
        return Embeddings(tuple(vectors), tokens, _cost(tokens))

    async def _batch(self, client: AsyncClient, texts: tuple[str, ...], kind: InputType) -> tuple[list[bytes], int]:
        """Token counts are the service's: a batch that it finds too large is halved until a single text is at fault."""
        try:
            return await self._tried(client, texts, kind)
        except (voyage_error.InvalidRequestError, voyage_error.MalformedRequestError) as refusal:
            if len(texts) == 1:
                raise ValueError(f"a text of {len(texts[0])} characters is refused: {refusal}") from refusal
        middle = len(texts) // 2
        left, first = await self._batch(client, texts[:middle], kind)
        right, second = await self._batch(client, texts[middle:], kind)
        return left + right, first + second

    async def _tried(self, client: AsyncClient, texts: tuple[str, ...], kind: InputType) -> tuple[list[bytes], int]:
        for tried in range(_RETRIES + 1):
            try:
                answer = await client.embed(
                    list(texts),
                    model=self.model,
                    input_type=kind.value,
                    truncation=False,
                    output_dtype="int8",
                    output_dimension=self.dimension,
                )
            except _TEMPORARY as failure:
                await self._wait(failure, tried)
            except voyage_error.AuthenticationError as refusal:
                raise UserError(
                    "The embeddings service does not accept the key.", "Look at VOYAGE_API_KEY."
                ) from refusal
            else:
                return [array("b", vector).tobytes() for vector in answer.embeddings], answer.total_tokens
        raise Transient("the embedding service did not answer")

    async def _wait(self, failure: voyage_error.VoyageError, tried: int) -> None:
        named = _retry_after(failure)
        if tried >= _RETRIES or (named is not None and named > _LONGEST_WAIT):
            raise Transient(f"embedding service: {type(failure).__name__}", named) from failure
        await self.sleep(named if named is not None else 2.0**tried * (1 - 0.25 * self.jitter()))


def _cost(tokens: int) -> MicroUsd:
    return MicroUsd(-(-tokens * _MICROS_PER_MILLION_TOKENS // _MILLION))


def _retry_after(failure: voyage_error.VoyageError) -> float | None:
    try:
        return float(failure.headers["retry-after"])
    except (KeyError, ValueError):
        return None


def batches(texts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Consecutive texts, each batch within our own limits, which are two thirds of the service's."""
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) >= _MOST_TEXTS or size + length > _MOST_BYTES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield tuple(batch)
