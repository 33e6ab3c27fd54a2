"""The ASGI application: one request from bytes to answer, with journal, faults, versions and permissions."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from bot.custody.git import GitError
from bot.emulators.github.auth import NOBODY, Actor, identify
from bot.emulators.github.body import Body
from bot.emulators.github.call import Call, Handler, Reply, natural
from bot.emulators.github.clock import stamp
from bot.emulators.github.control import Control
from bot.emulators.github.errors import ApiError, forbidden, not_found
from bot.emulators.github.faults import Fault
from bot.emulators.github.gate import admit
from bot.emulators.github.journal import Entry
from bot.emulators.github.manifest import SettingsPage
from bot.emulators.github.permissions import TABLE
from bot.emulators.github.records import Repository
from bot.emulators.github.router import Found, Router
from bot.emulators.github.smart_http import SmartHttp
from bot.emulators.github.urls import Urls
from bot.emulators.github.versions import NEW_VERSION, OLD_VERSION, as_of
from bot.emulators.github.world import World

_PREFIX = "/api/v3"
_LIMIT = 40 * 1024 * 1024


@dataclass(slots=True)
class _Trace:
    """What the journal will say about a request."""

    actor: str = "nobody"
    permission: str = "-"
    version: str = OLD_VERSION


class Service:
    """Answers everything: REST under `/` and `/api/v3`, GraphQL, git, App registration, and the control surface."""

    def __init__(self, world: World, handlers: Mapping[str, Handler]) -> None:
        self._world = world
        self._handlers = handlers
        self._router = Router(handlers)
        self._git = SmartHttp(world)
        self._control = Control(world)
        self._page = SettingsPage(world)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        path = scope.get("raw_path", scope["path"].encode()).split(b"?")[0].decode("latin-1")
        if path.startswith("/_stand-in/"):
            await _send(send, await self._control.answer(request, path.removeprefix("/_stand-in/")))
        elif self._page.recognises(request.method, path):
            await _send(send, await self._page.answer(request))
        elif self._git.recognises(path):
            await self._journalled(request, path, send, git=True)
        else:
            await self._journalled(request, path, send)

    async def _journalled(self, request: Request, path: str, send: Send, *, git: bool = False) -> None:
        began = time.monotonic()
        trace = _Trace()
        faults = self._world.faults.for_request(request.method, path)
        await asyncio.sleep(sum(fault.seconds for fault in faults if fault.kind == "delay"))
        fault = next((one for one in faults if one.kind != "delay"), None)
        reply = None
        if fault is None or fault.when == "after":
            answer = self._git.answer if git else self._answer
            reply = await answer(request, path, trace)
        if fault is not None:
            reply = _marked(_misfortune(fault, self._world), fault)
        self._note(request, path, trace, reply.status if reply else 0, began)
        if reply is None:
            await _break(send)
        else:
            await _send(send, reply)

    def _note(self, request: Request, path: str, trace: _Trace, status: int, began: float) -> None:
        self._world.journal.add(
            Entry(
                number=self._world.journal.next_number,
                at=stamp(self._world.clock.now()),
                method=request.method,
                path=path,
                query=request.url.query,
                actor=trace.actor,
                permission=trace.permission,
                status=status,
                version=trace.version,
                seconds=round(time.monotonic() - began, 4),
            )
        )

    async def _answer(self, request: Request, path: str, trace: _Trace) -> Reply:
        try:
            reply = await self._handle(request, path, trace)
        except ApiError as refusal:
            reply = Reply(refusal.body(), refusal.status, headers=refusal.headers)
        except GitError as failure:
            reply = Reply({"message": f"git: {failure}", "status": "422"}, 422)
        return _conditional(request, replace(reply, headers={**_standard_headers(trace), **reply.headers}))

    async def _handle(self, request: Request, path: str, trace: _Trace) -> Reply:
        if not request.headers.get("user-agent"):
            raise forbidden(
                "Request forbidden by administrative rules. Please make sure your request has a User-Agent header"
            )
        trace.version = _version(request)
        actor = identify(self._world, request.headers.get("authorization"))
        trace.actor = actor.name
        prefix, bare = _split(path)
        urls = Urls(f"http://{request.headers.get('host', 'localhost')}", prefix)
        bare, repository = self._by_id(bare)
        found = self._router.find(request.method, bare)
        if found is None:
            raise not_found()
        if repository is None:
            repository = self._repository(found, bare, actor, urls)
        trace.permission = admit(
            self._world, TABLE[found.key], actor, repository, request.method, found.values.get("org", "")
        )
        call = Call(
            world=self._world,
            actor=actor,
            urls=urls,
            path=bare,
            values=found.values,
            query=dict(request.query_params),
            accept=request.headers.get("accept", "*/*"),
            version=trace.version,
            body=Body.parse(await _read(request)) if request.method != "GET" else Body(),
            found=repository,
        )
        _refuse_archived(call, request.method)
        reply = await self._run(found.key, call, request.method)
        return replace(reply, json=as_of(trace.version, reply.json))

    async def _run(self, key: str, call: Call, method: str) -> Reply:
        """Changes of one repository happen one after the other; reads don't wait."""
        alone = method != "GET" and call.found is not None
        async with call.found.lock if alone and call.found else contextlib.nullcontext():
            return await self._handlers[key](call)

    def _by_id(self, path: str) -> tuple[str, Repository | None]:
        """`/repositories/{id}/…` is the name-free form that redirects point at."""
        parts = path.split("/", 3)
        number = natural(parts[2]) if len(parts) > 2 and parts[1] == "repositories" else None
        if number is None:
            return path, None
        repository = self._world.registry.repositories.get(number)
        if repository is None:
            raise not_found()
        tail = f"/{parts[3]}" if len(parts) == 4 else ""
        return f"/repos/{repository.full_name}{tail}", repository

    def _repository(self, found: Found, path: str, actor: Actor, urls: Urls) -> Repository | None:
        if "repo" not in found.values:
            return None
        full_name = f"{found.values['owner']}/{found.values['repo']}"
        repository = self._world.repository(full_name)
        if repository is not None:
            return repository
        moved = self._world.moved(full_name)
        if moved is None or actor is NOBODY:
            raise not_found()
        tail = path.split("/", 4)[4] if path.count("/") >= 4 else ""
        address = urls.api(f"repositories/{moved.id}" + (f"/{tail}" if tail else ""))
        raise ApiError(301, "Moved Permanently", headers={"Location": address})


