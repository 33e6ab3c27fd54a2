"""One attempt at one call of the Messages API through the vendor's SDK. No retries here, and no money: see metered.py."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message as WireMessage
from anthropic.types import Usage as WireUsage

from bot.domain.spending import Usage
from bot.providers.llm import failure, pricing
from bot.providers.llm.body import cap, parameters
from bot.providers.llm.connection import connected
from bot.providers.llm.port import Conversation, Message, ModelRequest, ModelTurn, StopReason, ToolCall

_TIMEOUT = anthropic.Timeout(connect=5.0, read=120.0, write=60.0, pool=10.0)
_DEADLINE = 900.0


class AnthropicModel:
    """Makes single attempts; every failure is an AttemptFailed that says what it costs and what to do next."""

    def __init__(  # noqa: PLR0913 - where and how the service is asked
        self,
        *,
        api_key: str,
        prices: pricing.PriceBook,
        base_url: str | None = None,
        proxy: str | None = None,
        shared_ttl: str = "5m",
        timeout: anthropic.Timeout = _TIMEOUT,
        deadline: float = _DEADLINE,
    ) -> None:
        self._client = connected(api_key=api_key, base_url=base_url, timeout=timeout, proxy=proxy)
        self._prices = prices
        self._shared_ttl = shared_ttl
        self._deadline = deadline

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def attempt(self, request: ModelRequest) -> ModelTurn:
        """Raises AttemptFailed; pings reset the read time-out, the deadline bounds the whole."""
        params = parameters(request, shared_ttl=self._shared_ttl)
        seen = _Seen()
        try:
            async with asyncio.timeout(self._deadline):
                message = await (self._warm(params) if cap(request) == 0 else self._stream(params, seen))
        except anthropic.APIStatusError as error:
            raise failure.of_status(error, seen.usage) from error
        except anthropic.APIConnectionError as error:
            raise failure.of_connection(error, seen.usage) from error
        except (anthropic.APIError, httpx2.HTTPError, TimeoutError, ValueError, LookupError, RuntimeError) as error:
            raise failure.of_stream(error, seen.usage) from error
        return turn_of(message, self._prices.of(message.model))

    async def _stream(self, params: dict[str, Any], seen: _Seen) -> WireMessage:
        async with self._client.messages.stream(**params) as stream:
            async for event in stream:
                if event.type == "message_start":
                    seen.usage = usage_of(event.message.usage)
                elif event.type == "message_stop":
                    seen.complete = True
            if not seen.complete:
                raise RuntimeError("the stream ended before message_stop")
            return await stream.get_final_message()

    async def _warm(self, params: dict[str, Any]) -> WireMessage:
        """A call that asks for no output cannot be streamed."""
        message: WireMessage = await self._client.messages.create(**params)
        return message

    async def unsupported(self, conversation: Conversation) -> str:
        """What of this conversation the model does not take, asked of the service; empty when all is well."""
        try:
            model = await self._client.models.retrieve(conversation.model)
        except anthropic.NotFoundError:
            return f"unknown model {conversation.model}"
        if model.capabilities is None:
            return ""
        can: dict[str, Any] = model.capabilities.to_dict(mode="json")
        wanted = {
            "thinking type": (can["thinking"]["types"], conversation.thinking),
            "effort": (can["effort"], conversation.effort.value),
        }
        for name, (offered, value) in wanted.items():
            if not (offered.get(value) or {}).get("supported"):
                return f"{conversation.model} does not take {name} {value!r}"
        return ""


@dataclass(slots=True)
class _Seen:
    usage: Usage | None = None
    complete: bool = False


def usage_of(usage: WireUsage) -> Usage:
    """Tokens by kind; without the split, all written tokens count as short-lived."""
    written = usage.cache_creation_input_tokens or 0
    long = usage.cache_creation.ephemeral_1h_input_tokens if usage.cache_creation is not None else 0
    details = usage.output_tokens_details
    return Usage(
        input=usage.input_tokens,
        write_5m=written - long,
        write_1h=long,
        read=usage.cache_read_input_tokens or 0,
        output=usage.output_tokens,
        thinking=details.thinking_tokens if details is not None else 0,
    )


def turn_of(message: WireMessage, price: pricing.Price) -> ModelTurn:
    """The turn; its message is what the service sent, key order included, so that sending it back edits nothing."""
    content = [block.to_dict(mode="json") for block in message.content]
    usage = usage_of(message.usage)
    details = message.stop_details
    reason = message.diagnostics.cache_miss_reason if message.diagnostics is not None else None
    return ModelTurn(
        message=Message(_compact({"role": "assistant", "content": content})),
        message_id=message.id,
        stop=_stop(message.stop_reason),
        text="\n".join(block.text for block in message.content if block.type == "text"),
        tool_calls=tuple(
            ToolCall(block.id, block.name, _compact(block.input))
            for block in message.content
            if block.type == "tool_use"
        ),
        usage=usage,
        cost=pricing.cost(usage, price),
        refusal="" if details is None else (details.category or details.explanation or "refusal"),
        cache_miss=reason.type if reason is not None else "",
    )


def _stop(reason: str | None) -> StopReason:
    try:
        return StopReason(reason or "")
    except ValueError:
        return StopReason.UNKNOWN


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
