"""The stand-in without a wire: calls of the product and of people go to the service as ASGI messages, and nothing else is left out.

Two thirds of a history's time went into clients that build, send and unpack requests. Bodies still travel as bytes, so neither side
sees the other's values; the clients themselves are tested over HTTP in `tests/contracts`.
"""

from __future__ import annotations

import json as texts
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import httpx
import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from githubkit import GitHub, TokenAuthStrategy

from bot.emulators.github.service import Service
from bot.providers.forge.connection import Connection, Wait

BASE = "http://stand-in"
_ASKED = httpx.Request("GET", BASE)
"""Only named in what githubkit raises."""


class Wire:
    """One service, called directly."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def request(
        self, method: str, path: str, *, headers: Mapping[str, str], json: Any = None, query: str = ""
    ) -> httpx.Response:
        """What the service answers; `path` may carry no query of its own."""
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "server": ("stand-in", 80),
        }
        body = b"" if json is None else texts.dumps(json).encode()
        told: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        await self.service(scope, receive, send)
        start, *parts = told
        content = b"".join(part["body"] for part in parts)
        return httpx.Response(start["status"], headers=start["headers"], content=content, request=_ASKED)


class _WiredGitHub(GitHub[Any]):
    """githubkit, up to where it would open a client: its judgement of answers is the real one."""

    wire: Wire
    credential: str

    async def _arequest(
        self, method: str, url: Any, *, params: Any = None, json: Any = None, headers: Any = None, **_: Any
    ) -> httpx.Response:
        asked = {"host": "stand-in", "user-agent": "pullwright", "authorization": self.credential, **headers}
        path = urlsplit(str(url)).path
        return await self.wire.request(method, path, headers=asked, json=json, query=urlencode(params or {}))


class WiredConnection(Connection):
    """The product's connection on such a wire."""

    def __init__(self, wire: Wire, base_url: str, *, wait: Wait) -> None:
        super().__init__(base_url, proxy=None, wait=wait, pool=httpx.ASGITransport(wire.service))
        self._wire = wire

    def as_app(self, issuer: str, private_key: str) -> GitHub[Any]:
        return self._wired(f"Bearer {_signed(issuer, private_key, int(time.time()) // 240)}")

    def as_token(self, token: str) -> GitHub[Any]:
        return self._wired(f"token {token}")

    def _wired(self, credential: str) -> GitHub[Any]:
        client = _WiredGitHub(TokenAuthStrategy("told by the wire"), config=self._config)
        client.wire, client.credential = self._wire, credential
        return client


@lru_cache(maxsize=8)
def _signed(issuer: str, private_key: str, _moment: int) -> str:
    """The App's word for itself, kept for some minutes: reading a private key takes longer than a task's step."""
    now = int(time.time())
    key: Any = load_pem_private_key(private_key.encode(), None)
    return jwt.encode({"iss": issuer, "iat": now - 60, "exp": now + 540}, key, algorithm="RS256")
