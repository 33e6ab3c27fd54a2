"""Errors as the API shows them."""

from starlette.requests import Request
from starlette.responses import JSONResponse


class ApiError(Exception):
    """An error with a status and a code for programs."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def error_response(status: int, code: str, message: str) -> JSONResponse:
    """The one form of every error."""
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


async def handle_api_error(request: Request, error: Exception) -> JSONResponse:
    """Turn an ApiError into its response."""
    assert isinstance(error, ApiError)
    return error_response(error.status, error.code, error.message)
