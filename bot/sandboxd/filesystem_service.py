"""envd's filesystem service, answered by the agent."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from weakref import WeakKeyDictionary

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from e2b.envd.filesystem import filesystem_connect
from e2b.envd.filesystem import filesystem_pb as pb
from protobuf import Oneof
from protobuf.wkt import Timestamp

from bot.sandboxd.channel import Reply, shown
from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.process_service import keepalive_of, sandbox_of
from bot.sandboxd.registry import Registry
from bot.sandboxd.sandbox import Sandbox
from bot.sandboxd.watching import Event, Watch, Watcher

_TYPES = {"file": pb.FileType.FILE, "directory": pb.FileType.DIRECTORY, "symlink": pb.FileType.SYMLINK}
_EVENTS = {
    "create": pb.EventType.CREATE,
    "write": pb.EventType.WRITE,
    "remove": pb.EventType.REMOVE,
    "rename": pb.EventType.RENAME,
    "chmod": pb.EventType.CHMOD,
}
_MOST_WATCHERS = 64
_OWNERS = {1000: "user"}
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, with which the wire's times end; a file's may be far later."""
_CODES = {
    "FileNotFoundError": Code.NOT_FOUND,
    "FileExistsError": Code.ALREADY_EXISTS,
    "PermissionError": Code.PERMISSION_DENIED,
}


class FilesystemService(filesystem_connect.Filesystem):
    """Every path is resolved inside, by the agent."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._watchers: WeakKeyDictionary[Sandbox, dict[str, Watcher]] = WeakKeyDictionary()

    async def stat(
        self, request: pb.StatRequest, ctx: RequestContext[pb.StatRequest, pb.StatResponse], /
    ) -> pb.StatResponse:
        return pb.StatResponse(entry=_one(await self._ask(ctx, "describe", path=request.path)))

    async def list_dir(
        self,
        request: pb.ListDirRequest,
        ctx: RequestContext[pb.ListDirRequest, pb.ListDirResponse],
        /,
    ) -> pb.ListDirResponse:
        reply = await self._ask(ctx, "listing", path=request.path, depth=max(1, request.depth))
        entries = reply.fields.get("entries")
        return pb.ListDirResponse(entries=[_entry(entry) for entry in entries] if isinstance(entries, list) else [])

    async def make_dir(
        self,
        request: pb.MakeDirRequest,
        ctx: RequestContext[pb.MakeDirRequest, pb.MakeDirResponse],
        /,
    ) -> pb.MakeDirResponse:
        return pb.MakeDirResponse(entry=_one(await self._ask(ctx, "make_dir", path=request.path)))

    async def move(
        self, request: pb.MoveRequest, ctx: RequestContext[pb.MoveRequest, pb.MoveResponse], /
    ) -> pb.MoveResponse:
        reply = await self._ask(ctx, "move", source=request.source, destination=request.destination)
        return pb.MoveResponse(entry=_one(reply))

    async def remove(
        self,
        request: pb.RemoveRequest,
        ctx: RequestContext[pb.RemoveRequest, pb.RemoveResponse],
        /,
    ) -> pb.RemoveResponse:
        await self._ask(ctx, "remove", path=request.path)
        return pb.RemoveResponse()

    async def watch_dir(
        self,
        request: pb.WatchDirRequest,
        ctx: RequestContext[pb.WatchDirRequest, pb.WatchDirResponse],
        /,
    ) -> AsyncIterator[pb.WatchDirResponse]:
        sandbox, keepalive = sandbox_of(self._registry, ctx.request_headers), keepalive_of(ctx.request_headers)
        with _answered():
            watch = await Watch.begin(sandbox, request.path, recursive=request.recursive)
        try:
            yield _watched("start", pb.WatchDirResponse.StartEvent())
            until = None if ctx.timeout_ms is None else time.monotonic() + ctx.timeout_ms / 1000
            while True:
                left = keepalive if until is None else min(keepalive, until - time.monotonic())
                if left <= 0:
                    raise ConnectError(Code.DEADLINE_EXCEEDED, "the watch's time was up")
                happened = await watch.next(left)
                if sandbox.gone.is_set():
                    raise ConnectError(Code.UNAVAILABLE, "the sandbox ended")
                for event in happened:
                    yield _watched("filesystem", _told(event))
                if not happened:
                    yield _watched("keepalive", pb.WatchDirResponse.KeepAlive())
        finally:
            watch.end()

    async def create_watcher(
        self,
        request: pb.CreateWatcherRequest,
        ctx: RequestContext[pb.CreateWatcherRequest, pb.CreateWatcherResponse],
        /,
    ) -> pb.CreateWatcherResponse:
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        watchers = self._watchers.setdefault(sandbox, {})
        if len(watchers) >= _MOST_WATCHERS:
            raise ConnectError(Code.RESOURCE_EXHAUSTED, f"more than {_MOST_WATCHERS} watchers")
        with _answered():
            watcher = Watcher(await Watch.begin(sandbox, request.path, recursive=request.recursive))
        identifier = secrets.token_hex(8)
        watchers[identifier] = watcher
        sandbox.run(watcher.collect(sandbox.gone))
        return pb.CreateWatcherResponse(watcher_id=identifier)

    async def get_watcher_events(
        self,
        request: pb.GetWatcherEventsRequest,
        ctx: RequestContext[pb.GetWatcherEventsRequest, pb.GetWatcherEventsResponse],
        /,
    ) -> pb.GetWatcherEventsResponse:
        watcher = self._watchers_of(ctx).get(request.watcher_id)
        if watcher is None:
            raise ConnectError(Code.NOT_FOUND, f"watcher '{request.watcher_id}' not found")
        return pb.GetWatcherEventsResponse(events=[_told(event) for event in watcher.take()])

    async def remove_watcher(
        self,
        request: pb.RemoveWatcherRequest,
        ctx: RequestContext[pb.RemoveWatcherRequest, pb.RemoveWatcherResponse],
        /,
    ) -> pb.RemoveWatcherResponse:
        watcher = self._watchers_of(ctx).pop(request.watcher_id, None)
        if watcher is not None:
            watcher.stop()
        return pb.RemoveWatcherResponse()

    def _watchers_of(self, ctx: RequestContext[Any, Any]) -> dict[str, Watcher]:
        return self._watchers.get(sandbox_of(self._registry, ctx.request_headers), {})

    async def _ask(self, ctx: RequestContext[Any, Any], op: str, **arguments: object) -> Reply:
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        with _answered():
            return await sandbox.ask(op, **arguments)


@contextmanager
def _answered() -> Iterator[None]:
    """The agent's refusals as the wire has them."""
    try:
        yield
    except AgentRefused as refusal:
        raise ConnectError(_CODES.get(refusal.kind, Code.INVALID_ARGUMENT), str(refusal)) from None
    except SandboxGone as gone:
        raise ConnectError(Code.UNAVAILABLE, str(gone)) from None


