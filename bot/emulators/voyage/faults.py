"""Faults to order: an error status, a delay, or no answer at all."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter


class Kind(StrEnum):
    """What goes wrong. A status is answered before anything is processed; the others are processed and billed."""

    STATUS = "status"
    DELAY = "delay"
    HANG = "hang"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; it lets `skip` requests pass, then strikes `times` of them."""

    kind: Kind
    status: int = 500
    message: str = "injected fault"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    skip: int = 0
    times: int = 1


_FAULT = TypeAdapter(Fault)


def parsed(document: Mapping[str, Any]) -> Fault:
    """From the control surface's JSON; raises ValueError for an unknown kind or key, or a value of the wrong type."""
    try:
        return _FAULT.validate_python(asdict(Fault(**{**document, "kind": Kind(document["kind"])})))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a fault: {error}") from error


@dataclass(slots=True)
class FaultQueue:
    """First come, first struck."""

    waiting: list[Fault] = field(default_factory=list)

    def next(self) -> Fault | None:
        """The fault this request runs into, if any."""
        if not self.waiting:
            return None
        fault = self.waiting[0]
        if fault.skip > 0:
            self.waiting[0] = replace(fault, skip=fault.skip - 1)
            return None
        self.waiting[:1] = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
        return fault
