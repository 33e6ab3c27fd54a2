"""People, the App and a webhook receiver, acting on the stand-in of GitHub through ordinary clients."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import jwt
import uvicorn
from githubkit import AppAuthStrategy, GitHub, TokenAuthStrategy
from githubkit.cache import MemCacheStrategy
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.custody.git import GitResult, git
from bot.emulators.github import Config, Endpoint, running
from bot.providers.forge.connection import signing_key
from tests.contracts.recording import Recorder

OWNER, REPO = "octo-org", "hello"
_TLS = ssl.create_default_context()  # one for all: githubkit would build one per call
HOME = f"/repos/{OWNER}/{REPO}"
READY = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
DRAFT = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}"


@dataclass
class Event:
    name: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def payload(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.body)
        return loaded

    @property
    def action(self) -> str | None:
        return self.payload.get("action")

    def signed_with(self, secret: str) -> bool:
        wanted = "sha256=" + hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(wanted, self.headers["x-hub-signature-256"])


@dataclass
class Receiver:
    url: str
    events: list[Event] = field(default_factory=list)
    answer: int = 202
    hold: float = 0.0

    def named(self, name: str, action: str | None = None) -> list[Event]:
        return [event for event in self.events if event.name == name and action in {None, event.action}]

    def names(self) -> list[str]:
        return [f"{event.name}.{event.action}" if event.action else event.name for event in self.events]


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):
        yield


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A webhook receiver on a loopback port."""

    async def take(request: Request) -> Response:
        body = await request.body()
        receiver.events.append(Event(request.headers["x-github-event"], dict(request.headers), body))
        await asyncio.sleep(receiver.hold)
        return Response("noted", receiver.answer)

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        receiver = Receiver(f"http://127.0.0.1:{listener.getsockname()[1]}/webhooks")
        app = Starlette(routes=[Route("/webhooks", take, methods=["POST"])])
        server = _Quiet(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        while not server.started:  # noqa: ASYNC110 - uvicorn offers a flag, not an event
            await asyncio.sleep(0.005)
        try:
            yield receiver
        finally:
            server.should_exit = True
            await task


def app_jwt(endpoint: Endpoint, **changes: Any) -> str:
    now = int(time.time())
    claims = {"iat": now - 60, "exp": now + 540, "iss": str(endpoint.app_id), **changes}
    return jwt.encode(
        {k: v for k, v in claims.items() if v is not None}, signing_key(endpoint.private_key_pem), "RS256"
    )


class Hub:
    """The stand-in, with one raw HTTP client and githubkit clients (untyped: their unions say more than a test needs)."""

    def __init__(self, endpoint: Endpoint, http: httpx.AsyncClient, recorder: Recorder) -> None:
        self.endpoint = endpoint
        self.http = http
        self.recorder = recorder

    def token(self, login: str) -> str:
        return self.endpoint.users[login].token

    async def ask(self, method: str, path: str, who: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request as a person (login), as `app`, or with a literal token."""
        if who == "app":
            credential = f"Bearer {app_jwt(self.endpoint)}"
        elif who in self.endpoint.users:
            credential = f"token {self.token(who)}"
        else:
            credential = f"Bearer {who}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.request(method, path, json=body, headers={"Authorization": credential, **sent})

    async def mint(self, **narrowing: Any) -> str:
        path = f"/app/installations/{self.endpoint.installation_id}/access_tokens"
        answer = await self.ask("POST", path, "app", narrowing or None)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    async def fault(self, **fault: Any) -> None:
        answer = await self.http.post("/_stand-in/faults", json=fault)
        assert answer.status_code == 200, answer.text

    def app(self) -> Any:
        strategy = AppAuthStrategy(self.endpoint.app_id, self.endpoint.private_key_pem)
        return GitHub(
            strategy,
            base_url=self.endpoint.url,
            http_cache=False,
            timeout=httpx.Timeout(20),
            cache_strategy=MemCacheStrategy(),
            trust_env=False,
            ssl_verify=_TLS,
            auto_retry=False,
        )

    def installation(self) -> Any:
        app = self.app()
        return app.with_auth(app.auth.as_installation(self.endpoint.installation_id))

    def person(self, login: str) -> Any:
        return GitHub(
            TokenAuthStrategy(self.token(login)),
            base_url=self.endpoint.url,
            http_cache=False,
            timeout=httpx.Timeout(20),
            trust_env=False,
            ssl_verify=_TLS,
            auto_retry=False,
        )

    async def tip(self, branch: str = "main") -> str:
        answer = await self.ask("GET", f"{HOME}/git/ref/heads/{branch}", "octo-admin")
        return str(answer.json()["object"]["sha"])

    async def commit(
        self, files: Mapping[str, str | None], *, parent: str, token: str, message: str = "change\n"
    ) -> str:
        """One commit on top of `parent` through the Git Data API."""
        tree = [
            {
                "path": path,
                "mode": "100644",
                "type": "blob",
                **({"content": text} if text is not None else {"sha": None}),
            }
            for path, text in files.items()
        ]
        made = await self.ask("POST", f"{HOME}/git/trees", token, {"base_tree": parent, "tree": tree})
        assert made.status_code == 201, made.text
        body = {"message": message, "tree": made.json()["sha"], "parents": [parent]}
        commit = await self.ask("POST", f"{HOME}/git/commits", token, body)
        assert commit.status_code == 201, commit.text
        return str(commit.json()["sha"])

    async def branch(self, name: str, sha: str, token: str) -> httpx.Response:
        return await self.ask("POST", f"{HOME}/git/refs", token, {"ref": f"refs/heads/{name}", "sha": sha})

    async def advance(self, name: str, sha: str, token: str, *, force: bool = False) -> httpx.Response:
        return await self.ask("PATCH", f"{HOME}/git/refs/heads/{name}", token, {"sha": sha, "force": force})

    async def pull(
        self,
        token: str,
        *,
        branch: str = "agent/1-x",
        files: Mapping[str, str | None] | None = None,
        draft: bool = True,
        base: str = "main",
        body: str = "words",
    ) -> dict[str, Any]:
        """A branch with one commit and a pull request from it."""
        sha = await self.commit(files or {"new.txt": "new\n"}, parent=await self.tip(base), token=token)
        assert (await self.branch(branch, sha, token)).status_code == 201
        asked = {"title": "Change it", "head": branch, "base": base, "draft": draft, "body": body}
        made = await self.ask("POST", f"{HOME}/pulls", token, asked)
        assert made.status_code == 201, made.text
        opened: dict[str, Any] = made.json()
        return opened

    async def graphql(self, query: str, who: str, **variables: Any) -> dict[str, Any]:
        answer = await self.ask("POST", "/graphql", who, {"query": query, "variables": variables})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def mergeable(self, number: int) -> bool | None:
        """Ask until it is computed, as clients must."""
        for _ in range(100):
            answer = (await self.ask("GET", f"{HOME}/pulls/{number}", "octo-admin")).json()
            if answer["mergeable"] is not None:
                return bool(answer["mergeable"])
            await asyncio.sleep(0.02)
        return None


@asynccontextmanager
async def hub(config: Config | None = None) -> AsyncIterator[Hub]:
    """The stand-in; at the end, everything that it took and answered has to fit GitHub's description."""
    recorder = Recorder()
    async with (
        running(config, recorder) as endpoint,
        httpx.AsyncClient(base_url=endpoint.url, trust_env=False, timeout=20, headers={"User-Agent": "test"}) as http,
    ):
        yield Hub(endpoint, http, recorder)
    assert not recorder.faults, "\n".join(recorder.faults)


async def plain_git(*args: str, directory: Path | None = None) -> GitResult:
    """Ordinary git on a work tree of the test's own; never raises."""
    where = ["-C", str(directory)] if directory else []
    settings = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "http.proxy="]
    anything = frozenset(range(-64, 256))
    return await git([*where, *settings, *args], git_dir=None, protocols="http", ok=anything)


def clone_url(endpoint: Endpoint, token: str, user: str = "x-access-token") -> str:
    return f"http://{user}:{token}@{endpoint.url.removeprefix('http://')}/{OWNER}/{REPO}.git"


async def expect(world: Hub, verdict: tuple[int, str], method: str, path: str, who: str, body: object = None) -> None:
    """The request is refused with this status, in these words."""
    answer = await world.ask(method, HOME + path, who, body)
    assert answer.status_code == verdict[0], answer.text
    assert verdict[1] in answer.text


async def everything(world: Hub) -> None:
    """One of each event."""
    token = await world.mint()
    await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x", "body": "y", "labels": ["agent", "new"]})
    await world.ask("DELETE", f"{HOME}/issues/1/labels/agent", token)
    await world.ask("PATCH", f"{HOME}/issues/1", "octo-dev", {"title": "z", "state": "closed"})
    await world.ask("PATCH", f"{HOME}/issues/1", "octo-dev", {"state": "open"})
    made = await world.ask("POST", f"{HOME}/issues/1/comments", token, {"body": "x"})
    await world.ask("PATCH", f"{HOME}/issues/comments/{made.json()['id']}", token, {"body": "y"})
    await world.ask("DELETE", f"{HOME}/issues/comments/{made.json()['id']}", token)
    pull = await world.pull(token)
    sha, path = pull["head"]["sha"], f"{HOME}/pulls/{pull['number']}"
    await world.ask("PATCH", path, token, {"title": "t2", "body": "b2"})
    other = await world.commit({"b": "b"}, parent=await world.tip(), token=token)
    await world.branch("decoy", other, token)
    await world.ask("PATCH", path, token, {"base": "decoy"})
    await world.ask("PATCH", path, token, {"base": "main"})
    await world.graphql(READY, token, id=pull["node_id"])
    await world.graphql(DRAFT, token, id=pull["node_id"])
    await world.ask("POST", f"{path}/requested_reviewers", token, {"reviewers": ["octo-dev"]})
    await world.ask("POST", f"{HOME}/issues/2/labels", token, {"labels": ["agent"]})
    line = {"path": "new.txt", "line": 1, "body": "here"}
    review = {"event": "APPROVE", "body": "ok", "comments": [line]}
    number = (await world.ask("POST", f"{path}/reviews", "octo-dev", review)).json()["id"]
    await world.ask("PUT", f"{path}/reviews/{number}", "octo-dev", {"body": "really"})
    await world.ask("PUT", f"{path}/reviews/{number}/dismissals", "octo-admin", {"message": "no"})
    run = await world.ask("POST", f"{HOME}/check-runs", token, {"name": "gate", "head_sha": sha})
    await world.ask("PATCH", f"{HOME}/check-runs/{run.json()['id']}", token, {"conclusion": "success"})
    await world.ask("POST", f"{HOME}/check-runs/{run.json()['id']}/rerequest", "octo-dev")
    await world.ask("POST", f"{HOME}/statuses/{sha}", "octo-dev", {"state": "success"})
    second = await world.commit({"c": "c"}, parent=sha, token=token)
    await world.advance(pull["head"]["ref"], second, token)
    await world.ask("PATCH", path, token, {"state": "closed"})
    await world.ask("PATCH", path, token, {"state": "open"})
    await world.ask("DELETE", f"{HOME}/git/refs/heads/decoy", token)
    await world.graphql(READY, token, id=pull["node_id"])
    await world.ask("PUT", f"{path}/merge", token, {"merge_method": "squash"})
    await world.ask("PATCH", HOME, "octo-admin", {"name": "renamed"})
    await world.ask("PUT", f"/app/installations/{world.endpoint.installation_id}/suspended", "app")
    await world.ask("DELETE", f"/app/installations/{world.endpoint.installation_id}/suspended", "app")
