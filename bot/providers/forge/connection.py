"""Calls to GitHub through githubkit: one connection pool, one API version, explicit time limits, our own retries."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, cast

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from githubkit import AppAuthStrategy, GitHub, TokenAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.config import get_config
from githubkit.exception import GitHubException, RateLimitExceeded, RequestError, RequestFailed

from bot.domain.errors import UserError
from bot.providers.forge.failures import Failure, error_of, is_secondary_limit, pause_before_retry

API_VERSION = "2026-03-10"
_HEADERS = {"X-GitHub-Api-Version": API_VERSION}
_TIMEOUT = httpx.Timeout(20, connect=5)
_LIMITS = httpx.Limits(max_connections=50, max_keepalive_connections=20, keepalive_expiry=30)

Wait = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ask:
    """One call. `path` starts with a slash."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    params: Mapping[str, str | int] | None = None


class SharedTransport(httpx.AsyncBaseTransport):
    """One pool behind the many short-lived clients that githubkit makes: no TLS context per call.

    Closing a client leaves the pool open. A Retry-After given as a date, which githubkit cannot read, becomes seconds.
    """

    def __init__(self, pool: httpx.AsyncBaseTransport) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._pool.handle_async_request(request)
        after = response.headers.get("retry-after")
        if after is not None and not after.isdigit():
            response.headers["retry-after"] = str(_seconds_until(after))
        return response

    async def close(self) -> None:
        await self._pool.aclose()


def _seconds_until(date: str) -> int:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return 60
    return max(1, int((moment - datetime.now(UTC)).total_seconds()))


class Connection:
    """Sends calls with whatever credential the caller names, and turns failures into the port's errors."""

    def __init__(
        self, base_url: str, *, wait: Wait, proxy: str | None = None, pool: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._transport = SharedTransport(
            pool or httpx.AsyncHTTPTransport(verify=ssl.create_default_context(), limits=_LIMITS, proxy=proxy)
        )
        self._wait = wait
        self._config = get_config(
            base_url=base_url,
            user_agent="pullwright",
            follow_redirects=False,
            timeout=_TIMEOUT,
            trust_env=False,
            async_transport=self._transport,
            cache_strategy=MemCacheStrategy(),
            http_cache=False,
            auto_retry=False,
        )
        self.graphql_url = _graphql_url(httpx.URL(base_url))

    async def close(self) -> None:
        await self._transport.close()

    def as_app(self, issuer: str, key: RSAPrivateKey | None) -> GitHub[Any]:
        """githubkit hands the key on to PyJWT, which takes it as an object as well as it takes text."""
        return GitHub(AppAuthStrategy(issuer, cast("str", key)), config=self._config)

    def as_token(self, token: str) -> GitHub[Any]:
        return GitHub(TokenAuthStrategy(token), config=self._config)

    def as_nobody(self) -> GitHub[Any]:
        """Without a credential."""
        return GitHub(config=self._config)

    async def once(self, client: GitHub[Any], ask: Ask) -> httpx.Response | Failure:
        """One attempt, whatever comes of it."""
        return await _once(client, ask)

    async def send(self, client: GitHub[Any], ask: Ask) -> Any:
        """The decoded body, None when there is none; raises what `failures.error_of` names."""
        answer = await self._answer(client, ask)
        return answer.json() if answer.content else None

    async def page(self, client: GitHub[Any], ask: Ask) -> tuple[Any, Mapping[str, str]]:
        """The decoded body and the parameters of the page after it, none when it is the last; raises as `send`."""
        answer = await self._answer(client, ask)
        following = answer.links.get("next", {}).get("url", "")
        return answer.json(), dict(httpx.URL(following).params) if following else {}

    async def _answer(self, client: GitHub[Any], ask: Ask) -> httpx.Response:
        attempt = 0
        while True:
            outcome = await _once(client, ask)
            if not isinstance(outcome, Failure):
                return outcome
            pause = pause_before_retry(ask.method, ask.path, outcome, attempt)
            if pause is None:
                raise error_of(ask.method, outcome)
            await self._wait(pause)
            attempt += 1


@cache
def signing_key(pem: str) -> RSAPrivateKey:
    """An App's key, read and checked once: from text that would take 70 ms for each token. Raises UserError when it is none."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise UserError(
            "The App's private key cannot be used: it is damaged, asks for a password, or is no RSA key.",
            "Download it again from the App's settings page, and check PULLWRIGHT_PRIVATE_KEY_FILE.",
        )
    return key


def _graphql_url(base: httpx.URL) -> str:
    """GraphQL is beside the REST root: `/graphql`, or `/api/graphql` where REST is at `/api/v3`."""
    below = base.path.rstrip("/")
    return str(base.copy_with(path=f"{below.removesuffix('/v3')}/graphql"))


async def _once(client: GitHub[Any], ask: Ask) -> httpx.Response | Failure:
    try:
        response = await client.arequest(
            ask.method,
            ask.path,
            params=dict(ask.params) if ask.params else None,
            json=dict(ask.body) if ask.body is not None else None,
            headers=_HEADERS,
        )
    except GitHubException as error:
        return _failure(error)
    if response.status_code >= 300:
        return Failure(response.status_code, response.headers.get("location", ""))
    return response.raw_response


def _failure(error: BaseException) -> Failure:
    """githubkit wraps errors of its auth flow, sometimes twice; the innermost one counts."""
    if isinstance(error, RequestFailed):
        status, message = error.response.status_code, _message(error.response.raw_response)
        limited = isinstance(error, RateLimitExceeded)
        after = error.retry_after.total_seconds() if isinstance(error, RateLimitExceeded) else None
        return Failure(status, message, after, limited or is_secondary_limit(status, message))
    if isinstance(error, RequestError):
        return _failure(error.exc)
    if isinstance(error, httpx.HTTPError):
        return Failure(None, type(error).__name__)
    raise error


def _message(response: httpx.Response) -> str:
    """GitHub's words: the message and what its `errors` add."""
    try:
        told = response.json()
    except ValueError:
        return response.text[:200]
    if not isinstance(told, dict):
        return ""
    parts = [str(told.get("message", ""))]
    for entry in told.get("errors") or ():
        words = entry.get("message") or entry.get("code") if isinstance(entry, dict) else entry
        parts.append(str(words))
    return "; ".join(part.strip() for part in parts if part)[:1000]
