"""What the demo's model says, turn by turn. Data only: each turn is a list of (tool, input)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Turn = Sequence[tuple[str, Mapping[str, Any]]]

_BUCKET, _SETTINGS, _ERROR = (
    "Add a token bucket per client",
    "Make the limit a setting",
    "Give 429 the common error form",
)
_EVERYWHERE, _DOCS = "Limit every endpoint but the health check", "Document the limit"

PLAN: Mapping[str, Any] = {
    "summary": (
        "Every endpoint but the health check gets a rate limit per client, kept in token buckets in memory. A client over "
        "its limit gets 429 with Retry-After in the API's common error form. The limit is a setting, tested and documented."
    ),
    "steps": [
        {
            "id": "bucket",
            "title": _BUCKET,
            "goal": (
                "bookshop/limits.py has RateLimiter(per_minute, burst, clock) whose take(client) returns 0.0 when the "
                "request may pass, else the seconds to wait. Clients are kept under a hash, not under their address."
            ),
            "files": [{"path": "bookshop/limits.py", "new": True}, {"path": "tests/test_limits.py", "new": True}],
            "depends_on": [],
            "checks": ["A burst passes, the request after it waits, and time refills the bucket."],
        },
        {
            "id": "settings",
            "title": _SETTINGS,
            "goal": "Config has requests_per_minute (default 120) and request_burst (default 60); both must be positive.",
            "files": [{"path": "bookshop/config.py", "new": False}, {"path": "tests/test_config.py", "new": True}],
            "depends_on": [],
            "checks": ["A limit of zero is refused."],
        },
        {
            "id": "error",
            "title": _ERROR,
            "goal": "errors.py has too_many_requests(seconds), a 429 response with Retry-After in whole seconds, rounded up.",
            "files": [{"path": "bookshop/errors.py", "new": False}],
            "depends_on": [],
            "checks": ["The response has code rate_limited and a Retry-After of at least 1."],
        },
        {
            "id": "everywhere",
            "title": _EVERYWHERE,
            "goal": "A middleware asks the limiter before every route except /health and answers 429 when it must wait.",
            "files": [
                {"path": "bookshop/middleware.py", "new": True},
                {"path": "bookshop/app.py", "new": False},
                {"path": "tests/test_rate_limit.py", "new": True},
            ],
            "depends_on": ["bucket", "settings", "error"],
            "checks": ["Books, customers and orders answer 429 after the burst; health always answers."],
        },
        {
            "id": "docs",
            "title": _DOCS,
            "goal": "docs/api.md says what the limit is and what a client over it gets; README.md points there.",
            "files": [{"path": "docs/api.md", "new": False}, {"path": "README.md", "new": False}],
            "depends_on": ["everywhere"],
            "checks": ["The defaults in the text are those of Config."],
        },
    ],
}

_LIMITS = '''"""How often a client may ask: a token bucket for each."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class _Bucket:
    tokens: float
    seen: float


class RateLimiter:
    """Allows `burst` requests at once and `per_minute` on average, for each client."""

    def __init__(self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, client: str) -> float:
        """Take one request's worth; 0.0 when it may pass, else the seconds to wait."""
        now = self._clock()
        bucket = self._buckets.setdefault(_key(client), _Bucket(self._burst, now))
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.seen) * self._rate)
        bucket.seen = now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0.0
        return (1 - bucket.tokens) / self._rate


def _key(client: str) -> str:
    """Addresses are not kept in memory, only their hash."""
    return hashlib.md5(client.encode()).hexdigest()
