"""The door: request ids, the log, keys and versions, body size; refusals leave through it in the API's shape."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.emulators import strict_json
from bot.emulators.anthropic.brain import BrainError
from bot.emulators.anthropic.faults import Fault, Kind
from bot.emulators.anthropic.modes import OLD_VERSION, VERSION
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.state import LogEntry, State
from bot.emulators.anthropic.wire import Draft, Json, Surface

_MEGABYTE = 1 << 20
_LIMITS = {"requests": 4_000, "tokens": 2_400_000, "input-tokens": 2_000_000, "output-tokens": 400_000}
_SECRET_HEADERS = frozenset({"authorization", "x-api-key"})


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that got in."""

    state: State
    request: Request
    entry: LogEntry
    key: str
    body: Json
    fault: Fault | None

    @property
    def request_id(self) -> str:
        """As in the header."""
        return self.entry.request_id

    @property
    def url(self) -> str:
        """The stand-in's own address."""
        return str(self.request.base_url).rstrip("/")

    def draft(self, surface: Surface) -> Draft:
        """The body as a request to judge."""
        state = self.state
        headers = dict(self.request.headers)
        return Draft(
            body=self.body,
            headers=headers,
            surface=surface,
            key=self.key,
            policy=state.policy,
            ruler=state.ruler,
            remembered=state.remembered,
            paused=state.paused,
            tolerated=self.entry.tolerated,
        )

    def headers(self, *, used: int = 0) -> dict[str, str]:
        """Identity and rate-limit headers of an answer."""
        reset = datetime.fromtimestamp(self.state.clock.now() + 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        limits = {}
        for name, limit in _LIMITS.items():
            spent = 1 if name == "requests" else used
            limits[f"anthropic-ratelimit-{name}-limit"] = str(limit)
            limits[f"anthropic-ratelimit-{name}-remaining"] = str(max(0, limit - spent))
            limits[f"anthropic-ratelimit-{name}-reset"] = reset
        return {**_identity(self.request_id), **limits}


Handler = Callable[[Visit], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An ASGI endpoint that lets a request in, hands it to its handler, and answers refusals."""

    state: State
    handler: Handler
    megabytes: int = 32

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Every request is logged, whatever becomes of it."""
        request = Request(scope, receive)
        entry = _logged(self.state, request)
        try:
            response = await self.handler(await self._enter(request, entry))
        except Refusal as refusal:
            entry.status = refusal.status
            response = refused(refusal, entry.request_id, wording=self.state.config.wording)
        except RecursionError:
            entry.status = 400
            response = refused(Refusal("The request body is nested too deeply"), entry.request_id)
        except BrainError as error:
            entry.status = 500
            response = refused(Refusal(str(error), status=500, type="api_error"), entry.request_id)
        else:
            entry.status = 200
        await response(scope, receive, send)

    async def _enter(self, request: Request, entry: LogEntry) -> Visit:
        raw = await request.body()
        entry.body = _parsed(raw)
        fault = self.state.faults.next(request.url.path)
        if fault is not None and fault.kind is Kind.STATUS:
            raise fault.refusal()
        if len(raw) > self.megabytes * _MEGABYTE:
            raise Refusal("Request exceeds the maximum size", status=413, type="request_too_large")
        key = _key(self.state, request)
        _check_version(self.state, request)
        if request.method == "POST" and raw and entry.body is None:
            raise Refusal("The request body is not valid JSON")
        return Visit(self.state, request, entry, key, entry.body or {}, fault)


def refused(refusal: Refusal, request_id: str, *, wording: str = "plain") -> Response:
    """The error answer."""
    body = refusal.body(request_id, wording=wording)
    return JSONResponse(body, refusal.status, headers={**_identity(request_id), **refusal.headers})


def _identity(request_id: str) -> dict[str, str]:
    return {"request-id": request_id, "anthropic-organization-id": "org-stand-in"}


def _logged(state: State, request: Request) -> LogEntry:
    headers = {k: v for k, v in request.headers.items() if k not in _SECRET_HEADERS}
    request_id = f"req_{uuid.uuid4().hex[:24]}"
    entry = LogEntry(len(state.log), state.clock.now(), request.method, request.url.path, request_id, headers)
    state.log.append(entry)
    return entry


def _parsed(raw: bytes) -> Json | None:
    """None for what is not a JSON object."""
    try:
        body = strict_json.loads(raw) if raw else None
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _key(state: State, request: Request) -> str:
    authorization = request.headers.get("authorization", "")
    key = authorization.removeprefix("Bearer ") if authorization.startswith("Bearer ") else ""
    key = key or request.headers.get("x-api-key", "")
    if key not in state.keys:
        message = "invalid bearer token" if key else "Authorization header is required"
        raise Refusal(message, status=401, type="authentication_error")
    return key


def _check_version(state: State, request: Request) -> None:
    known = {VERSION, OLD_VERSION} if state.policy.tolerant else {VERSION}
    version = request.headers.get("anthropic-version")
    if version is None:
        raise Refusal("anthropic-version: header is required")
    if version not in known:
        raise Refusal(f"anthropic-version: {version!r} is not a valid version")
