"""Refusals of the REST API, in GitHub's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_DOCS = "https://docs.github.com/rest"


@dataclass(slots=True)
class ApiError(Exception):
    """One refusal: status, message and, for validation failures, the list that GitHub puts under `errors`."""

    status: int
    message: str
    errors: Sequence[Mapping[str, Any] | str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Exception.__init__(self, f"{self.status} {self.message}")

    def body(self) -> dict[str, Any]:
        """The JSON that a client reads."""
        told: dict[str, Any] = {"message": self.message}
        if self.errors:
            told["errors"] = list(self.errors)
        return {**told, "documentation_url": _DOCS, "status": str(self.status)}


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def gone() -> ApiError:
    return ApiError(410, "This issue was deleted")


def bad_credentials() -> ApiError:
    return ApiError(401, "Bad credentials")


def requires_authentication() -> ApiError:
    return ApiError(401, "Requires authentication")


def not_accessible() -> ApiError:
    """What an installation hears when its token lacks the permission that the route needs."""
    return ApiError(403, "Resource not accessible by integration")


def forbidden(message: str) -> ApiError:
    return ApiError(403, message)


def invalid_request(detail: str) -> ApiError:
    """A body that does not fit the route's schema."""
    return ApiError(422, f"Invalid request.\n\n{detail}")


def invalid(resource: str, name: str, code: str = "invalid", message: str | None = None) -> ApiError:
    """`Validation Failed` with one entry."""
    entry: dict[str, Any] = {"resource": resource, "code": code, "field": name}
    if message is not None:
        entry["message"] = message
    return ApiError(422, "Validation Failed", [entry])


def custom(resource: str, message: str) -> ApiError:
    return ApiError(422, "Validation Failed", [{"resource": resource, "code": "custom", "message": message}])


def unprocessable(message: str, *reasons: str) -> ApiError:
    return ApiError(422, message, list(reasons))
