"""envd's plain HTTP: whole files in and out, and the health check."""

from __future__ import annotations

import asyncio
import errno
import os
import zlib
from collections.abc import AsyncIterator
from pathlib import PurePosixPath

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bot.sandboxd.answers import Refusal
from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.sandbox import Sandbox

_CHUNK = 256 << 10
_USERS = frozenset({"", "user", "root"})
_STATUS = {
    "FileNotFoundError": 404,
    "IsADirectoryError": 400,
    "ValueError": 400,
    "PermissionError": 403,
    "NotADirectoryError": 400,
}


async def download(request: Request, sandbox: Sandbox) -> Response:
    """The bytes of one file; compressed when the client asks for gzip."""
    _check_user(request)
    fd, _ = await _open(sandbox, request.query_params.get("path", ""), "r")
    # The SDK names gzip alone when its caller asks for it; every HTTP client names it among others, and means nothing.
    gzip = request.headers.get("accept-encoding") == "gzip"
    headers = {"content-encoding": "gzip"} if gzip else {"content-length": str(os.fstat(fd).st_size)}
    body = _read(fd, os.fstat(fd).st_size)
    return StreamingResponse(_gzip(body) if gzip else body, media_type="application/octet-stream", headers=headers)


async def upload(request: Request, sandbox: Sandbox) -> Response:
    """One file as the raw body, or any number as parts of a form."""
    _check_user(request)
    path = request.query_params.get("path", "")
    if request.headers.get("content-type", "").startswith("application/octet-stream"):
        gzip = request.headers.get("content-encoding", "") == "gzip"
        written = [await _write(sandbox, path, _gunzip(request.stream()) if gzip else request.stream())]
    else:
        written = []
        async with request.form(max_files=10_000) as form:
            for part in form.getlist("file"):
                if not isinstance(part, UploadFile):
                    raise Refusal(400, "a part named 'file' is not a file")
                written.append(await _write(sandbox, path or part.filename or "", _parts(part)))
    return JSONResponse(written)


async def _write(sandbox: Sandbox, path: str, chunks: AsyncIterator[bytes]) -> dict[str, str]:
    fd, resolved = await _open(sandbox, path, "w")
    try:
        async for chunk in chunks:
            await asyncio.to_thread(_write_all, fd, chunk)
    except OSError as error:
        status = 507 if error.errno in {errno.ENOSPC, errno.EDQUOT} else 500
        raise Refusal(status, f"cannot write {resolved}: {error.strerror}") from None
    except zlib.error as error:
        raise Refusal(400, f"the body is not gzip: {error}") from None
    finally:
        os.close(fd)
    return {"name": PurePosixPath(resolved).name, "path": resolved, "type": "file"}


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


async def _open(sandbox: Sandbox, path: str, mode: str) -> tuple[int, str]:
    if not path:
        raise Refusal(400, "no path given")
    try:
        return await sandbox.open(path, mode)
    except AgentRefused as refusal:
        full = refusal.errno in {errno.ENOSPC, errno.EDQUOT}
        raise Refusal(507 if full else _STATUS.get(refusal.kind, 500), str(refusal)) from None
    except SandboxGone:
        raise Refusal(502, "The sandbox was not found") from None


async def _read(fd: int, size: int) -> AsyncIterator[bytes]:
    """Exactly the promised number of bytes, or an error: a file may shrink while it is sent."""
    try:
        while size:
            data = await asyncio.to_thread(os.read, fd, min(size, _CHUNK))
            if not data:
                raise OSError(errno.EIO, "the file became shorter while it was read")
            size -= len(data)
            yield data
    finally:
        os.close(fd)


async def _parts(part: UploadFile) -> AsyncIterator[bytes]:
    while data := await part.read(_CHUNK):
        yield data


async def _gzip(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(level=1, wbits=31)
    async for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()


async def _gunzip(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """In bounded steps, so a small body cannot become a large buffer."""
    unpacker = zlib.decompressobj(wbits=31)
    async for chunk in chunks:
        rest = chunk
        while rest and not unpacker.eof:
            yield unpacker.decompress(rest, _CHUNK)
            rest = unpacker.unconsumed_tail
    while not unpacker.eof:
        data = unpacker.decompress(unpacker.unconsumed_tail, _CHUNK)
        if not data:
            raise zlib.error("it ends too early")
        yield data


def _check_user(request: Request) -> None:
    user = request.query_params.get("username", "")
    if user not in _USERS:
        raise Refusal(401, f"invalid username: '{user}'")
