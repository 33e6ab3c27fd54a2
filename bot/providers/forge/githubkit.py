"""The forge on GitHub: every method is one endpoint, called with a token made for that phase and that repository."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from bot.domain.change import TreeEntry
from bot.domain.event import Actor
from bot.domain.ids import (
    BlobId,
    CheckRunId,
    CommentId,
    CommitId,
    InstallationId,
    NodeId,
    RepositoryId,
    ReviewId,
    TreeId,
)
from bot.domain.pull import Permission, PullRequest, Review
from bot.providers.forge import readings
from bot.providers.forge.connection import Ask, Connection, Wait, signing_key
from bot.providers.forge.failures import Unauthorised, graphql_error
from bot.providers.forge.pacing import Pace
from bot.providers.forge.port import (
    CheckReport,
    Comment,
    CommitRecord,
    ForgeGone,
    ForgeRefused,
    Issue,
    NewPull,
    Repository,
    ReviewWords,
)
from bot.providers.forge.tokens import Phase, Token, TokenBook, TokenKey, beyond

PUBLIC_API = "https://api.github.com/"
OWN_BRANCHES = "agent/"
_PLAIN = re.compile(r"[a-z0-9][A-Za-z0-9._-]*")
_EMPTY = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
_PAGE = 100
_LAST_PAGE = 100
_READY = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
_DRAFT = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}"


@dataclass(frozen=True, slots=True, repr=False)
class AppCredentials:
    """`issuer` is the App's id or client id; without a key nothing can be asked. Never printed."""

    issuer: str
    key: RSAPrivateKey | None

    @classmethod
    def from_pem(cls, issuer: str, private_key: str) -> AppCredentials:
        """Raises UserError when the text is no key."""
        return cls(issuer, signing_key(private_key))


