"""E2B's control plane: the REST calls with an API key. What is not served says so with 501."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from urllib.parse import parse_qsl, unquote

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.sandboxd.answers import Refusal
from bot.sandboxd.egress.rules import Destination, parse_entry
from bot.sandboxd.errors import IsolationUnavailable, NotKept, SandboxGone, TooManySandboxes, UnknownTemplateError
from bot.sandboxd.limits import Limits
from bot.sandboxd.metrics import sample
from bot.sandboxd.registry import Registry
from bot.sandboxd.sandbox import Request as CreateRequest
from bot.sandboxd.sandbox import Sandbox, State
from bot.sandboxd.snapshots import NAME, Snapshot

ENVD_VERSION = "0.5.7"
"""The SDK switches features on by it: standard input, default user, closing input, raw and gzip uploads."""

_DEFAULT_SECONDS = 300
_MOST_SECONDS = 1 << 31
_PAGE = 100
_BODY_CAP = 1 << 20
_UNSERVED = ("mcp", "iam", "volumeMounts")
_UNSERVED_NETWORK = ("rules", "egressProxy", "dnsServers")
_EVERYTHING = "0.0.0.0/0"

_Handler = Callable[[Request], Awaitable[Response]]
_Place = tuple[float, str]
"""Where a row stands in a list: since when it is there, and its id."""


class Control:
    """The routes of the control plane over one registry."""

    def __init__(self, registry: Registry, api_key: str, limits: Limits) -> None:
        self._registry = registry
        self._key = api_key.encode()
        self._limits = limits

    def routes(self) -> list[Route]:
        served: list[tuple[str, str, _Handler]] = [
            ("POST", "/v2/sandboxes", self._create),
            ("POST", "/sandboxes", self._create),
            ("GET", "/v2/sandboxes", self._list),
            ("POST", "/v2/sandboxes/{id}/connect", self._connect),
            ("POST", "/sandboxes/{id}/connect", self._connect),
            ("GET", "/sandboxes/{id}", self._info),
            ("DELETE", "/sandboxes/{id}", self._kill),
            ("POST", "/sandboxes/{id}/timeout", self._timeout),
            ("POST", "/sandboxes/{id}/pause", self._pause),
            ("PUT", "/sandboxes/{id}/network", self._network),
            ("POST", "/sandboxes/{id}/snapshots", self._snapshot),
            ("GET", "/snapshots", self._snapshots),
            ("DELETE", "/templates/{id}", self._delete_snapshot),
            ("GET", "/sandboxes/{id}/metrics", self._metrics),
            ("GET", "/sandboxes/{id}/egress", self._egress),
        ]
        unserved = (
            "/sandboxes/{id}/{rest:path}",
            "/templates/{rest:path}",
            "/v3/templates",
            "/secrets",
            "/volumes",
        )
        return [
            *(Route(path, self._guarded(handler), methods=[method]) for method, path, handler in served),
            *(Route(path, self._guarded(_not_served), methods=["GET", "POST", "PUT", "DELETE"]) for path in unserved),
        ]

    def _guarded(self, handler: _Handler) -> _Handler:
        async def guarded(request: Request) -> Response:
            given = request.headers.get("x-api-key", "").encode()
            if not hmac.compare_digest(given, self._key):
                raise Refusal(401, "invalid API key")
            try:
                return await handler(request)
            except SandboxGone:
                raise Refusal(404, "the sandbox was not found") from None

        return guarded

    async def _create(self, request: Request) -> Response:
        wanted = _wanted(await _body(request))
        try:
            sandbox = await self._registry.create(wanted, idempotency_key=request.headers.get("idempotency-key"))
        except UnknownTemplateError as unknown:
            raise Refusal(404, str(unknown)) from None
        except TooManySandboxes as many:
            raise Refusal(429, str(many)) from None
        except (IsolationUnavailable, OSError) as fault:
            raise Refusal(500, f"no sandbox could be started: {fault}") from None
        return JSONResponse(_made(sandbox), 201)

    async def _list(self, request: Request) -> Response:
        query = request.query_params
        metadata = {unquote(name): unquote(value) for name, value in parse_qsl(query.get("metadata", ""))}
        states = set(query["state"].split(",")) if query.get("state") else {State.RUNNING, State.PAUSED}
        after, template = _moment(query.get("startedAfter")), query.get("template")
        matching = [
            sandbox
            for sandbox in self._registry.all()
            if sandbox.state in states
            and metadata.items() <= sandbox.request.metadata.items()
            and sandbox.started_at > after
            and template in {None, sandbox.request.template}
        ]
        rows = [((sandbox.started_at, sandbox.id), self._detail(sandbox)) for sandbox in matching]
        return _page(rows, query, newest_first=query.get("order") == "desc")

    async def _connect(self, request: Request) -> Response:
        sandbox, body = self._named(request), await _body(request)
        seconds = _seconds(body, _DEFAULT_SECONDS)
        if sandbox.state is State.PAUSED:
            await self._registry.resume(sandbox, seconds)
            return JSONResponse(_made(sandbox), 201)
        self._registry.lengthen(sandbox, seconds)
        return JSONResponse(_made(sandbox))

    async def _info(self, request: Request) -> Response:
        return JSONResponse(self._detail(self._named(request)))

    async def _kill(self, request: Request) -> Response:
        await self._registry.kill(self._named(request))
        return Response(status_code=204)

    async def _timeout(self, request: Request) -> Response:
        sandbox, body = self._named(request), await _body(request)
        self._registry.lease(sandbox, _seconds(body, _DEFAULT_SECONDS))
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        sandbox = self._named(request)
        if sandbox.state is State.PAUSED:
            raise Refusal(409, "the sandbox is paused already")
        await self._registry.pause(sandbox)
        return Response(status_code=204)

    async def _network(self, request: Request) -> Response:
        sandbox, body = self._named(request), await _body(request)
        await sandbox.allow(_egress(body))
        return Response(status_code=204)

    async def _metrics(self, request: Request) -> Response:
        """Of now: samples of the past are not kept, so a time span that has ended holds none."""
        sandbox, end = self._named(request), request.query_params.get("end")
        if sandbox.state is not State.RUNNING or (end is not None and _count(end, 0) < int(time.time())):
            return JSONResponse([])
        return JSONResponse([await sample(sandbox, self._limits)])

    async def _egress(self, request: Request) -> Response:
        """What was decided about attempts to get out: ours, E2B has no such call."""
        noted = self._named(request).gate.noted
        return JSONResponse([{"at": _iso(each.at), **asdict(each.decision)} for each in noted])

    async def _snapshot(self, request: Request) -> Response:
        """Of the files: what runs is not kept, so a request for it is refused."""
        sandbox, body = self._named(request), await _body(request)
        name = body.get("name") or ""
        if body.get("memory") is not False:
            raise Refusal(501, "this server keeps files only: ask for a snapshot with mode 'filesystem'")
        if not isinstance(name, str) or (name and not NAME.fullmatch(name)):
            raise Refusal(400, "a snapshot's name is of lower-case letters, digits, '-' and '_'")
        if sandbox.state is not State.RUNNING:
            raise Refusal(409, "the sandbox is paused")
        try:
            return JSONResponse(_kept(await self._registry.keep(sandbox, name)), 201)
        except NotKept as fault:
            raise Refusal(409, f"no snapshot was made: {fault}") from None

    async def _snapshots(self, request: Request) -> Response:
        query = request.query_params
        if query.get("sandboxID"):
            raise Refusal(501, "this server does not note which sandbox a snapshot is of")
        name = query.get("name", "").removesuffix(":default")
        found = [each for each in self._registry.snapshots.all() if not name or name in {each.id, each.name}]
        return _page([((each.made_at, each.id), _kept(each)) for each in found], query)

    async def _delete_snapshot(self, request: Request) -> Response:
        snapshot = self._registry.snapshots.find(request.path_params["id"])
        if snapshot is None:
            raise Refusal(404, f"template '{request.path_params['id']}' not found")
        self._registry.snapshots.delete(snapshot)
        return Response(status_code=204)

    def _named(self, request: Request) -> Sandbox:
        sandbox = self._registry.find(request.path_params["id"])
        if sandbox is None:
            raise Refusal(404, f"sandbox '{request.path_params['id']}' was not found")
        return sandbox

    def _detail(self, sandbox: Sandbox) -> dict[str, object]:
        return {
            **_made(sandbox),
            "startedAt": _iso(sandbox.started_at),
            "endAt": _iso(sandbox.ends_at),
            "cpuCount": max(1, round(self._limits.cpus)),
            "memoryMB": self._limits.memory_bytes >> 20,
            "diskSizeMB": self._limits.home_bytes >> 20,
            "state": sandbox.state.value,
            "metadata": dict(sandbox.request.metadata),
            "allowInternetAccess": False,
        }


def _page(rows: list[tuple[_Place, dict[str, object]]], query: QueryParams, *, newest_first: bool = False) -> Response:
    """The asked part of the rows, oldest first as they come, and in a header after which of them the next part begins.

    Its place and not its number, so that who ends sandboxes while reading the list passes none by.
    """
    limit = _count(query.get("limit"), _PAGE)
    if not 0 < limit <= _PAGE:
        raise Refusal(400, f"'limit' is from 1 to {_PAGE}")
    if newest_first:
        rows.reverse()
    if (token := query.get("nextToken")) is not None:
        after = _place(token)
        rows = [row for row in rows if (row[0] < after if newest_first else row[0] > after)]
    at, name = rows[limit - 1][0] if len(rows) > limit else (0.0, "")
    headers = {"x-next-token": f"{at.hex()}~{name}"} if name else {}
    return JSONResponse([row for _, row in rows[:limit]], headers=headers)


def _place(token: str) -> _Place:
    at, _, name = token.partition("~")
    try:
        return float.fromhex(at), name
    except (ValueError, OverflowError):
        raise Refusal(400, f"{token[:80]!a} is no 'nextToken' of this server") from None


def _kept(snapshot: Snapshot) -> dict[str, object]:
    return {"snapshotID": snapshot.id, "names": [snapshot.name] if snapshot.name else []}


def _made(sandbox: Sandbox) -> dict[str, object]:
    return {
        "templateID": sandbox.request.template,
        "sandboxID": sandbox.id,
        "clientID": "local",
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": sandbox.token,
    }


def _wanted(body: Mapping[str, object]) -> CreateRequest:
    """Refuses what would have to be pretended: any way out, any mount, any gateway."""
    for name in _UNSERVED:
        if body.get(name):
            raise Refusal(501, f"'{name}' is not served by this server")
    network = body.get("network") or {}
    if not isinstance(network, dict):
        raise Refusal(400, "'network' is not an object")
    closed = {"denyOut": [_EVERYTHING]} if body.get("allow_internet_access") is False else {}
    template = body.get("templateID")
    if not isinstance(template, str):
        raise Refusal(400, "templateID is missing")
    return CreateRequest(
        template=template,
        timeout_seconds=_seconds(body, _DEFAULT_SECONDS),
        metadata=_texts(body, "metadata"),
        env=_texts(body, "envVars"),
        pause_at_expiry=body.get("autoPause") is True,
        egress=_egress({**closed, **network}),
    )


def _egress(network: Mapping[str, object]) -> frozenset[Destination]:
    """The hosts of an allow-list. Without one nothing is open; a list that leaves all else open too is refused."""
    for name in _UNSERVED_NETWORK:
        if network.get(name):
            raise Refusal(501, f"'{name}' is not served by this server")
    allowed, denied = network.get("allowOut") or [], network.get("denyOut") or []
    if not isinstance(allowed, list) or not isinstance(denied, list) or not all(isinstance(e, str) for e in allowed):
        raise Refusal(400, "'allowOut' and 'denyOut' are lists of text")
    if allowed and _EVERYTHING not in denied:
        raise Refusal(501, f"this server only opens named hosts: an allow-list needs denyOut [{_EVERYTHING}]")
    try:
        return frozenset(parse_entry(entry) for entry in allowed)
    except ValueError as error:
        raise Refusal(400, str(error)) from None


async def _not_served(request: Request) -> Response:
    raise Refusal(501, f"{request.method} {request.url.path} is not served by this server")


async def _body(request: Request) -> Mapping[str, object]:
    raw = b""
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > _BODY_CAP:
            raise Refusal(413, "the body is too large")
    try:
        body = json.loads(raw or b"{}")
        json.dumps(body, ensure_ascii=False).encode()  # half a surrogate pair could never be told again
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "the body is not a JSON object")
    return body


def _texts(body: Mapping[str, object], name: str) -> dict[str, str]:
    given = body.get(name) or {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise Refusal(400, f"'{name}' must map text to text")
    return dict(given)


def _seconds(body: Mapping[str, object], default: int) -> int:
    value = body.get("timeout", default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_SECONDS:
        raise Refusal(400, "'timeout' must be a number of seconds")
    return value


def _count(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise Refusal(400, f"{text[:80]!a} is not a number")
    return int(text)


def _moment(text: str | None) -> float:
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        raise Refusal(400, f"'{text}' is not a time") from None


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
