"""Faults to order: a queue that the next requests run into."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter

from bot.emulators.anthropic.refusals import Refusal

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Kind(StrEnum):
    """What goes wrong. All but `status` are processed and billed like any request."""

    STATUS = "status"  # an error answer before anything is processed; nothing is billed
    DELAY = "delay"  # `seconds` before the first byte
    HANG = "hang"  # no byte ever
    CUT = "cut"  # the connection ends after `after` events
    ERROR = "error"  # an error event after `after` events
    DRIP = "drip"  # `seconds` between events
    MALFORMED = "malformed"  # an event that is not JSON after `after` events
    DISORDER = "disorder"  # the first two events change places


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; it lets `skip` requests pass, then strikes `times` requests on `path`."""

    kind: Kind
    status: int = 500
    type: str = ""
    message: str = "injected fault"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    after: int = 1
    skip: int = 0
    times: int = 1
    path: str = "/v1/messages"

    def refusal(self) -> Refusal:
        """The error answer of a `status` fault."""
        kind = self.type or _TYPES.get(self.status, "api_error")
        return Refusal(self.message, status=self.status, type=kind, code=self.code, headers=self.headers)

    def error_event(self, request_id: str) -> dict[str, Any]:
        """The data of an `error` fault's event."""
        return {
            "type": "error",
            "error": {"type": self.type or "overloaded_error", "message": self.message},
            "request_id": request_id,
        }


_FAULT = TypeAdapter(Fault)


def parsed(document: Mapping[str, Any]) -> Fault:
    """From the control surface's JSON; raises ValueError for an unknown kind or key, or a value of the wrong type."""
    try:
        return _FAULT.validate_python(asdict(Fault(**{**document, "kind": Kind(document["kind"])})))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a fault: {error}") from error


@dataclass(slots=True)
class FaultQueue:
    """First come, first struck; each request meets at most one fault."""

    waiting: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """Queue one more."""
        self.waiting.append(fault)

    def next(self, path: str) -> Fault | None:
        """The fault this request runs into, if any."""
        for i, fault in enumerate(self.waiting):
            if fault.path != path:
                continue
            if fault.skip > 0:
                self.waiting[i] = replace(fault, skip=fault.skip - 1)
                return None
            self.waiting[i : i + 1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
            return fault
        return None
