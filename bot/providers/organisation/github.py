"""The organisation on GitHub, read with a credential of its own. The one request this can send is a GET."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from bot.domain.errors import UserError
from bot.domain.ids import BlobId, CommitId
from bot.providers.organisation import readings
from bot.providers.organisation.port import (
    Branch,
    Bypass,
    Commit,
    Credential,
    DeployKey,
    Gist,
    Guard,
    Installation,
    LogEntry,
    Post,
    Read,
    Repository,
    TreeFile,
)

T = TypeVar("T")
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2026-03-10", "User-Agent": "pullwright"}
_PAGES = 100
_PER_PAGE = 100
_PAUSES = (1.0, 3.0)
_LONGEST_PAUSE = 60.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:\[bot\])?(?:/[A-Za-z0-9._-]{1,100})?")
_UNREADABLE = "GitHub's answer cannot be read"

_LIMITED = "GitHub limits how much this token may ask"

Params = Mapping[str, str | int]
Wait = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Failure:
    """No answer, and how long to wait before each further try."""

    why: str
    pauses: tuple[float, ...] = ()


class GithubOrganisation:
    """The `Organisation` port. Belongs to one event loop; `close` when done."""

    def __init__(
        self,
        token: str,
        *,
        base_url: str,
        proxy: str | None = None,
        wait: Wait = asyncio.sleep,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._wait = wait
        self._http = httpx.AsyncClient(
            base_url=base_url,
            headers={**_HEADERS, "Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(20, connect=5),
            follow_redirects=False,
            trust_env=False,
            proxy=proxy,
            transport=transport,
        )

    async def close(self) -> None:
        await self._http.aclose()

    # an organisation

    async def size(self, organisation: str) -> Read[int | None]:
        told = await self._one(f"/orgs/{_named(organisation)}")
        if not told.fault and "total_private_repos" not in told.value:
            return Read(None, "GitHub does not tell this token how many private repositories there are")
        return _made(told, lambda body: int(body["public_repos"]) + int(body["total_private_repos"]))

    async def repositories(self, organisation: str) -> Read[tuple[Repository, ...]]:
        return await self._list(f"/orgs/{_named(organisation)}/repos", readings.repository)

    async def installations(self, organisation: str) -> Read[tuple[Installation, ...]]:
        path = f"/orgs/{_named(organisation)}/installations"
        return await self._list(path, readings.installation, within="installations")

    async def members(self, organisation: str) -> Read[tuple[str, ...]]:
        return await self._list(f"/orgs/{_named(organisation)}/members", readings.login)

    async def outside_collaborators(self, organisation: str) -> Read[tuple[str, ...]]:
        return await self._list(f"/orgs/{_named(organisation)}/outside_collaborators", readings.login)

    async def credentials(self, organisation: str) -> Read[tuple[Credential, ...]]:
        return await self._list(f"/orgs/{_named(organisation)}/credential-authorizations", readings.credential)

    async def log(self, organisation: str, actions: tuple[str, ...]) -> Read[tuple[LogEntry, ...]]:
        phrase = " ".join(f"action:{action}" for action in actions)
        return await self._list(f"/orgs/{_named(organisation)}/audit-log", readings.log_entry, {"phrase": phrase})

    # a repository

    async def head(self, repository: str, branch: str) -> Read[CommitId | None]:
        told = await self._one(f"/repos/{_named(repository)}/git/ref/heads/{quote(branch)}")
        return _made(told, lambda body: CommitId(str(body["object"]["sha"])))

    async def tree(self, repository: str, commit: str) -> Read[tuple[TreeFile, ...]]:
        told = await self._one(f"/repos/{_named(repository)}/git/trees/{quote(commit, safe='')}", {"recursive": 1})
        files = _made(told, readings.tree_files)
        cut = not files.fault and told.value["truncated"]
        return Read(files.value or (), "GitHub lists only a part of this tree" if cut else files.fault)

    async def blob(self, repository: str, blob: BlobId) -> Read[bytes | None]:
        told = await self._one(f"/repos/{_named(repository)}/git/blobs/{quote(blob)}")
        return _made(told, lambda body: base64.b64decode(body["content"]))

    async def rules(self, repository: str, branch: str) -> Read[Guard | None]:
        path = f"/repos/{_named(repository)}/rules/branches/{quote(branch, safe='')}"
        found = await self._list(path, lambda told: told)
        return Read(None, found.fault) if found.fault else _made(Read(found.value), readings.guard_of_rules)

    async def protection(self, repository: str, branch: str) -> Read[Guard | None]:
        told = await self._one(f"/repos/{_named(repository)}/branches/{quote(branch, safe='')}/protection")
        if told.fault.endswith("Branch not protected"):
            return Read(None)
        return _made(told, readings.guard_of_protection)

    async def bypass(self, repository: str, ruleset: int) -> Read[tuple[Bypass, ...]]:
        told = await self._one(f"/repos/{_named(repository)}/rulesets/{ruleset}")
        if not told.fault and "bypass_actors" not in told.value:
            return Read((), "GitHub tells it only to a token that may change the ruleset")
        actors = _made(told, readings.bypass)
        return Read(actors.value or (), actors.fault)

    async def deploy_keys(self, repository: str) -> Read[tuple[DeployKey, ...]]:
        return await self._list(f"/repos/{_named(repository)}/keys", readings.deploy_key)

    async def forks(self, repository: str) -> Read[tuple[Repository, ...]]:
        return await self._list(f"/repos/{_named(repository)}/forks", readings.repository)

    async def branches(self, repository: str, prefix: str) -> Read[tuple[Branch, ...]]:
        path = f"/repos/{_named(repository)}/git/matching-refs/heads/{quote(prefix)}"
        return await self._list(path, readings.branch, paged=False)

    async def commits_beyond(self, repository: str, base: str, head: str) -> Read[tuple[Commit, ...]]:
        path = f"/repos/{_named(repository)}/compare/{quote(base, safe='')}...{quote(head, safe='')}"
        found = await self._list(path, readings.commit, within="commits")
        if "No common ancestor" in found.fault:
            return await self._list(f"/repos/{_named(repository)}/commits", readings.commit, {"sha": head})
        return found

    async def commits_since(self, repository: str, branch: str, since: str) -> Read[tuple[Commit, ...]]:
        path = f"/repos/{_named(repository)}/commits"
        return await self._list(path, readings.commit, {"sha": branch, "since": since})

    async def permission(self, repository: str, login: str) -> Read[str | None]:
        told = await self._one(f"/repos/{_named(repository)}/collaborators/{_named(login)}/permission")
        return _made(told, lambda body: str(body["permission"]))

    async def posts(self, repository: str) -> Read[tuple[Post, ...]]:
        home = f"/repos/{_named(repository)}"
        issues = await self._list(f"{home}/issues", readings.writing, {"state": "all"})
        if issues.fault.startswith("410"):  # issues are turned off here
            issues = await self._list(f"{home}/pulls", readings.writing, {"state": "all"})
        comments = await self._list(f"{home}/issues/comments", readings.writing)
        return Read((*issues.value, *comments.value), issues.fault or comments.fault)

    # a person

    async def user_repositories(self, login: str) -> Read[tuple[Repository, ...]]:
        return await self._list(f"/users/{_named(login)}/repos", readings.repository)

    async def gists(self, login: str) -> Read[tuple[Gist, ...]]:
        return await self._list(f"/users/{_named(login)}/gists", readings.gist)

    # how it is asked

    async def _one(self, path: str, params: Params | None = None) -> Read[Any]:
        answer = await self._get(path, params or {})
        if isinstance(answer, str):
            return Read(None, answer)
        try:
            return Read(answer.json())
        except ValueError:
            return Read(None, _UNREADABLE)

    async def _list(
        self,
        path: str,
        reading: Callable[[Any], T],
        params: Params | None = None,
        *,
        within: str = "",
        paged: bool = True,
    ) -> Read[tuple[T, ...]]:
        """Every page, until the last; what was read before a page failed is kept."""
        found: list[T] = []
        asked: Params = {**({"per_page": _PER_PAGE} if paged else {}), **(params or {})}
        for _ in range(_PAGES):
            answer = await self._get(path, asked)
            if isinstance(answer, str):
                return Read(tuple(found), answer)
            try:
                body = answer.json()
                found += [reading(one) for one in (body[within] if within else body)]
            except (KeyError, TypeError, ValueError, AttributeError):
                return Read(tuple(found), _UNREADABLE)
            following = answer.links.get("next", {}).get("url", "")
            if not following:
                return Read(tuple(found))
            asked = dict(httpx.URL(following).params)
        return Read(tuple(found), f"stopped after {_PAGES} pages; there are more")

    async def _get(self, path: str, params: Params) -> httpx.Response | str:
        """The answer, or why there is none. Waits for a limit once, and tries twice more when nobody answers."""
        if {".", ".."} & set(path.split("/")):
            return "its name is no part of an address"
        tries = 0
        while True:
            outcome = await self._once(path, params)
            if isinstance(outcome, httpx.Response):
                return outcome
            if tries >= len(outcome.pauses):
                return outcome.why
            await self._wait(outcome.pauses[tries])
            tries += 1

    async def _once(self, path: str, params: Params) -> httpx.Response | _Failure:
        try:
            answer = await self._http.get(path, params=dict(params))
        except httpx.HTTPError as error:
            return _Failure(f"GitHub does not answer ({type(error).__name__})", _PAUSES)
        if answer.status_code == 200:
            return answer
        if answer.status_code == 401:
            raise UserError(
                "GitHub does not accept PULLWRIGHT_AUDIT_TOKEN.",
                "Make a new read-only token; docs/operating.md lists what it needs.",
            )
        pause = _limit(answer)
        if pause is not None:
            return _Failure(_LIMITED, (pause,) if pause <= _LONGEST_PAUSE else ())
        return _Failure(_words(answer), _PAUSES if answer.status_code >= 500 else ())


def _named(name: str) -> str:
    """A login, or owner and name, as part of a path. Raises UserError for what is neither."""
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} is no name of an account or a repository on GitHub.")
    return quote(name)


def _made(told: Read[Any], reading: Callable[[Any], T]) -> Read[T | None]:
    if told.fault:
        return Read(None, told.fault)
    try:
        return Read(reading(told.value))
    except (KeyError, TypeError, ValueError, AttributeError):
        return Read(None, _UNREADABLE)


def _limit(answer: httpx.Response) -> float | None:
    """Seconds to wait when the answer is a limit, GitHub's first or second; None when it is none."""
    if answer.status_code not in {403, 429}:
        return None
    after = answer.headers.get("retry-after", "")
    if after.isdigit():
        return float(after)
    if answer.headers.get("x-ratelimit-remaining") == "0":
        return _LONGEST_PAUSE + 1
    return _LONGEST_PAUSE if "rate limit" in answer.text.lower() else None


def _words(answer: httpx.Response) -> str:
    try:
        told = answer.json()
    except ValueError:
        told = None
    message = str(told.get("message") or "") if isinstance(told, dict) else ""
    return f"{answer.status_code} {message[:200]}".strip()
