"""One webhook: bounded reading, signature first, stored before it is acknowledged."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Protocol

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from bot.domain.errors import Transient
from bot.domain.event import Ignored
from bot.domain.ids import DeliveryId
from bot.providers.store.port import Delivery
from bot.stages.intake.body import BodyFault, read_body
from bot.stages.intake.extract import PING, extract
from bot.stages.intake.signature import WebhookSecrets, is_signed

_LOG = logging.getLogger(__name__)
_DELIVERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_EVENT = re.compile(r"[a-z][a-z0-9_]{0,59}")
_DISCARDED = 3
"""How many times the largest body is read, and thrown away, of one that was refused."""
_LARGE = 256 * 1024
"""Bodies above this are judged on a thread, so that the loop goes on answering."""


class Why(Enum):
    """Why a delivery is refused: what counters call it, and the status of the answer."""

    UNSIGNED = ("unsigned", 401)
    SIGNATURE = ("signature", 401)
    ENCODING = ("encoding", 415)
    CONTENT_TYPE = ("content_type", 415)
    TOO_LARGE = ("too_large", 413)
    TOO_SLOW = ("too_slow", 408)
    BROKEN_OFF = ("broken_off", 400)
    NAMELESS = ("nameless", 400)
    BODY = ("body", 400)
    NOT_STORED = ("not_stored", 503)

    @property
    def label(self) -> str:
        return self.value[0]

    @property
    def status(self) -> int:
        return self.value[1]


_BROKEN_OFF = frozenset({Why.BROKEN_OFF, Why.TOO_SLOW})
"""Nobody is there any more to read the rest from."""

ACCEPTED, DUPLICATE, IGNORED, PONG = "accepted", "duplicate", "ignored", "pong"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of deliveries since the start."""

    taken: dict[str, int] = field(default_factory=lambda: dict.fromkeys((ACCEPTED, DUPLICATE, IGNORED, PONG), 0))
    refused: dict[str, int] = field(default_factory=lambda: {why.label: 0 for why in Why})


class Receiver(Protocol):
    """Takes deliveries in: stores them, then has them worked on."""

    async def accept(self, delivery: Delivery) -> bool:
        """True once it is stored; False when it was here before. Raises Transient when it cannot be stored now."""
        ...


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The secret and the limits. GitHub itself never sends more than 25 MB and gives up after ten seconds."""

    secrets: WebhookSecrets = field(repr=False)
    largest_body: int = 25 * 1024 * 1024
    body_seconds: float = 10.0
    now: Callable[[], datetime] = _now


@dataclass(frozen=True, slots=True)
class _Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """The request is refused with these words."""

    why: Why
    reason: str


class Hook:
    """The endpoint. Every refusal is a plain sentence; what went wrong inside stays in the log."""

    def __init__(self, receiver: Receiver, settings: HookSettings) -> None:
        self._receiver = receiver
        self._settings = settings
        self.counts = Counts()

    async def answer(self, request: Request) -> Response:
        """401, 408, 413, 415, 400 for what we do not take; 503 when it cannot be stored; else 200 for a ping and 202."""
        try:
            self._look_at(request.headers)
            body = await self._read(request)
        except _Refusal as refusal:
            if refusal.why not in _BROKEN_OFF:
                await self._discard(request)
            return self._refused(refusal.why, refusal.reason)
        try:
            if len(body) > _LARGE:
                verdict = await asyncio.to_thread(self._judge, request.headers, body)
            else:
                verdict = self._judge(request.headers, body)
        except _Refusal as refusal:
            return self._refused(refusal.why, refusal.reason)
        return await self._take(verdict) if isinstance(verdict, Delivery) else verdict

    async def _discard(self, request: Request) -> None:
        """Read what is left of a refused body, within bounds: a sender that is still sending does not hear an answer."""
        left = _DISCARDED * self._settings.largest_body
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.body_seconds):
                while left > 0:
                    message = await request.receive()
                    left -= len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return

    def _look_at(self, headers: Headers) -> None:
        """What can be refused before a byte of the body is read."""
        if len(headers.getlist("x-hub-signature-256")) != 1:
            raise _Refusal(Why.UNSIGNED, "one signature is needed")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise _Refusal(Why.ENCODING, "send the body as it is, without a content encoding")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 12 or int(length) > self._settings.largest_body:
            raise _Refusal(Why.TOO_LARGE, "the body is too large")

    async def _read(self, request: Request) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self._settings.largest_body:
                        raise _Refusal(Why.TOO_LARGE, "the body is too large")
                    chunks.append(chunk)
        except TimeoutError:
            raise _Refusal(Why.TOO_SLOW, "the body came too slowly") from None
        except ClientDisconnect:
            raise _Refusal(Why.BROKEN_OFF, "the body ended early") from None
        return b"".join(chunks)

    def _judge(self, headers: Headers, body: bytes) -> Delivery | Response:
        """The delivery to store, or the answer to one that needs no storing."""
        if not is_signed(self._settings.secrets, body, headers.get("x-hub-signature-256")):
            raise _Refusal(Why.SIGNATURE, "the signature does not fit the body")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise _Refusal(Why.CONTENT_TYPE, "set the webhook's content type to application/json")
        identifier, event = headers.get("x-github-delivery", ""), headers.get("x-github-event", "")
        if _DELIVERY.fullmatch(identifier) is None or _EVENT.fullmatch(event) is None:
            raise _Refusal(Why.NAMELESS, "the delivery names no event or no id")
        payload = read_body(body)
        if isinstance(payload, BodyFault):
            raise _Refusal(Why.BODY, payload.reason)
        if event == PING:
            return self._taken(PONG, 200)
        made = extract(event, payload)
        if isinstance(made, Ignored):
            _LOG.info("delivery %s ignored: %s", identifier, made.reason)
            return self._taken(IGNORED, reason=made.reason)
        received = self._settings.now().isoformat(timespec="milliseconds")
        return Delivery(DeliveryId(identifier), event, body, received)

    async def _take(self, delivery: Delivery) -> Response:
        try:
            accepted = await self._receiver.accept(delivery)
        except Transient as transient:
            _LOG.warning("delivery %s not stored: %s", delivery.id, transient)
            return self._refused(Why.NOT_STORED, "it cannot be stored now; deliver it again later")
        return self._taken(ACCEPTED if accepted else DUPLICATE)

    def _taken(self, outcome: str, status: int = 202, **more: str) -> Response:
        self.counts.taken[outcome] += 1
        return JSONResponse({"status": outcome, **more}, status)

    def _refused(self, why: Why, reason: str) -> Response:
        """The connection closes."""
        self.counts.refused[why.label] += 1
        return JSONResponse({"error": reason}, why.status, {"connection": "close"})
