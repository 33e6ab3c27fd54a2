"""git over HTTP: `git http-backend` behind the stand-in's tokens, with the refusals that GitHub adds to a push."""

from __future__ import annotations

import asyncio
import re
import tempfile
import zlib
from typing import IO, Protocol

from starlette.requests import Request

from bot.custody.git import GitError, spawn
from bot.emulators.github.auth import NOBODY, Actor, identify
from bot.emulators.github.call import Reply
from bot.emulators.github.consequences import Moved, after_refs_moved
from bot.emulators.github.errors import ApiError
from bot.emulators.github.gitside.bare import ZERO, Bare
from bot.emulators.github.gitside.history import touched_workflows
from bot.emulators.github.gitside.pktline import PushRequest, read_push, refusal
from bot.emulators.github.records import Repository
from bot.emulators.github.urls import Urls
from bot.emulators.github.webhooks.events import Scene
from bot.emulators.github.world import World, at_least

_PATH = re.compile(r"/([^/]+)/([^/]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)")
_SETTINGS = (
    "http.receivepack=true",
    "receive.hideRefs=refs/pull",
    "receive.denyDeleteCurrent=refuse",
    "receive.advertisePushOptions=false",
    "uploadpack.allowAnySHA1InWant=true",
    "uploadpack.allowFilter=true",
    "safe.bareRepository=all",
    # Over loopback a delta costs more than the bytes it saves.
    "pack.window=0",
    "pack.compression=1",
)
_REALM = {"WWW-Authenticate": 'Basic realm="GitHub"'}
_UNAUTHORISED = Reply(raw=b"Repository not found.\n", status=401, media_type="text/plain", headers=_REALM)
_MISSING = Reply(raw=b"Repository not found.\n", status=404, media_type="text/plain")


class Trace(Protocol):
    """The part of the journal entry that is known only here."""

    actor: str
    permission: str