def _told(event: Event) -> pb.FilesystemEvent:
    kind, name = event
    return pb.FilesystemEvent(name=shown(name), type=_EVENTS[kind])


def _watched(name: str, value: object) -> pb.WatchDirResponse:
    chosen: Any = Oneof(name, value)
    return pb.WatchDirResponse(event=chosen)


def _one(reply: Reply) -> pb.EntryInfo:
    return _entry(reply.fields.get("entry"))


def _entry(given: object) -> pb.EntryInfo:
    """From the agent's words, none of which is believed to have the right type."""
    fields: Mapping[str, object] = given if isinstance(given, dict) else {}
    target = fields.get("target")
    entry = pb.EntryInfo(
        name=_text(fields, "name"),
        path=_text(fields, "path"),
        type=_TYPES.get(_text(fields, "type"), pb.FileType.UNSPECIFIED),
        size=_number(fields, "size"),
        mode=_number(fields, "mode") & 0o7777,
        permissions=_text(fields, "permissions"),
        owner=_OWNERS.get(_number(fields, "uid"), "root"),
        group=_OWNERS.get(_number(fields, "gid"), "root"),
        modified_time=Timestamp.from_datetime(datetime.fromtimestamp(min(_number(fields, "mtime"), _LAST_SECOND), UTC)),
    )
    if isinstance(target, str):
        entry.symlink_target = _text(fields, "target")
    return entry


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return shown(value) if isinstance(value, str) else ""


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    return min(max(0, int(value)), 1 << 50) if isinstance(value, int | float) else 0
