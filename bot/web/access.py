"""Who may look: whoever knows the password, by basic authentication with any user name; without one, whoever reaches the port."""

from __future__ import annotations

import base64
import binascii
import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response


def refused(request: Request, password: str | None) -> Response | None:
    """The answer for somebody who may not look; None for everybody else."""
    if password is None or _knows(request.headers.get("authorization", ""), password):
        return None
    return PlainTextResponse("The password is needed.\n", 401, {"www-authenticate": 'Basic realm="Pullwright"'})


def _knows(authorization: str, password: str) -> bool:
    scheme, _, coded = authorization.partition(" ")
    try:
        given = base64.b64decode(coded, validate=True).partition(b":")[2]
    except binascii.Error:
        return False
    return scheme.lower() == "basic" and hmac.compare_digest(given, password.encode())
