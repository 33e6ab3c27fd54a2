"""The whole server as one ASGI application: control plane, envd's two services, envd's files."""

from __future__ import annotations

import hmac

from e2b.envd.client_shared import ENVD_JSON_CODEC
from e2b.envd.filesystem.filesystem_connect import FilesystemASGIApplication
from e2b.envd.process.process_connect import ProcessASGIApplication
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.sandboxd.answers import NOT_FOUND, Refusal, error, on_refusal
from bot.sandboxd.control import Control
from bot.sandboxd.files import download, upload
from bot.sandboxd.filesystem_service import FilesystemService
from bot.sandboxd.limits import Limits
from bot.sandboxd.process_service import ProcessService
from bot.sandboxd.registry import Registry
from bot.sandboxd.sandbox import Sandbox

_MESSAGE_CAP = 16 << 20


def build(registry: Registry, *, api_key: str, limits: Limits) -> ASGIApp:
    """The application that serves `registry`."""
    routes = [*Control(registry, api_key, limits).routes(), *_Envd(registry).routes()]
    plain = Starlette(routes=routes, exception_handlers={Refusal: on_refusal})
    services: dict[str, ASGIApp] = {
        # The SDK's lenient codec: a newer SDK may send fields that this one does not know.
        "/process.Process/": ProcessASGIApplication(
            ProcessService(registry), codecs=[ENVD_JSON_CODEC], read_max_bytes=_MESSAGE_CAP
        ),
        "/filesystem.Filesystem/": FilesystemASGIApplication(FilesystemService(registry), codecs=[ENVD_JSON_CODEC]),
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
        found = admitted(self._registry, request.headers)
        if not isinstance(found, Sandbox):
            return found
        return await (download if request.method == "GET" else upload)(request, found)

    async def _health(self, request: Request) -> Response:
        running = self._registry.running(request.headers.get("e2b-sandbox-id", ""))
        return Response(status_code=204) if running is not None else error(502, NOT_FOUND)
