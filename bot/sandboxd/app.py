"""The whole server as one ASGI application: control plane, envd's two services, envd's files."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

from e2b.envd.filesystem.filesystem_connect import FilesystemASGIApplication
from e2b.envd.process.process_connect import ProcessASGIApplication
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.sandboxd.answers import NOT_FOUND, Refusal, answered, error
from bot.sandboxd.codec import RequestCodec
from bot.sandboxd.control import Control
from bot.sandboxd.errors import AgentRefused
from bot.sandboxd.files import download, upload
from bot.sandboxd.filesystem_service import FilesystemService
from bot.sandboxd.limits import Limits
from bot.sandboxd.process_service import ProcessService
from bot.sandboxd.registry import Registry
from bot.sandboxd.sandbox import Sandbox, State

_MESSAGE_CAP = 16 << 20
_ENDS = (Refusal, HTTPException, AgentRefused, ClientDisconnect, Exception)


def build(registry: Registry, *, api_key: str, limits: Limits) -> ASGIApp:
    """The application that serves `registry`."""
    routes = [*Control(registry, api_key, limits).routes(), *_Envd(registry).routes()]
    plain = Starlette(routes=routes, exception_handlers=dict.fromkeys(_ENDS, answered))
    codecs = [RequestCodec()]
    services: dict[str, ASGIApp] = {  # nothing is compressed, as nothing is by the SDK
        "/process.Process/": ProcessASGIApplication(
            ProcessService(registry), codecs=codecs, compressions=(), read_max_bytes=_MESSAGE_CAP
        ),
        "/filesystem.Filesystem/": FilesystemASGIApplication(
            FilesystemService(registry), codecs=codecs, compressions=()
        ),
    }

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            service = next((app for prefix, app in services.items() if scope["path"].startswith(prefix)), None)
            if service is not None:
                found = admitted(registry, Headers(scope=scope))
                await (service if isinstance(found, Sandbox) else found)(scope, receive, send)
                return
        await plain(scope, receive, send)

    return front


def admitted(registry: Registry, headers: Headers) -> Sandbox | Response:
    """The running sandbox that the headers name and have the token of, or the answer that envd's edge would give."""
    sandbox = registry.running(headers.get("e2b-sandbox-id", ""))
    if sandbox is None:
        return error(502, NOT_FOUND)
    if not hmac.compare_digest(headers.get("x-access-token", "").encode(), sandbox.token.encode()):
        return error(401, "unauthorized access, please provide a valid access token")
    return sandbox


def signature(what: tuple[str, str, str], token: str, until: str | None) -> bytes:
    """Of a link, as the SDK's `get_signature` makes it: path, operation and user, the sandbox's token, and its end if it has one."""
    text = ":".join((*what, token, *(() if until is None else (until,))))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return b"v1_" + base64.b64encode(digest).rstrip(b"=")


def _lasts(until: str | None) -> bool:
    return until is None or (until.isascii() and until.isdecimal() and len(until) < 16 and int(until) > time.time())


class _Envd:
    """envd's plain routes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def routes(self) -> list[Route]:
        return [
            Route("/files", self._files, methods=["GET", "POST"]),
            Route("/health", self._health, methods=["GET"]),
        ]

    async def _files(self, request: Request) -> Response:
        signed = "signature" in request.query_params and "x-access-token" not in request.headers
        found = self._signed(request) if signed else admitted(self._registry, request.headers)
        if not isinstance(found, Sandbox):
            return found
        return await (upload if request.method == "POST" else download)(request, found)

    def _signed(self, request: Request) -> Sandbox | Response:
        """The sandbox whose token signed this link: under one address for all, as here, a link names none."""
        query = request.query_params
        operation = "write" if request.method == "POST" else "read"
        what = (query.get("path", ""), operation, query.get("username", ""))
        until, given = query.get("signature_expiration"), query["signature"].encode()
        for sandbox in self._registry.all():
            if sandbox.state is State.RUNNING and hmac.compare_digest(signature(what, sandbox.token, until), given):
                return sandbox if _lasts(until) else error(401, "signature is already expired")
        return error(401, "invalid signature")

    async def _health(self, request: Request) -> Response:
        running = self._registry.running(request.headers.get("e2b-sandbox-id", ""))
        return Response(status_code=204) if running is not None else error(502, NOT_FOUND)
