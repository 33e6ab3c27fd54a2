"""The control surface: the bill, the log, faults to order, the clock, and a fresh start."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.emulators.anthropic.faults import parsed
from bot.emulators.anthropic.state import State

_Handler = Callable[[Request], Awaitable[Response]]


def routes(state: State) -> list[Route]:
    """Under `/_stand-in/`."""
    return [
        Route("/bill", _bill(state), methods=["GET"]),
        Route("/log", _log(state), methods=["GET"]),
        Route("/faults", _faults(state), methods=["POST"]),
        Route("/clock", _clock(state), methods=["POST"]),
        Route("/reset", _reset(state), methods=["POST"]),
    ]


async def _document(request: Request) -> Any:
    raw = await request.body()
    return json.loads(raw) if raw else {}


def _bill(state: State) -> _Handler:
    async def bill(_: Request) -> Response:
        return JSONResponse(state.bill.document())

    return bill


def _log(state: State) -> _Handler:
    async def log(request: Request) -> Response:
        since = request.query_params.get("since", "0")
        if not since.isdecimal():
            return JSONResponse({"error": "since is the number of an entry"}, 400)
        return JSONResponse([entry.document() for entry in state.log[int(since) :]])

    return log


def _faults(state: State) -> _Handler:
    async def faults(request: Request) -> Response:
        try:
            document = await _document(request)
            ordered = [parsed(f) for f in (document if isinstance(document, list) else [document])]
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)
        for fault in ordered:
            state.faults.add(fault)
        return JSONResponse({"waiting": len(state.faults.waiting)})

    return faults


def _clock(state: State) -> _Handler:
    async def clock(request: Request) -> Response:
        try:
            document = await _document(request)
            state.clock.move(**document)
        except (ValueError, TypeError, OverflowError) as error:
            return JSONResponse({"error": str(error)}, 400)
        return JSONResponse({"now": state.clock.now()})

    return clock


def _reset(state: State) -> _Handler:
    async def reset(_: Request) -> Response:
        state.reset()
        return JSONResponse({"reset": True})

    return reset
