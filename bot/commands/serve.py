"""One process: web, worker, and local sandboxes when no E2B key is set."""

from __future__ import annotations

import asyncio
import gc
import json
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from bot.domain.errors import Transient, UserError
from bot.domain.money import from_dollars
from bot.providers.forge.addresses import pages_of
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.serve import Config as SandboxConfig
from bot.sandboxd.serve import running as running_sandboxes
from bot.settings import Settings
from bot.telemetry import configure
from bot.web.app import WebSettings
from bot.web.app import build as build_web
from bot.web.metrics import Sources
from bot.web.onboarding import Repositories
from bot.web.serving import bound, listening
from bot.wiring import Application, SandboxEndpoint, build
from bot.workflow.engine import Engine
from bot.workflow.retention import Forgotten

log = structlog.get_logger()

REST_SECONDS = 1.0
SWEEP_SECONDS = 60.0
MISSED_SECONDS = 300.0
FORGET_SECONDS = 86_400.0
E2B_CLOUD = "https://api.e2b.app"


@dataclass(frozen=True, slots=True)
class Serving:
    """A running product."""

    url: str
    application: Application


async def serve(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `announce` gets one JSON line when requests are answered."""
    configure()
    stop = stopping()
    async with running(settings) as serving:
        announce(json.dumps({"url": serving.url, "webhook": f"{serving.url}/webhook"}))
        await stop.wait()


def stopping() -> asyncio.Event:
    """Set at SIGTERM or SIGINT, from now on: one that comes while things start ends them in order as well."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def working(settings: Settings) -> AsyncIterator[Application]:
    """Engine and sandboxes, and nobody at the door. Raises UserError when they cannot start."""
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(sandboxes(settings))
        application = build(settings, sandbox)
        stack.callback(application.store.close)
        await asyncio.to_thread(application.engine.launch)
        stack.push_async_callback(_close, application.engine)
        gc.freeze()  # what is loaded by now stays; to look through it would stop every answer for a third of a second, again and again
        yield application


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Serving]:
    """The product inside this event loop for as long as the block lasts. Raises UserError when it cannot start."""
    async with AsyncExitStack() as stack:
        door = stack.enter_context(_door(settings))
        application = await stack.enter_async_context(working(settings))
        url = await stack.enter_async_context(_listening(settings, application, door))
        for work in _chores(application.engine, timedelta(days=settings.retention_days)):
            stack.callback(asyncio.create_task(work).cancel)
        log.info("serving", url=url)
        yield Serving(url, application)


async def _close(engine: Engine) -> None:
    """DBOS puts an executor of its own in the loop's place and ends it with itself; what ends after it needs one too."""
    await asyncio.to_thread(engine.close)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


@asynccontextmanager
async def sandboxes(settings: Settings) -> AsyncIterator[SandboxEndpoint]:
    """E2B Cloud when its key is set, else a local server as long as the block lasts. Raises UserError without isolation."""
    key = settings.e2b_api_key.get_secret_value()
    if key:
        api_url = settings.e2b_api_url or E2B_CLOUD
        yield SandboxEndpoint(api_url, settings.e2b_sandbox_url, key)
        return
    try:
        config = SandboxConfig(settings.home, secrets.token_urlsafe(24), weaker=settings.weaker_isolation)
        async with running_sandboxes(config) as endpoint:
            yield SandboxEndpoint(endpoint.api_url, endpoint.sandbox_url, endpoint.api_key, endpoint.shortfall)
    except IsolationUnavailable as refusal:
        raise UserError(str(refusal)) from refusal


def _chores(engine: Engine, kept: timedelta) -> Iterator[Coroutine[Any, Any, None]]:
    """What goes on beside the door: deliveries are looked at; those stored and not carried out (a crash in between) are queued again;
    those that came while nothing served are asked for, since GitHub does not bring them by itself; what is long over is forgotten."""
    yield _every(REST_SECONDS, engine.attend, "a delivery was not looked at; the sweep brings it back")
    yield _every(SWEEP_SECONDS, engine.sweep, "stored deliveries cannot be read; unfinished ones wait")
    yield _every(MISSED_SECONDS, engine.recover_missed, "GitHub's delivery log cannot be read; missed deliveries wait")
    yield _every(FORGET_SECONDS, lambda: _forget(engine, kept), "what is long over could not be forgotten")


async def _every(seconds: float, act: Callable[[], Coroutine[Any, Any, object]], otherwise: str) -> None:
    """Again and again. What cannot be done now is said in the log and tried at the next turn; so is a fault of ours, in full."""
    while True:
        work = asyncio.create_task(act())
        try:
            await asyncio.wait({work})
        finally:
            work.cancel()
        fault = work.exception()
        if isinstance(fault, (Transient, ForgeGone, ForgeRefused)):
            log.warning(otherwise, reason=str(fault)[:300])
        elif fault is not None:
            log.error(otherwise, exc_info=fault)
        await asyncio.sleep(seconds)


async def _forget(engine: Engine, kept: timedelta) -> None:
    gone = await engine.forget(datetime.now(UTC) - kept)
    if gone != Forgotten(0, 0, 0):
        log.info("forgotten", bodies=gone.bodies, workflows=gone.workflows, values=gone.values)


def _door(settings: Settings) -> socket.socket:
    """The socket to listen on, taken before anything is started. Raises UserError when it cannot be had."""
    try:
        return bound(settings.host, settings.port)
    except OSError as error:
        told = f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}."
        raise UserError(told, "Set PULLWRIGHT_HOST and PULLWRIGHT_PORT to an address that is free.") from error


@asynccontextmanager
async def _listening(settings: Settings, application: Application, door: socket.socket) -> AsyncIterator[str]:
    given = (settings.webhook_secret, settings.webhook_secret_previous)
    web = build_web(
        application.engine,
        WebSettings(
            secrets=tuple(secret.get_secret_value() for secret in given if secret.get_secret_value()),
            tasks=application.store.tasks,
            ledger=application.store.ledger,
            pages=pages_of(settings.github_api_url),
            repositories=Repositories(
                application.store, settings.home / "mirrors", from_dollars(str(settings.summary_budget_usd))
            ),
            metrics=Sources(application.store.figures, application.engine, application.sandboxes),
            password=settings.dashboard_password.get_secret_value() or None,
        ),
    )
    async with listening(web, door) as url:
        yield url
