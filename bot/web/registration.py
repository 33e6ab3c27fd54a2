"""The two pages of `pullwright setup`, on this machine alone: a form that takes the manifest to GitHub, and where the browser comes back.

Nothing of a request is ever shown. The referrer policy is `strict-origin`: with `no-referrer` a browser posts the form with
`Origin: null` (Fetch, "append a request Origin header"), which a site may refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

HOSTS = ("127.0.0.1", "localhost")
"""Names this machine is asked for by: a page of a stranger's site that points its own name at us is turned away."""


CREATED = "/created"
"""Where GitHub sends the browser when the App is made."""
BY_HAND = (
    "Open it among your GitHub Apps, generate a private key and set a webhook secret, then configure PULLWRIGHT_APP_ID, "
    "PULLWRIGHT_PRIVATE_KEY_FILE and PULLWRIGHT_WEBHOOK_SECRET."
)


class Arrival(Enum):
    """What comes of an address that a browser brings back."""

    MADE = auto()
    STRANGER = auto()
    UNREACHED = auto()
    REFUSED = auto()
    UNKNOWN = auto()
    LOST = auto()
    KEYLESS = auto()
    UNSAVED = auto()


TEXTS: Mapping[Arrival, tuple[int, str]] = {
    Arrival.MADE: (200, "The App is made, and its key is saved. The terminal says what is next."),
    Arrival.STRANGER: (400, "This address was not made for this setup. Begin at the address that the terminal shows."),
    Arrival.UNREACHED: (503, "GitHub does not answer now. Nothing is lost: reload this page to try again."),
    Arrival.REFUSED: (
        502,
        "GitHub does not hand keys over here. Check PULLWRIGHT_GITHUB_API_URL and reload this page.",
    ),
    Arrival.UNKNOWN: (
        410,
        "This code is used up or older than an hour. Delete the App among your GitHub Apps, then start again at the first page.",
    ),
    Arrival.LOST: (
        502,
        "GitHub's answer was lost on its way. Reload this page to ask once more; the code may be used up.",
    ),
    Arrival.KEYLESS: (
        410,
        f"The App is made, but the answer with its key was lost. {BY_HAND} Or delete the App there and start again.",
    ),
    Arrival.UNSAVED: (500, "The App is made, but its key could not be saved. The terminal says what to do."),
}
"""The status of the page, and what it and the terminal say."""


class Desk(Protocol):
    """Takes what a browser, or a person, brings back from GitHub."""

    async def take(self, code: str, state: str) -> Arrival: ...


@dataclass(frozen=True, slots=True)
class Form:
    """What the first page posts, and the path at which only who sees the terminal finds it. `action` has the state."""

    path: str = field(repr=False)
    action: str = field(repr=False)
    manifest: str
    name: str
    origins: tuple[str, str]
    """GitHub's pages, and this one: a browser holds the way back, too, against the policy of the page that posted."""
    apps: str
    """GitHub's page of the Apps that the owner has."""


def build(form: Form, desk: Desk) -> Starlette:
    """Both pages; everything else, and every other name of this machine, is refused."""
    pages = Environment(
        loader=PackageLoader("bot.web", "pages"), undefined=StrictUndefined, autoescape=True, auto_reload=False
    )
    headers = _headers(form)

    async def first(_request: Request) -> Response:
        return HTMLResponse(pages.get_template("setup.html.j2").render(form=form, text=""), headers=headers)

    async def created(request: Request) -> Response:
        asked = request.query_params
        arrival = await desk.take(asked.get("code", ""), asked.get("state", ""))
        status, text = TEXTS[arrival]
        again = form if arrival in {Arrival.UNKNOWN, Arrival.KEYLESS} else None
        body = pages.get_template("setup.html.j2").render(form=again, text=text)
        return HTMLResponse(body, status, headers)

    return Starlette(
        routes=[
            Route(f"/{form.path}", first, methods=["GET"]),
            Route(CREATED, created, methods=["GET"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False)],
    )


def _headers(form: Form) -> dict[str, str]:
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; "
        f"form-action {' '.join(form.origins)}"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "strict-origin",
        "cache-control": "no-store",
    }
