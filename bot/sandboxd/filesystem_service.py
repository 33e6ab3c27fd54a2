"""envd's filesystem service, answered by the agent. Watching is not served."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from e2b.envd.filesystem import filesystem_connect
from e2b.envd.filesystem import filesystem_pb as pb
from protobuf.wkt import Timestamp

from bot.sandboxd.channel import Reply
from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.process_service import sandbox_of
from bot.sandboxd.registry import Registry

_TYPES = {"file": pb.FileType.FILE, "directory": pb.FileType.DIRECTORY, "symlink": pb.FileType.SYMLINK}
_OWNERS = {1000: "user"}
_CODES = {
    "FileNotFoundError": Code.NOT_FOUND,
    "FileExistsError": Code.ALREADY_EXISTS,
    "PermissionError": Code.PERMISSION_DENIED,
}


class FilesystemService(filesystem_connect.Filesystem):
    """Every path is resolved inside, by the agent."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def stat(
        self, request: pb.StatRequest, ctx: RequestContext[pb.StatRequest, pb.StatResponse], /
    ) -> pb.StatResponse:
        return pb.StatResponse(entry=_one(await self._ask(ctx, "stat", path=request.path)))

    async def list_dir(
        self,
        request: pb.ListDirRequest,
        ctx: RequestContext[pb.ListDirRequest, pb.ListDirResponse],
        /,
    ) -> pb.ListDirResponse:
        reply = await self._ask(ctx, "list", path=request.path, depth=max(1, request.depth))
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

    async def _ask(self, ctx: RequestContext[Any, Any], op: str, **arguments: object) -> Reply:
        sandbox = sandbox_of(self._registry, ctx.request_headers)
        try:
            return await sandbox.ask(op, **arguments)
        except AgentRefused as refusal:
            raise ConnectError(_CODES.get(refusal.kind, Code.INVALID_ARGUMENT), str(refusal)) from None
        except SandboxGone as gone:
            raise ConnectError(Code.UNAVAILABLE, str(gone)) from None


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
        modified_time=Timestamp.from_datetime(datetime.fromtimestamp(_number(fields, "mtime"), UTC)),
    )
    if isinstance(target, str):
        entry.symlink_target = _text(fields, "target")
    return entry


def _text(fields: Mapping[str, object], name: str) -> str:
    """Names that are not UTF-8 are shown with replacement characters: the wire has no other way."""
    value = fields.get(name)
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(value, str) else ""


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    return min(max(0, int(value)), 1 << 50) if isinstance(value, int | float) else 0
