"""The stream of one message: its events in order, each with the output tokens that it stands for so far."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.emulators.anthropic.answers import Piece
from bot.emulators.anthropic.exchange import Exchange
from bot.emulators.anthropic.wire import Json

_FRAGMENT = 64


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event; once it is sent, `output` tokens are billed."""

    name: str
    data: Json
    output: int = 1

    def encoded(self) -> bytes:
        """As bytes on the wire."""
        return f"event: {self.name}\ndata: {json.dumps(self.data, ensure_ascii=False)}\n\n".encode()


def _event(name: str, output: int, **data: Any) -> Event:
    return Event(name, {"type": name, **data}, output)


def events(exchange: Exchange) -> Iterator[Event]:
    """message_start, ping, the blocks, message_delta with cumulative usage, message_stop."""
    answer, charge = exchange.answer, exchange.charge
    usage = {**charge.usage(), "output_tokens": 1, "output_tokens_details": {"thinking_tokens": 0}}
    blank: Json = {"content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None, "usage": usage}
    yield _event("message_start", 1, message={**exchange.message, **blank})
    yield _event("ping", 1)
    sent = 0
    for index, piece in enumerate(answer.pieces):
        yield from _block_events(index, piece, sent, answer.output_tokens)
        sent += piece.tokens
    final = charge.usage()
    delta = {key: exchange.message[key] for key in ("stop_reason", "stop_sequence", "stop_details", "container")}
    total = {
        "input_tokens": final["input_tokens"],
        "cache_creation_input_tokens": final["cache_creation_input_tokens"],
        "cache_read_input_tokens": final["cache_read_input_tokens"],
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"thinking_tokens": answer.thinking_tokens},
    }
    yield _event("message_delta", answer.output_tokens, delta=delta, usage=total)
    yield _event("message_stop", answer.output_tokens)


def _block_events(index: int, piece: Piece, before: int, most: int) -> Iterator[Event]:
    start, deltas = _opened(piece)
    yield _event("content_block_start", max(1, min(before, most)), index=index, content_block=start)
    for n, delta in enumerate(deltas, start=1):
        so_far = before + piece.tokens * n // len(deltas)
        yield _event("content_block_delta", max(1, min(so_far, most)), index=index, delta=delta)
    yield _event("content_block_stop", max(1, min(before + piece.tokens, most)), index=index)


def _opened(piece: Piece) -> tuple[Json, list[Json]]:
    block = piece.block
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": t} for t in _fragments(block["text"])]
        case "thinking":
            thoughts = [{"type": "thinking_delta", "thinking": t} for t in _fragments(block["thinking"])]
            seal = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*thoughts, seal]
        case _:
            parts = ["", *_fragments(piece.raw_input)]
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": p} for p in parts]


def _fragments(text: str) -> list[str]:
    return [text[i : i + _FRAGMENT] for i in range(0, len(text), _FRAGMENT)]