class GithubForges:
    """The App on one GitHub. Belongs to one event loop; `close` when done."""

    def __init__(
        self,
        credentials: AppCredentials,
        *,
        base_url: str = PUBLIC_API,
        proxy: str | None = None,
        wait: Wait = asyncio.sleep,
        pool: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._connection = Connection(base_url, wait=wait, proxy=proxy, pool=pool)
        self._app = self._connection.as_app(credentials.issuer, credentials.key)
        self._tokens = TokenBook(self._mint)
        self._wait = wait
        self._paces: dict[InstallationId, Pace] = {}
        self._record: dict[str, Any] | None = None
        self._bot: Actor | None = None

    async def close(self) -> None:
        await self._connection.close()

    async def open(self, installation: InstallationId, repository: RepositoryId) -> GithubForge:
        pace = self._paces.setdefault(installation, Pace(self._wait))
        key = TokenKey(installation, repository, Phase.READ)
        forge = GithubForge(self._connection, self._tokens, pace, key, app_id=await self.app_id())
        await forge.repository()
        return forge

    async def bot(self) -> Actor:
        """Asked for once. The account is not part of the App's own record, so an installation looks it up."""
        if self._bot is None:
            slug = quote((await self._own_record())["slug"])
            installations = await self._as_app(Ask("GET", "/app/installations", params={"per_page": 1}))
            if not installations:
                raise ForgeGone("the App is not installed anywhere")
            path = f"/app/installations/{installations[0]['id']}/access_tokens"
            token = await self._as_app(Ask("POST", path, {"permissions": {"metadata": "read"}}))
            client = self._connection.as_token(token["token"])
            self._bot = readings.actor(await self._connection.send(client, Ask("GET", f"/users/{slug}%5Bbot%5D")))
        return self._bot

    async def app_id(self) -> int:
        return int((await self._own_record())["id"])

    async def _own_record(self) -> dict[str, Any]:
        if self._record is None:
            told: dict[str, Any] = await self._as_app(Ask("GET", "/app"))
            self._record = told
        return self._record

    async def _as_app(self, ask: Ask) -> Any:
        try:
            return await self._connection.send(self._app, ask)
        except Unauthorised as error:
            raise ForgeGone(f"GitHub does not accept the App's key: {error}") from None

    async def _mint(self, key: TokenKey) -> Token:
        """Asking twice for a token is harmless, but a refusal here is final: the right is not there."""
        path = f"/app/installations/{key.installation}/access_tokens"
        asked = {"repository_ids": [key.repository], "permissions": dict(key.phase.permissions)}
        try:
            told = await self._as_app(Ask("POST", path, asked))
        except ForgeRefused as refusal:
            raise ForgeGone(f"no token for {key.phase.name.lower()}: {refusal.message}") from refusal
        wider = beyond(key, told.get("permissions", {}), told.get("repositories", ()))
        if wider:
            raise ForgeGone(f"the token for {key.phase.name.lower()} is wider than asked: {', '.join(wider)}")
        return Token(str(told["token"]), datetime.fromisoformat(told["expires_at"]))


class GithubForge:
    """One repository, bound to its number. Its name is looked up again when GitHub says that it moved."""

    def __init__(
        self,
        connection: Connection,
        tokens: TokenBook,
        pace: Pace,
        key: TokenKey,
        *,
        app_id: int,
    ) -> None:
        self._connection = connection
        self._tokens = tokens
        self._pace = pace
        self._read_key = key
        self._id = key.repository
        self._app_id = app_id
        self._full_name = ""

    async def repository(self) -> Repository:
        found = readings.repository(await self._call(Phase.READ, Ask("GET", f"/repositories/{self._id}")))
        if found.id != self._id:
            raise ForgeGone(f"repository {self._id} answers as {found.id}")
        self._full_name = found.full_name
        return found

    async def permission(self, login: str) -> Permission:
        try:
            told = await self._read(f"/collaborators/{_part(login)}/permission")
        except ForgeGone:
            await self.repository()  # a missing user says 404 too; a missing repository must not read as NONE
            return Permission.NONE
        return Permission(told["permission"])

    async def on_team(self, team: str, login: str) -> bool:
        """404 says that there is no such member, or no such team; only of the repository's own organisation it is asked."""
        organisation, _, slug = team.partition("/")
        if organisation.lower() != (await self._name()).partition("/")[0].lower():
            return False
        path = f"/orgs/{_part(organisation)}/teams/{_part(slug)}/memberships/{_part(login)}"
        try:
            told = await self._call(Phase.MEMBERS, Ask("GET", path))
        except ForgeGone as gone:
            if str(gone).startswith("404"):
                return False
            raise
        return bool(told["state"] == "active")

    async def issue(self, number: int) -> Issue:
        return readings.issue(await self._read(f"/issues/{number}"))

    async def comments(self, number: int) -> tuple[Comment, ...]:
        return tuple(readings.comment(told) for told in await self._pages(f"/issues/{number}/comments"))

    async def create_comment(self, number: int, body: str) -> Comment:
        told = await self._write(Phase.COMMENT, "POST", f"/issues/{number}/comments", {"body": body})
        return readings.comment(told)

    async def update_comment(self, comment: CommentId, body: str) -> None:
        await self._write(Phase.COMMENT, "PATCH", f"/issues/comments/{comment}", {"body": body})

    async def react(self, comment: CommentId, content: str) -> None:
        await self._write(Phase.COMMENT, "POST", f"/issues/comments/{comment}/reactions", {"content": content})

    async def add_label(self, number: int, label: str) -> None:
        await self._write(Phase.COMMENT, "POST", f"/issues/{number}/labels", {"labels": [label]})

    async def remove_label(self, number: int, label: str) -> None:
        try:
            await self._write(Phase.COMMENT, "DELETE", f"/issues/{number}/labels/{_part(label)}")
        except ForgeGone as gone:
            if "Label does not exist" not in str(gone):
                raise

    async def branch_head(self, branch: str) -> CommitId | None:
        try:
            told = await self._read(f"/git/ref/heads/{quote(branch)}")
        except (ForgeGone, ForgeRefused) as refusal:
            if isinstance(refusal, ForgeRefused) and refusal.status != 409:  # 409: the repository is empty
                raise
            await self.repository()
            return None
        return CommitId(told["object"]["sha"])

    async def create_blob(self, data: bytes) -> BlobId:
        body = {"content": base64.b64encode(data).decode(), "encoding": "base64"}
        return BlobId((await self._write(Phase.PUBLISH, "POST", "/git/blobs", body))["sha"])

    async def create_tree(self, base: TreeId, entries: tuple[TreeEntry, ...], removed: tuple[str, ...]) -> TreeId:
        tree: list[dict[str, str | None]] = [
            {
                "path": entry.path,
                "mode": entry.mode.value,
                "type": "commit" if entry.mode == "160000" else "blob",
                "sha": entry.blob,
            }
            for entry in entries
        ]
        tree += [{"path": path, "mode": "100644", "type": "blob", "sha": None} for path in removed]
        if not tree:
            return base
        upon = {} if base == _EMPTY else {"base_tree": base}
        told = await self._write(Phase.PUBLISH, "POST", "/git/trees", {**upon, "tree": tree})
        return TreeId(told["sha"])

    async def create_commit(self, message: str, tree: TreeId, parents: tuple[CommitId, ...]) -> CommitRecord:
        """Without author, committer and signature: that is what makes GitHub sign it."""
        body = {"message": message, "tree": tree, "parents": list(parents)}
        return readings.commit(await self._write(Phase.PUBLISH, "POST", "/git/commits", body))

    async def commit(self, commit: CommitId) -> CommitRecord:
        return readings.commit(await self._read(f"/git/commits/{commit}"))

    async def create_branch(self, branch: str, commit: CommitId) -> None:
        body = {"ref": f"refs/heads/{_own(branch)}", "sha": commit}
        await self._write(Phase.PUBLISH, "POST", "/git/refs", body)

    async def advance_branch(self, branch: str, commit: CommitId) -> None:
        body = {"sha": commit, "force": False}
        await self._write(Phase.PUBLISH, "PATCH", f"/git/refs/heads/{quote(_own(branch))}", body)

    async def find_pull(self, head: str, base: str) -> PullRequest | None:
        owner = (await self._name()).partition("/")[0]
        params = {"head": f"{owner}:{head}", "base": base, "state": "open"}
        found = [readings.pull(told) for told in await self._read("/pulls", params)]
        mine = [
            pull
            for pull in found
            if pull.head_repository == self._id and (pull.head_ref, pull.base_ref) == (head, base)
        ]
        return mine[0] if mine else None

    async def create_pull(self, new: NewPull) -> PullRequest:
        body = {"title": new.title, "body": new.body, "head": new.head, "base": new.base, "draft": new.draft}
        return readings.pull(await self._write(Phase.PROPOSE, "POST", "/pulls", body))

    async def pull(self, number: int) -> PullRequest:
        return readings.pull(await self._read(f"/pulls/{number}"))

    async def update_pull_body(self, number: int, body: str) -> None:
        await self._write(Phase.COMMENT, "PATCH", f"/pulls/{number}", {"body": body})

    async def mark_ready(self, pull: NodeId) -> None:
        await self._mutate(_READY, pull)

    async def convert_to_draft(self, pull: NodeId) -> None:
        await self._mutate(_DRAFT, pull)

    async def reviews(self, number: int) -> tuple[Review, ...]:
        return tuple(readings.review(told) for told in await self._pages(f"/pulls/{number}/reviews"))

    async def review(self, number: int, review: ReviewId) -> Review:
        return readings.review(await self._read(f"/pulls/{number}/reviews/{review}"))

    async def review_words(self, number: int, review: ReviewId) -> ReviewWords:
        whole = await self._read(f"/pulls/{number}/reviews/{review}")
        listed = await self._pages(f"/pulls/{number}/comments")
        mine = [told for told in listed if told["pull_request_review_id"] == review]
        comments = tuple(readings.line_comment(told, whole.get("submitted_at")) for told in mine)
        return ReviewWords(whole["body"] or "", comments)

    async def merge(self, number: int, *, head: CommitId, title: str, message: str) -> CommitId:
        body = {"sha": head, "merge_method": "squash", "commit_title": title, "commit_message": message}
        told = await self._write(Phase.LAND, "PUT", f"/pulls/{number}/merge", body)
        return CommitId(told["sha"])

    async def report_check(self, report: CheckReport, existing: CheckRunId | None) -> CheckRunId:
        body: dict[str, Any] = {
            "name": report.name,
            "external_id": report.external_id,
            "output": {"title": report.title, "summary": report.summary},
        }
        if report.conclusion is None:
            body["status"] = "in_progress"
        else:
            body["conclusion"] = report.conclusion.value
        if existing is None:
            told = await self._write(Phase.CHECK, "POST", "/check-runs", {**body, "head_sha": report.head})
        else:
            told = await self._write(Phase.CHECK, "PATCH", f"/check-runs/{existing}", body)
        return CheckRunId(int(told["id"]))

    async def find_check(self, head: CommitId, name: str) -> CheckRunId | None:
        """Another App may have a run of the same name, so the App's number is part of the question."""
        params: dict[str, str | int] = {"check_name": name, "filter": "latest", "app_id": self._app_id}
        told = await self._read(f"/commits/{head}/check-runs", params)
        runs = [run for run in told["check_runs"] if run["name"] == name and run["app"]["id"] == self._app_id]
        return CheckRunId(int(runs[0]["id"])) if runs else None

    async def fetch_token(self) -> str:
        return await self._tokens.get(self._key(Phase.FETCH))

    def _key(self, phase: Phase) -> TokenKey:
        return replace(self._read_key, phase=phase)

    async def _name(self) -> str:
        return self._full_name or (await self.repository()).full_name

    async def _read(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """By name; when that moved, look the name up by number and ask once more."""
        name = await self._name()
        try:
            return await self._call(Phase.READ, Ask("GET", f"/repos/{name}{path}", params=params))
        except ForgeGone as gone:
            if not str(gone).startswith("moved") or (await self.repository()).full_name == name:
                raise
        return await self._call(Phase.READ, Ask("GET", f"/repos/{self._full_name}{path}", params=params))

    async def _pages(self, path: str) -> list[Any]:
        found: list[Any] = []
        for page in range(1, _LAST_PAGE + 1):
            part = await self._read(path, {"per_page": _PAGE, "page": page})
            found += part
            if len(part) < _PAGE:
                break
        return found

    async def _write(self, phase: Phase, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return await self._call(phase, Ask(method, f"/repos/{await self._name()}{path}", body))

    async def _mutate(self, query: str, pull: NodeId) -> None:
        ask = Ask("POST", self._connection.graphql_url, {"query": query, "variables": {"id": pull}})
        told = await self._call(Phase.LAND, ask)
        errors = told.get("errors") or ()
        if errors:
            raise graphql_error(errors[0])

    async def _call(self, phase: Phase, ask: Ask) -> Any:
        """A refused token is dropped and the call made once more: 401 means that nothing was done."""
        key = self._key(phase)
        if ask.method != "GET":
            await self._pace.take()
        for attempt in (1, 2):
            token = await self._tokens.get(key)
            try:
                return await self._connection.send(self._connection.as_token(token), ask)
            except Unauthorised as error:
                self._tokens.drop(key, token)
                if attempt == 2:
                    raise ForgeGone(f"GitHub does not accept our tokens: {error}") from None
        raise AssertionError


def _own(branch: str) -> str:
    """No branch but the product's own is ever written, whoever asks; and none that reads like a commit or climbs."""
    name = branch.removeprefix(OWN_BRANCHES)
    if name == branch or not _PLAIN.fullmatch(name) or ".." in name:
        raise ForgeRefused(403, f"only branches that begin with {OWN_BRANCHES} are written")
    return branch


def _part(text: str) -> str:
    """One path segment; brackets of bot logins and slashes of labels included."""
    return quote(text, safe="")
