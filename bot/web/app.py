"""The web application: routes, and the one boundary that keeps faults out of answers."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.domain.errors import UserError
from bot.providers.store.port import Tasks
from bot.stages.intake.signature import WebhookSecrets
from bot.web.board import Board, BoardSettings, Spending
from bot.web.hook import Hook, HookSettings, Receiver
from bot.web.metrics import Metrics, Sources
from bot.web.onboarding import Repositories

__all__ = ["Receiver", "WebSettings", "build"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The webhook's secrets (the one in use first), what the page shows and where GitHub's pages are, and the limits."""

    secrets: tuple[str, ...] = field(repr=False)
    tasks: Tasks
    ledger: Spending
    pages: str = "https://github.com"
    password: str | None = field(default=None, repr=False)
    """Of the task page and of `/metrics`, with any user name; None leaves it open to whoever reaches the port."""
    repositories: Repositories | None = None
    """Where the page finds what it shows of repositories; without it, it shows none."""
    metrics: Sources | None = None
    """What `/metrics` tells; without it there is no such page."""
    largest_body: int = 25 * 1024 * 1024
    body_seconds: float = 10.0


def build(receiver: Receiver, settings: WebSettings) -> Starlette:
    """The application; `receiver` takes deliveries in. Raises UserError without a webhook secret."""
    hook = Hook(receiver, HookSettings(_secrets(settings), settings.largest_body, settings.body_seconds))
    board = Board(
        settings.tasks, settings.ledger, BoardSettings(settings.pages, settings.password, settings.repositories)
    )
    routes = [
        Route("/webhook", hook.answer, methods=["POST"]),
        Route("/healthz", _healthy, methods=["GET"]),
        Route("/readyz", board.ready, methods=["GET"]),
        Route("/", board.page, methods=["GET"]),
    ]
    if settings.metrics is not None:
        metrics = Metrics(settings.metrics, hook.counts, settings.password)
        routes.append(Route("/metrics", metrics.answer, methods=["GET"]))
    return Starlette(routes=routes, exception_handlers={Exception: _fault})


def _secrets(settings: WebSettings) -> WebhookSecrets:
    if not settings.secrets or not all(secret.strip() for secret in settings.secrets):
        raise UserError(
            "No webhook secret is configured.", "Set PULLWRIGHT_WEBHOOK_SECRET to the App's webhook secret."
        )
    current, *previous = settings.secrets
    return WebhookSecrets(current, *previous[:1])


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("alive\n")


async def _fault(request: Request, fault: Exception) -> Response:
    """A bug: its traceback goes to the log, never into the answer."""
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=fault)
    return JSONResponse({"error": "something went wrong here; it is in our log"}, 500)
