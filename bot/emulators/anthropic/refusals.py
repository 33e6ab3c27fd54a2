"""How the service says no: one exception, one body shape, and the option to randomise the wording."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_SYNONYMS = ("Request declined", "The request could not be processed", "Not accepted", "Input rejected")


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818 - an answer of the service, not a fault of ours
    """An error answer; clients may rely on status, type and code, never on the message."""

    message: str
    status: int = 400
    type: str = "invalid_request_error"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, request_id: str | None, *, wording: str = "plain") -> dict[str, Any]:
        """The error document of the API, request id repeated inside."""
        message = self.message if wording == "plain" else _reworded()
        error: dict[str, Any] = {"type": self.type, "message": message}
        if self.code is not None:
            error["details"] = {"error_code": self.code}
        return {"type": "error", "error": error, "request_id": request_id}


def _reworded() -> str:
    token = uuid.uuid4().hex
    return f"{_SYNONYMS[int(token[0], 16) % len(_SYNONYMS)]} ({token[:8]})"
