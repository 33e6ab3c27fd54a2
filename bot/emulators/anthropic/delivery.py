"""Sending a response, with whatever fault was ordered for it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from bot.emulators.anthropic.events import Event, events
from bot.emulators.anthropic.exchange import Exchange
from bot.emulators.anthropic.faults import Fault, Kind
from bot.emulators.anthropic.state import State

_BROKEN = b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'


@dataclass(frozen=True, slots=True)
class Lines:
    """An ASGI response of JSON lines, which may break off or hold one that is not JSON."""

    body: bytes
    headers: Mapping[str, str]
    fault: Fault | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Half of it for a `cut`; a broken line first for `malformed`."""
        del scope, receive
        kind = None if self.fault is None else self.fault.kind
        body = b'{"custom_id": "a", "resu\n' + self.body if kind is Kind.MALFORMED else self.body
        headers = {**self.headers, "content-type": "application/x-jsonl", "content-length": str(len(body))}
        raw = [(k.encode(), v.encode()) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        if kind is Kind.CUT:
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            return
        await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True, slots=True)
class Delivery:
    """An ASGI response that may be late, cut, garbled, or never come."""

    state: State
    exchange: Exchange
    headers: Mapping[str, str]
    stream: bool
    fault: Fault | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait as ordered, then answer; what was written to the cache is readable once the answer begins."""
        del scope, receive
        await asyncio.sleep(self.state.config.first_byte)
        if self._is(Kind.HANG):
            self.exchange.charge.fate = "hung"
            self.exchange.finished()
            await self.state.closing.wait()
            return
        if self.fault is not None and self.fault.kind is Kind.DELAY:
            await self._pause(self.fault.seconds)
        self.state.cache.begin(self.exchange.account, at=self.state.clock.now())
        if self.stream:
            await self._send_events(send)
        else:
            await self._send_document(send)

    def _is(self, kind: Kind) -> bool:
        return self.fault is not None and self.fault.kind is kind

    async def _pause(self, seconds: float) -> None:
        """Sleeps, but not past the end of the stand-in."""
        try:
            await asyncio.wait_for(self.state.closing.wait(), seconds)
        except TimeoutError:
            return

    async def _start(self, send: Send, kind: str, extra: Mapping[str, str]) -> None:
        headers = {**self.headers, "content-type": kind, **extra}
        raw = [(k.encode(), v.encode()) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})

    async def _send_document(self, send: Send) -> None:
        body = json.dumps(self.exchange.finished(), ensure_ascii=False).encode()
        await self._start(send, "application/json", {"content-length": str(len(body))})
        if self._is(Kind.CUT):
            self.exchange.charge.fate = "cut"
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            return
        await send({"type": "http.response.body", "body": body})

    async def _send_events(self, send: Send) -> None:
        await self._start(send, "text/event-stream; charset=utf-8", {"cache-control": "no-cache"})
        sequence = list(events(self.exchange))
        if self._is(Kind.DISORDER):
            sequence[0], sequence[2] = sequence[2], sequence[0]
        for n, event in enumerate(sequence):
            if await self._struck(send, n):
                return
            await self._send_event(send, event)
        await send({"type": "http.response.body", "body": b""})

    async def _send_event(self, send: Send, event: Event) -> None:
        self.exchange.charge.output = max(self.exchange.charge.output, event.output)
        if event.name == "message_delta":
            self.exchange.charge.thinking = self.exchange.answer.thinking_tokens
        await send({"type": "http.response.body", "body": event.encoded(), "more_body": True})
        if self.fault is not None and self.fault.kind is Kind.DRIP:
            await self._pause(self.fault.seconds)

    async def _struck(self, send: Send, n: int) -> bool:
        """Whether the stream ends here, before event n."""
        fault = self.fault
        if fault is None or fault.after != n or fault.kind not in {Kind.CUT, Kind.ERROR, Kind.MALFORMED}:
            return False
        self.exchange.charge.fate = fault.kind.value
        if fault.kind is Kind.CUT:
            return True
        broken = Event("error", fault.error_event(self.headers["request-id"])).encoded()
        await send({"type": "http.response.body", "body": broken if fault.kind is Kind.ERROR else _BROKEN})
        return True