def _refuse_archived(call: Call, method: str) -> None:
    if call.found is not None and call.found.archived and method != "GET" and call.path.count("/") > 3:
        raise forbidden("Repository was archived so is read-only.")


def _split(path: str) -> tuple[str, str]:
    if path == "/api/graphql":
        return "", "/graphql"
    if path == _PREFIX or path.startswith(f"{_PREFIX}/"):
        return _PREFIX, path.removeprefix(_PREFIX) or "/"
    return "", path


def _version(request: Request) -> str:
    asked = request.headers.get("x-github-api-version", OLD_VERSION)
    if asked not in {OLD_VERSION, NEW_VERSION}:
        raise ApiError(
            400, f'The version "{unquote(asked)}" in the X-GitHub-Api-Version header is not a supported version'
        )
    return asked


async def _read(request: Request) -> bytes:
    """The whole body, refused when it is larger than the service takes."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _LIMIT:
            raise ApiError(413, "Request body is too large")
        parts.append(part)
    return b"".join(parts)


def _conditional(request: Request, reply: Reply) -> Reply:
    """What was read carries a validator; whoever brings it back unchanged is told so and gets no body."""
    if request.method != "GET" or reply.status != 200:
        return reply
    tag = f'W/"{hashlib.sha256(reply.content()).hexdigest()}"'
    headers = {
        **reply.headers,
        "ETag": tag,
        "Cache-Control": "private, max-age=60, s-maxage=60",
        "Vary": "Accept, Authorization",
    }
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    if tag.removeprefix("W/") in known or "*" in known:
        return Reply(raw=b"", status=304, headers=headers)
    return replace(reply, headers=headers)


def _standard_headers(trace: _Trace) -> dict[str, str]:
    headers = {
        "X-GitHub-Media-Type": "github.v3; format=json",
        "X-GitHub-Api-Version-Selected": trace.version,
        "X-GitHub-Request-Id": secrets.token_hex(8).upper(),
        "X-RateLimit-Limit": "5000",
        "X-RateLimit-Remaining": "4999",
        "X-RateLimit-Used": "1",
        "X-RateLimit-Reset": str(int(time.time()) + 3600),
        "X-RateLimit-Resource": "core",
    }
    if ":" in trace.permission:
        headers["X-Accepted-GitHub-Permissions"] = trace.permission.replace(":", "=")
    return headers


_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    " If you reach out to GitHub Support for help, please include the request ID."
)


def _marked(reply: Reply | None, fault: Fault) -> Reply | None:
    """An injected answer says that it is one, for whoever reads what was on the wire."""
    return reply and replace(reply, headers={**reply.headers, "X-Stand-In-Fault": fault.kind})


def _misfortune(fault: Fault, world: World) -> Reply | None:
    match fault.kind:
        case "drop":
            return None
        case "secondary":
            status = fault.status if fault.status in {403, 429} else 403
            after = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            return Reply({"message": _SECONDARY, "status": str(status)}, status, headers={**after, **fault.headers})
        case "primary":
            reset = int(world.clock.now().timestamp() + (fault.retry_after or 3000))
            headers = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(reset)}
            return Reply({"message": "API rate limit exceeded for installation."}, 403, headers=headers)
        case _:
            return Reply({"message": fault.message, "status": str(fault.status)}, fault.status, headers=fault.headers)


async def _send(send: Send, reply: Reply) -> None:
    content = reply.content()
    headers = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in reply.headers.items()]
    if content or reply.status not in {204, 304}:
        headers += [(b"content-type", reply.media_type.encode()), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def _break(send: Send) -> None:
    """Promise more than is sent: the server then closes the connection and the client sees it break."""
    headers = [(b"content-length", b"64"), (b"x-stand-in-fault", b"drop")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{"})