class SmartHttp:
    """Serves clone, fetch and push of every repository of the world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def recognises(self, path: str) -> bool:
        return _PATH.fullmatch(path) is not None

    async def answer(self, request: Request, path: str, trace: Trace) -> Reply:
        match = _PATH.fullmatch(path)
        if match is None:
            return _MISSING
        owner, name, tail = match.groups()
        service = request.query_params.get("service", "") if tail == "info/refs" else tail
        pushes = service == "git-receive-pack"
        if service not in {"git-upload-pack", "git-receive-pack"}:
            return Reply(raw=b"Please upgrade your git client.\n", status=403, media_type="text/plain")
        try:
            actor = identify(self._world, request.headers.get("authorization"))
        except ApiError:
            return _UNAUTHORISED
        trace.actor = actor.name
        repository = self._world.repository(f"{owner}/{name}") or self._world.moved(f"{owner}/{name}")
        if actor is NOBODY and (repository is None or repository.private or pushes):
            return _UNAUTHORISED
        if repository is None:
            return _MISSING
        refused, trace.permission = _admit(self._world, actor, repository, pushes=pushes)
        if refused is not None:
            return refused
        with tempfile.TemporaryFile() as spool:
            try:
                await _spool(request, spool)
            except zlib.error:
                return Reply(raw=b"The body is not what Content-Encoding says.\n", status=400, media_type="text/plain")
            if pushes and tail != "info/refs":
                return await self._push(request, repository, actor, spool)
            return await self._backend(request, repository, tail, spool, actor)

    async def _push(self, request: Request, repository: Repository, actor: Actor, spool: IO[bytes]) -> Reply:
        push = read_push(spool.read())
        spool.seek(0)
        bare = Bare(repository.git_dir)
        async with repository.lock:
            if push is not None and (refused := await self._refusal(repository, actor, push, spool)):
                return refused
            before = await _visible(bare)
            reply = await self._backend(request, repository, "git-receive-pack", spool, actor)
            after = await _visible(bare)
            names = sorted(before.keys() | after.keys())
            moved = [
                Moved(name, before.get(name, ZERO), after.get(name, ZERO))
                for name in names
                if before.get(name) != after.get(name)
            ]
            if moved and actor.user is not None:
                urls = Urls(f"http://{request.headers.get('host', 'localhost')}")
                await after_refs_moved(Scene(self._world, repository, actor.user, urls), moved)
        return reply

    async def _refusal(self, repository: Repository, actor: Actor, push: PushRequest, spool: IO[bytes]) -> Reply | None:
        """Unpack, look, and refuse the whole push when one ref may not move like this."""
        bare = Bare(repository.git_dir)
        spool.seek(push.pack_offset)
        pack = spool.read()
        spool.seek(0)
        if pack:
            try:
                await bare.run("index-pack", "--stdin", "--fix-thin", "--strict", stdin=pack)
            except GitError:
                return None  # the backend will say what is wrong with it
        reasons: dict[str, str] = {}
        told = ""
        for command in push.commands:
            reason, text = await self._judge(repository, actor, command.ref, command.new)
            if reason:
                reasons[command.ref] = reason
                told += text
        if not reasons:
            return None
        media_type = "application/x-git-receive-pack-result"
        return Reply(raw=refusal(push, reasons, told), media_type=media_type, headers={"Cache-Control": "no-cache"})

    async def _judge(self, repository: Repository, actor: Actor, ref: str, new: str) -> tuple[str, str]:
        if new != ZERO and actor.kind == "installation" and not actor.may("workflows", "write"):
            path = await touched_workflows(Bare(repository.git_dir), new)
            if path:
                return (
                    (
                        f"refusing to allow a GitHub App to create or update workflow `{path}` without `workflows`"
                        " permission"
                    ),
                    "",
                )
        rule = repository.protection(ref.removeprefix("refs/heads/"))
        if rule is None or not ref.startswith("refs/heads/"):
            return "", ""
        if actor.kind == "installation" and self._world.app.id in rule.bypass_apps:
            return "", ""
        if rule.restricted:
            return (
                "push declined due to repository rule violations",
                f"error: GH013: Repository rule violations found for {ref}.\n- Cannot update this protected ref.\n",
            )
        if rule.pull_request or rule.required_approving_review_count or rule.merge_queue:
            return (
                "push declined due to repository rule violations",
                (
                    f"error: GH013: Repository rule violations found for {ref}.\n"
                    "- Changes must be made through a pull request.\n"
                ),
            )
        if rule.required_signatures:
            return (
                "push declined due to repository rule violations",
                f"error: GH013: Repository rule violations found for {ref}.\n- Commits must have verified signatures.\n",
            )
        return "", ""

    async def _backend(
        self, request: Request, repository: Repository, tail: str, spool: IO[bytes], actor: Actor
    ) -> Reply:
        size = spool.seek(0, 2)
        spool.seek(0)
        env = {
            "GIT_PROJECT_ROOT": str(repository.git_dir.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{repository.git_dir.name}/{tail}",
            "QUERY_STRING": request.url.query,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(size),
            "REMOTE_USER": actor.name,
            "REMOTE_ADDR": "127.0.0.1",
        }
        if "git-protocol" in request.headers:
            env["GIT_PROTOCOL"] = request.headers["git-protocol"]
        arguments = [part for setting in _SETTINGS for part in ("-c", setting)]
        async with spawn([*arguments, "http-backend"], git_dir=None, env=env, stdin=spool.fileno()) as process:
            out, _ = await process.communicate()
        return _from_cgi(out)


def _from_cgi(output: bytes) -> Reply:
    head, _, content = output.partition(b"\r\n\r\n")
    status, media_type = 200, "application/octet-stream"
    headers: dict[str, str] = {}
    for line in head.decode("latin-1").splitlines():
        name, _, value = line.partition(": ")
        if name.lower() == "status":
            status = int(value.split()[0])
        elif name.lower() == "content-type":
            media_type = value
        else:
            headers[name] = value
    if not head:
        status = 500
    return Reply(raw=content, status=status, media_type=media_type, headers=headers)


async def _spool(request: Request, spool: IO[bytes]) -> None:
    """The whole body into a file first: answering while the client still sends loses chunks."""
    inflate = zlib.decompressobj(31) if request.headers.get("content-encoding") == "gzip" else None
    async for chunk in request.stream():
        await asyncio.to_thread(spool.write, inflate.decompress(chunk) if inflate else chunk)
    if inflate:
        spool.write(inflate.flush())
    spool.flush()
    spool.seek(0)


async def _visible(bare: Bare) -> dict[str, str]:
    return {name: sha for name, sha in (await bare.refs()).items() if not name.startswith("refs/pull/")}


def _admit(world: World, actor: Actor, repository: Repository, *, pushes: bool) -> tuple[Reply | None, str]:
    level = "write" if pushes else "read"
    if actor.kind == "installation":
        if not actor.sees(repository):
            return _MISSING, "-"
        if not actor.may("contents", level):
            return _denied(repository, actor), "-"
        return None, f"contents:{level}"
    if actor.user is None:
        return (None, "public") if actor is NOBODY else (_UNAUTHORISED, "-")
    role = world.role(repository, actor.user)
    if role == "none":
        return _MISSING, "-"
    if (pushes and (not at_least(role, "write") or repository.archived)) or not actor.granted("contents", level):
        return _denied(repository, actor), "-"
    return None, f"role {role}"


def _denied(repository: Repository, actor: Actor) -> Reply:
    text = f"Permission to {repository.full_name}.git denied to {actor.name}.\n"
    return Reply(raw=text.encode(), status=403, media_type="text/plain")
