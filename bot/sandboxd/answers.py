"""E2B's error body, and which exceptions become it."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from bot.sandboxd.errors import AgentRefused

NOT_FOUND = "The sandbox was not found"
"""The SDK reads these very words as "this sandbox is no longer running"."""


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """Answer the request with this status and message."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


def error(status: int, message: str) -> Response:
    return JSONResponse({"code": status, "message": message}, status)


async def answered(_request: Request, fault: Exception) -> Response:
    """Starlette's handler for whatever ends a request early; what is no answer to it is logged besides by the server."""
    match fault:
        case Refusal():
            return error(fault.status, fault.message)
        case HTTPException():
            return error(fault.status_code, fault.detail)
        case AgentRefused():
            return error(500, str(fault))
        case ClientDisconnect():
            return error(499, "the client is gone")
        case _:
            return error(500, "internal error")