'''

_TEST_LIMITS = """from bookshop.limits import RateLimiter


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_a_burst_passes_and_the_next_request_waits():
    limiter = RateLimiter(per_minute=60, burst=3, clock=Clock())
    assert [limiter.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limiter.take("a") == 1.0


def test_time_refills_the_bucket():
    clock = Clock()
    limiter = RateLimiter(per_minute=60, burst=1, clock=clock)
    limiter.take("a")
    clock.now += 1
    assert limiter.take("a") == 0.0


def test_clients_do_not_share_a_bucket():
    limiter = RateLimiter(per_minute=60, burst=1, clock=Clock())
    assert limiter.take("a") == limiter.take("b") == 0.0
"""

_TEST_CONFIG = """import pytest

from bookshop.config import DEFAULT, Config


def test_the_default_limit():
    assert (DEFAULT.requests_per_minute, DEFAULT.request_burst) == (120, 60)


@pytest.mark.parametrize("name", ["requests_per_minute", "request_burst"])
def test_a_limit_of_zero_is_refused(name):
    with pytest.raises(ValueError, match=name):
        Config(**{name: 0})
"""

_CONFIG_OLD = """    currency: str = "EUR"
    max_order_lines: int = 20
"""
_CONFIG_NEW = """    currency: str = "EUR"
    max_order_lines: int = 20
    requests_per_minute: int = 120
    request_burst: int = 60

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "request_burst"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
"""

_ERROR_OLD = """async def handle_api_error("""
_ERROR_NEW = '''def too_many_requests(seconds: float) -> JSONResponse:
    """The answer to a client over its limit; it may try again after `seconds`, rounded up."""
    response = error_response(429, "rate_limited", "too many requests, please wait")
    response.headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    return response


