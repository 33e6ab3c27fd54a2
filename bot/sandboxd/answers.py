"""E2B's error body, and the one exception that becomes it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

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


async def on_refusal(_request: Request, refusal: Exception) -> Response:
    """Starlette's handler for Refusal."""
    return error(refusal.status, refusal.message) if isinstance(refusal, Refusal) else error(500, "internal error")
