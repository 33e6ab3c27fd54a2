"""envd's plain HTTP: whole files in and out.

They are memory or the machine's own /usr, so they are read and written without a thread: one that was abandoned by a client that left
could still use a descriptor's number when it is another file's.
"""

from __future__ import annotations

import asyncio
import errno
import os
import zlib
from collections.abc import AsyncIterator
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from bot.sandboxd.answers import NOT_FOUND, Refusal
from bot.sandboxd.errors import AgentRefused, SandboxGone
from bot.sandboxd.forms import FormFiles
from bot.sandboxd.sandbox import Sandbox

_CHUNK = 256 << 10
_USERS = frozenset({"", "user", "root"})
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})
_STATUS = {
    errno.ENOENT: 404,
    errno.EACCES: 403,
    errno.EPERM: 403,
    errno.EROFS: 403,
    errno.ENOSPC: 507,
    errno.EDQUOT: 507,
    **dict.fromkeys(_OURS, 500),
}
"""By what the system said; anything else (a name too long, a link in a circle, a file for a directory) is the path's fault."""


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
    kind, encoding = request.headers.get("content-type", ""), request.headers.get("content-encoding", "")
    if encoding not in {"", "identity", "gzip"}:
        raise Refusal(400, f"a body in {encoding[:40]!a} is not understood")
    body = _gunzip(request.stream()) if encoding == "gzip" else request.stream()
    try:
        raw = kind.startswith("application/octet-stream")
        written = [await _file(body, sandbox, path)] if raw else await _form(body, FormFiles(kind), sandbox, path)
    except zlib.error as error:
        raise Refusal(400, f"the body is not gzip: {error}") from None
    except ValueError as error:
        raise Refusal(400, f"{error}") from None
    return JSONResponse([_told(path) for path in written])


async def _file(body: AsyncIterator[bytes], sandbox: Sandbox, path: str) -> str:
    fd, resolved = await _open(sandbox, path, "w")
    try:
        async for chunk in body:
            _put(sandbox, fd, chunk, resolved)
    finally:
        os.close(fd)
    return resolved


async def _form(body: AsyncIterator[bytes], form: FormFiles, sandbox: Sandbox, path: str) -> list[str]:
    written, fd = [""], -1
    try:
        async for chunk in body:
            for piece in form.feed(chunk):
                if isinstance(piece, str):
                    fd, resolved = await _open(sandbox, path or piece, "w")
                    written.append(resolved)
                elif piece is None:
                    os.close(fd)
                    fd = -1
                else:
                    _put(sandbox, fd, piece, written[-1])
    finally:
        if fd >= 0:
            os.close(fd)
    if not form.complete:
        raise ValueError("the form ends before its last boundary")
    return written[1:]


def _told(path: str) -> dict[str, str]:
    return {"name": PurePosixPath(path).name, "path": path, "type": "file"}


def _put(sandbox: Sandbox, fd: int, data: bytes, path: str) -> None:
    if sandbox.gone.is_set():  # else a client that goes on sending would keep a dead sandbox's memory
        raise Refusal(502, NOT_FOUND)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    except OSError as error:
        raise Refusal(
            507 if _STATUS.get(error.errno or 0) == 507 else 500, f"cannot write {path}: {error.strerror}"
        ) from None


async def _open(sandbox: Sandbox, path: str, mode: str) -> tuple[int, str]:
    if not path:
        raise Refusal(400, "no path given")
    try:
        return await sandbox.open(path, mode)
    except AgentRefused as refusal:
        raise Refusal(_STATUS.get(refusal.errno or 0, 400), str(refusal)) from None
    except SandboxGone:
        raise Refusal(502, NOT_FOUND) from None


async def _read(fd: int, size: int) -> AsyncIterator[bytes]:
    """Exactly the promised number of bytes, or an error: a file may shrink while it is sent."""
    left = size
    try:
        while left:
            data = os.read(fd, min(left, _CHUNK))
            if not data:
                raise OSError(errno.EIO, "the file became shorter while it was read")
            left -= len(data)
            yield data
            await asyncio.sleep(0)  # others have their turn, and the end of the connection can be noticed
    finally:
        os.close(fd)


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
