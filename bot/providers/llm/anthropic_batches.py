"""The Message Batches API as the batch role. Nothing is retried here: a batch is money, and the caller knows its id."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anthropic
import httpx2
from anthropic.types.messages import MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import Request

from bot.domain.errors import Transient, UserError
from bot.domain.money import ZERO, MicroUsd
from bot.domain.spending import Usage
from bot.providers.llm import pricing
from bot.providers.llm.anthropic import usage_of
from bot.providers.llm.batches import Answer, Progress, Question
from bot.providers.llm.connection import connected

_TIMEOUT = anthropic.Timeout(connect=5.0, read=120.0, write=120.0, pool=10.0)
_BYTES_PER_TOKEN = 2
"""Never more tokens than this says: an upper bound, unlike the estimator's ruler."""
_REFUSED = frozenset({400, 401, 402, 403, 413})
_UNKNOWN = 404
_PAGE = 100


class AnthropicBatches:
    """Batches of single questions to one model, each with a cap on its answer."""

    def __init__(
        self,
        *,
        api_key: str,
        prices: pricing.PriceBook,
        base_url: str | None = None,
        proxy: str | None = None,
        model: str = "claude-haiku-5-5",
        max_tokens: int = 160,
    ) -> None:
        self._client = connected(api_key=api_key, base_url=base_url, timeout=_TIMEOUT, proxy=proxy)
        self._price = prices.of(model)
        self._model = model
        self._max_tokens = max_tokens

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def worst(self, questions: Sequence[Question]) -> MicroUsd:
        """Every byte pair a token, every answer at its cap, at half price."""
        tokens = sum(len(question.prompt.encode()) // _BYTES_PER_TOKEN + 50 for question in questions)
        usage = Usage(input=tokens, output=self._max_tokens * len(questions))
        return pricing.cost(usage, self._price, batch=True)

    async def submit(self, questions: Sequence[Question]) -> str:
        """Raises Transient or UserError."""
        with _explained():
            batch = await self._client.messages.batches.create(requests=[self._request(one) for one in questions])
        return batch.id

    def _request(self, question: Question) -> Request:
        return {
            "custom_id": question.key,
            "params": {
                "model": self._model,
                "max_tokens": self._max_tokens,
                "thinking": {"type": "disabled"},
                "messages": [{"role": "user", "content": [{"type": "text", "text": question.prompt}]}],
            },
        }

    async def since(self, batch: str) -> tuple[str, ...]:
        """Raises Transient or UserError."""
        found: list[str] = []
        with _explained():
            async for one in self._client.messages.batches.list(limit=_PAGE):
                if one.id == batch:
                    break
                found.append(one.id)
        return tuple(found)

    async def newest(self) -> str:
        """Raises Transient or UserError."""
        with _explained():
            page = await self._client.messages.batches.list(limit=1)
        return page.data[0].id if page.data else ""

    async def progress(self, batch: str) -> Progress | None:
        """Raises Transient or UserError."""
        with _explained():
            try:
                found = await self._client.messages.batches.retrieve(batch)
            except anthropic.NotFoundError:
                return None
        if found.processing_status == "ended" and found.results_url is None:
            return None  # archived: its answers are gone
        counts = found.request_counts
        done = counts.succeeded + counts.errored + counts.canceled + counts.expired
        return Progress(found.processing_status == "ended", done, done + counts.processing)

    async def answers(self, batch: str) -> tuple[Answer, ...]:
        """Raises Transient or UserError."""
        with _explained():
            return tuple([self._answer(one) async for one in await self._client.messages.batches.results(batch)])

    def _answer(self, given: MessageBatchIndividualResponse) -> Answer:
        result = given.result
        if result.type != "succeeded":
            return Answer(given.custom_id, "", ZERO, result.type)
        text = "\n".join(block.text for block in result.message.content if block.type == "text").strip()
        cost = pricing.cost(usage_of(result.message.usage), self._price, batch=True)
        return Answer(given.custom_id, text, cost, "" if text else str(result.message.stop_reason))


def _said(error: anthropic.APIStatusError) -> str:
    """The service's own sentence, where it gave one."""
    told = error.body.get("error") if isinstance(error.body, dict) else None
    return str(told["message"]) if isinstance(told, dict) and "message" in told else error.message


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except anthropic.APIStatusError as error:
        if error.status_code in _REFUSED:
            raise UserError(
                f"The model service does not take the batch: {_said(error)}",
                "Look at the key, the credit and the limits.",
            ) from error
        raise Transient(f"model service: {error.status_code}") from error
    except anthropic.APIConnectionError as error:
        raise Transient("the model service cannot be reached") from error
    except (
        httpx2.HTTPError,
        json.JSONDecodeError,
    ) as error:  # while answers were streaming, which the client leaves as it is
        raise Transient("an answer of the model service broke off") from error