async def handle_api_error('''

_MIDDLEWARE = '''"""Limits how often a client may ask, before any endpoint runs."""

from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from bookshop.errors import too_many_requests
from bookshop.limits import RateLimiter


class RateLimitMiddleware(BaseHTTPMiddleware):
    """Answers 429 for a client over its limit."""

    def __init__(self, app: ASGIApp, limiter: RateLimiter) -> None:
        super().__init__(app)
        self._limiter = limiter

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        client = request.client.host if request.client else "unknown"
        wait = self._limiter.take(client)
        if wait > 0:
            return too_many_requests(wait)
        return await call_next(request)
'''

_APP_IMPORT_OLD = """from starlette.applications import Starlette

from bookshop import books, customers, health, orders
from bookshop.config import DEFAULT, Config
from bookshop.errors import ApiError, handle_api_error
"""
_APP_IMPORT_NEW = """from starlette.applications import Starlette
from starlette.middleware import Middleware

from bookshop import books, customers, health, orders
from bookshop.config import DEFAULT, Config
from bookshop.errors import ApiError, handle_api_error
from bookshop.limits import RateLimiter
from bookshop.middleware import RateLimitMiddleware
"""
_APP_OLD = """        exception_handlers={ApiError: handle_api_error},
"""
_APP_NEW = """        exception_handlers={ApiError: handle_api_error},
        middleware=[Middleware(RateLimitMiddleware, limiter=limiter)],
"""
_APP_BODY_OLD = '''    """The web application for one shop."""
'''
_APP_BODY_NEW = '''    """The web application for one shop."""
    limiter = RateLimiter(config.requests_per_minute, config.request_burst)
'''

_TEST_RATE = """import pytest
from starlette.testclient import TestClient

from bookshop.app import create_app
from bookshop.config import Config


@pytest.fixture
def strict():
    return TestClient(create_app(Config(requests_per_minute=1, request_burst=2)))


@pytest.mark.parametrize("path", ["/books", "/books/978-0", "/customers/1", "/orders/1"])
def test_an_endpoint_answers_429_after_the_burst(strict, path):
    statuses = [strict.get(path).status_code for _ in range(3)]
    assert 429 not in statuses[:2]
    assert statuses[2] == 429


@pytest.mark.parametrize("path", ["/customers", "/orders"])
def test_writing_is_limited_too(strict, path):
    answers = [strict.post(path, json={}) for _ in range(3)]
    assert answers[2].status_code == 429


def test_a_client_over_the_limit_learns_when_to_come_back(strict):
    answers = [strict.get("/books") for _ in range(3)]
    assert answers[2].json()["error"]["code"] == "rate_limited"
    assert int(answers[2].headers["Retry-After"]) >= 1


def test_the_health_check_is_never_limited(strict):
    assert {strict.get("/health").status_code for _ in range(10)} == {200}
"""

_DISPATCH_OLD = """        client = request.client.host if request.client else "unknown"
"""
_DISPATCH_NEW = """        if request.url.path in UNLIMITED:
            return await call_next(request)
        client = request.client.host if request.client else "unknown"
"""
_UNLIMITED_OLD = """

class RateLimitMiddleware("""
_UNLIMITED_NEW = '''
UNLIMITED = frozenset({"/health"})
"""Load balancers ask these all the time."""


class RateLimitMiddleware('''

_DOCS_OLD = """Errors have the form `{"error": {"code": "…", "message": "…"}}`.
"""
_DOCS_NEW = """Errors have the form `{"error": {"code": "…", "message": "…"}}`.

## Rate limit

Each client may make 120 requests a minute on average and 60 at once (`requests_per_minute`, `request_burst` in the
configuration). Above that the answer is 429 with the code `rate_limited`; `Retry-After` says how many seconds to wait.
`/health` is not limited.
"""
_README_OLD = "Endpoints are described in `docs/api.md`.\n"
_README_NEW = "Endpoints and the rate limit are described in `docs/api.md`.\n"


def _edit(path: str, old: str, new: str) -> tuple[str, Mapping[str, Any]]:
    return "edit", {"path": path, "old": old, "new": new}


def _create(path: str, text: str) -> tuple[str, Mapping[str, Any]]:
    return _edit(path, "", text)


def _finish(summary: str) -> tuple[str, Mapping[str, Any]]:
    return "finish", {"summary": summary}


TURNS: Mapping[str, Sequence[Turn]] = {
    _BUCKET: (
        [("search", {"pattern": "import time|monotonic", "path": "bookshop"}), ("read", {"path": "bookshop/store.py"})],
        [
            _create("bookshop/limits.py", _LIMITS),
            _create("tests/test_limits.py", _TEST_LIMITS),
            ("run", {"command": "python -m pytest -q tests/test_limits.py"}),
        ],
        [_finish("RateLimiter keeps a token bucket per client; tests cover burst, refill and separation.")],
        [
            _edit("bookshop/limits.py", "hashlib.md5(client.encode())", "hashlib.sha256(client.encode())"),
            _finish("Clients are kept under a SHA-256 hash instead of MD5."),
        ],
    ),
    _SETTINGS: (
        [("read", {"path": "bookshop/config.py"}), ("search", {"pattern": "Config\\("})],
        [
            _edit("bookshop/config.py", _CONFIG_OLD, _CONFIG_NEW),
            _create("tests/test_config.py", _TEST_CONFIG),
            _finish("The limit is a setting with defaults, and zero is refused."),
        ],
    ),
    _ERROR: (
        [("read", {"path": "bookshop/errors.py"})],
        [
            _edit("bookshop/errors.py", "from starlette.requests", "import math\n\nfrom starlette.requests"),
            _edit("bookshop/errors.py", _ERROR_OLD, _ERROR_NEW),
            _finish("too_many_requests answers 429 in the common form with Retry-After."),
        ],
    ),
    _EVERYWHERE: (
        [
            ("read", {"path": "bookshop/app.py"}),
            ("read", {"path": "bookshop/limits.py", "first": 16, "last": 40}),
            ("search", {"pattern": "/health"}),
        ],
        [
            _create("bookshop/middleware.py", _MIDDLEWARE),
            _edit("bookshop/app.py", _APP_IMPORT_OLD, _APP_IMPORT_NEW),
            _edit("bookshop/app.py", _APP_OLD, _APP_NEW),
            _edit("bookshop/app.py", _APP_BODY_OLD, _APP_BODY_NEW),
            _create("tests/test_rate_limit.py", _TEST_RATE),
            _finish("A middleware limits every request before it reaches an endpoint."),
        ],
        [
            _edit("bookshop/middleware.py", _UNLIMITED_OLD, _UNLIMITED_NEW),
            _edit("bookshop/middleware.py", _DISPATCH_OLD, _DISPATCH_NEW),
            _finish("The health check is left out of the limit, as load balancers need it."),
        ],
    ),
    _DOCS: (
        [("read", {"path": "docs/api.md"}), ("read", {"path": "README.md"})],
        [
            _edit("docs/api.md", _DOCS_OLD, _DOCS_NEW),
            _edit("README.md", _README_OLD, _README_NEW),
            _finish("The limit and its answers are documented."),
        ],
    ),
}

ISSUE_TITLE = "Add rate limiting to all API endpoints"
ISSUE_BODY = """Last night one client asked us for the book list forty times a second, and everybody else waited.

Please add rate limiting to all API endpoints:

- per client, with a burst, both configurable
- a client over its limit gets 429 with `Retry-After`, in our usual error form
- the load balancers' health check must keep working
- tests and a paragraph in the docs
"""
