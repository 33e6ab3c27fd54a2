"""The routes: the endpoint as the client sees it, and the control surface beside it."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from bot.emulators import strict_json
from bot.emulators.voyage.embedding import RefusedError, accept, answer
from bot.emulators.voyage.faults import Fault, Kind, parsed
from bot.emulators.voyage.state import Charge, Json, State

_Handler = Callable[[Request], Awaitable[Response]]


def build(state: State) -> Starlette:
    """The application over one state; the address works as base URL with and without `/v1`."""
    embed = _embed(state)
    return Starlette(
        routes=[
            Mount("/_stand-in", routes=_control(state)),
            Route("/embeddings", embed, methods=["POST"]),
            Route("/v1/embeddings", embed, methods=["POST"]),
        ]
    )


def _embed(state: State) -> _Handler:
    async def embed(request: Request) -> Response:
        entry: Json = {"at": state.now(), "path": request.url.path, "request_id": uuid.uuid4().hex, "status": 200}
        state.log.append(entry)
        raw = await request.body()
        entry["body"] = _parsed(raw)
        try:
            return await _answered(state, request, entry)
        except RefusedError as refused:
            entry["status"] = refused.status
            return JSONResponse({"detail": refused.detail}, refused.status, headers=refused.headers)

    return embed


async def _answered(state: State, request: Request, entry: Json) -> Response:
    fault = state.faults.next()
    if fault is not None and fault.kind is Kind.STATUS:
        raise RefusedError(fault.message, fault.status, dict(fault.headers))
    if request.headers.get("authorization") != f"Bearer {state.config.api_key}":
        raise RefusedError("Provided API key is invalid.", 401)
    order = accept(entry["body"], state.config)
    if not state.within_rate():
        raise RefusedError("You have exceeded your rate limit.", 429, {"retry-after": "60"})
    state.charges.append(Charge(entry["request_id"], order.model, len(order.texts), order.tokens))
    if fault is not None:
        await _late(state, fault)
    return JSONResponse(answer(order), headers={"request-id": entry["request_id"]})


async def _late(state: State, fault: Fault) -> None:
    """Waits as ordered, but not past the end of the stand-in."""
    try:
        await asyncio.wait_for(state.closing.wait(), None if fault.kind is Kind.HANG else fault.seconds)
    except TimeoutError:
        return


def _parsed(raw: bytes) -> Any:
    """None for what is not JSON."""
    try:
        return strict_json.loads(raw)
    except ValueError:
        return None


def _control(state: State) -> list[Route]:
    async def bill(_: Request) -> Response:
        return JSONResponse(state.bill())

    async def log(_: Request) -> Response:
        return JSONResponse(state.log)

    async def faults(request: Request) -> Response:
        try:
            document = json.loads(await request.body())
            ordered = [parsed(f) for f in (document if isinstance(document, list) else [document])]
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        state.faults.waiting.extend(ordered)
        return JSONResponse({"waiting": len(state.faults.waiting)})

    async def clock(request: Request) -> Response:
        try:
            document = json.loads(await request.body())
            moment = float(document["set"]) if "set" in document else state.now()
            moment += float(document.get("advance", 0))
            datetime.fromtimestamp(moment, UTC)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            return JSONResponse({"error": str(error)}, 400)
        state.offset += moment - state.now()
        return JSONResponse({"now": state.now()})

    async def reset(_: Request) -> Response:
        state.reset()
        return JSONResponse({"reset": True})

    return [
        Route("/bill", bill, methods=["GET"]),
        Route("/log", log, methods=["GET"]),
        Route("/faults", faults, methods=["POST"]),
        Route("/clock", clock, methods=["POST"]),
        Route("/reset", reset, methods=["POST"]),
    ]
