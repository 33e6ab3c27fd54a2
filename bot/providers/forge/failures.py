"""What a failed call means: try again, wait for another day, gone, or refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.errors import Transient
from bot.providers.forge.port import ForgeGone, ForgeRefused, RepositoryMoved

_REPLAYABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_READS = frozenset({"GET", "HEAD"})
_PAUSES = (1.0, 3.0)
_LONGEST_PAUSE = 60.0
_SECONDARY_PAUSE = 60.0
_UNCONNECTED = frozenset({"ConnectError", "ConnectTimeout"})
_LOST = ("Resource not accessible by integration", "This installation has been suspended")


@dataclass(frozen=True, slots=True)
class Failure:
    """One call that brought no result. `status` None: the connection failed, and whether it took effect is unknown."""

    status: int | None
    message: str
    retry_after: float | None = None
    limited: bool = False

    @property
    def seen(self) -> bool:
        """Whether GitHub may have seen the call: not when no connection came about."""
        return self.status is not None or self.message not in _UNCONNECTED


class Unauthorised(Exception):  # noqa: N818 - the token's state; handled by whoever holds tokens
    """401: the credential is no longer good."""


def pause_before_retry(method: str, path: str, failure: Failure, attempt: int) -> float | None:
    """Seconds to wait before sending the same call again; None: don't. A POST or PATCH is never sent again.

    Nor is a merge: a second answer would say "not mergeable" about the merge that the first one made.
    """
    if method not in _REPLAYABLE or path.endswith("/merge") or attempt >= len(_PAUSES):
        return None
    if failure.limited:
        wait = _SECONDARY_PAUSE if failure.retry_after is None else failure.retry_after
        return max(wait, 0.1) if attempt == 0 and wait <= _LONGEST_PAUSE else None
    if failure.status is None or failure.status >= 500:
        return _PAUSES[attempt]
    return None


def error_of(method: str, failure: Failure) -> Exception:
    """The error that the port names for it."""
    status = failure.status
    if failure.limited:
        return Transient(f"GitHub limits our rate: {failure.message}", failure.retry_after or _SECONDARY_PAUSE)
    if status is None or status >= 500 or status == 408:
        return Transient(f"GitHub does not answer: {failure.message}", failure.retry_after)
    if 300 <= status < 400:
        if method in _READS:
            return ForgeGone(f"moved: {failure.message}")
        return RepositoryMoved("the repository was renamed or transferred")
    if status == 401:
        return Unauthorised(failure.message)
    if status in {404, 410} or (status == 403 and failure.message.startswith(_LOST)):
        return ForgeGone(f"{status}: {failure.message}")
    return ForgeRefused(status, failure.message)


def graphql_error(told: Mapping[str, Any]) -> Exception:
    """The same for an error in GraphQL's answer."""
    kind, message = str(told.get("type", "")), str(told.get("message", ""))
    if kind == "RATE_LIMITED":
        return Transient(f"GitHub limits our rate: {message}", 60)
    if kind in {"FORBIDDEN", "NOT_FOUND", "INSUFFICIENT_SCOPES"}:
        return ForgeGone(f"{kind}: {message}")
    return ForgeRefused(422, message)


def is_secondary_limit(status: int, message: str) -> bool:
    """GitHub sends this message with or without the headers that clients look for."""
    return status in {403, 429} and "secondary rate limit" in message.lower()
