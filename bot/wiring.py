"""The only composition root: builds the real collaborators from the settings and hands one frozen bundle down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import Thread
from typing import Protocol, TypedDict
from urllib.parse import urlsplit

from bot.domain.errors import Transient
from bot.domain.ids import RepositoryId, TaskId
from bot.domain.money import MicroUsd, from_dollars
from bot.policy.loops import LoopLimits
from bot.providers.embedding.port import Embedder
from bot.providers.forge.addresses import pages_of
from bot.providers.forge.githubkit import AppCredentials, GithubForges
from bot.providers.forge.hooklog import GithubHookLog
from bot.providers.llm.batches import Batches
from bot.providers.llm.estimator import Estimator
from bot.providers.llm.metered import Attempts, MeteredModel, Purse
from bot.providers.llm.port import LanguageModel, ModelRequest, ModelTurn
from bot.providers.llm.pricing import PriceBook
from bot.providers.organisation.github import GithubOrganisation
from bot.providers.sandbox.e2b import E2BSandboxes
from bot.providers.scanner.semgrep import Semgrep
from bot.providers.store.log import SqlLog
from bot.providers.store.sql import Store, open_store
from bot.retrieval.service import Meaning
from bot.settings import Settings, is_loopback, load_policies
from bot.workflow.engine import Engine, EngineSettings
from bot.workflow.services import ModelChoice, Services

_VENDOR = "bot.providers.llm.anthropic"


@dataclass(frozen=True, slots=True)
class SandboxEndpoint:
    """Where sandboxes come from: E2B Cloud, a self-hosted one, or the local server."""

    api_url: str
    sandbox_url: str
    api_key: str
    isolation: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """What `serve` and `worker` run."""

    settings: Settings
    store: Store
    services: Services
    engine: Engine
    sandboxes: E2BSandboxes
    """As the door's event loop asks for them."""


def build(settings: Settings, sandbox: SandboxEndpoint) -> Application:
    """Connect everything. Nothing is started and nothing outside is called yet, but the store is opened."""
    settings.home.mkdir(parents=True, exist_ok=True)
    store = open_store(settings.database())
    credentials = AppCredentials.from_pem(settings.app_id, settings.private_key())
    services = _services(settings, sandbox, store, credentials, _FirstUse(settings))
    engine = Engine(
        services,
        EngineSettings(
            settings.engine_database(), settings.executor_id, settings.polling_seconds, settings.tasks_at_once
        ),
        GithubForges(credentials, **_github(settings)),
    )
    return Application(settings, store, services, engine, _sandboxes(sandbox))


@asynccontextmanager
async def local(settings: Settings, sandbox: SandboxEndpoint) -> AsyncIterator[Services]:
    """What a task on a local clone works with: no App, no engine. Store and connections are open as long as the block lasts."""
    settings.home.mkdir(parents=True, exist_ok=True)
    store, model = open_store(settings.database()), _FirstUse(settings)
    try:
        yield _services(settings, sandbox, store, AppCredentials("", None), model)
    finally:
        await model.aclose()
        store.close()


def _sandboxes(endpoint: SandboxEndpoint) -> E2BSandboxes:
    return E2BSandboxes(api_url=endpoint.api_url, sandbox_url=endpoint.sandbox_url, api_key=endpoint.api_key)


def _services(
    settings: Settings, sandbox: SandboxEndpoint, store: Store, credentials: AppCredentials, model: _FirstUse
) -> Services:
    egress, setup_egress = settings.hosts()
    return Services(
        forges=GithubForges(credentials, **_github(settings)),
        hook_log=GithubHookLog(credentials, **_github(settings)),
        model_for=_models(model, store),
        ledger=store.ledger,
        sandboxes=_sandboxes(sandbox),
        scanner=Semgrep.from_directory(settings.policies / "semgrep", "/opt/semgrep/bin/semgrep"),
        deliveries=store.deliveries,
        tasks=store.tasks,
        approvals=store.approvals,
        home=settings.home,
        models=ModelChoice(settings.planner_model, settings.coder_model, coder_thinking=settings.coder_thinking),
        budget=from_dollars(str(settings.budget_usd)),
        label=settings.label,
        template=settings.template,
        git_protocols=git_protocols(settings.github_api_url),
        git_proxy=settings.proxy(pages_of(settings.github_api_url)),
        policies=load_policies(settings.policies),
        requests=store.requests,
        loops=LoopLimits(
            settings.rounds_per_pull,
            settings.requests_per_user_hour,
            settings.requests_per_repository_day,
            from_dollars(str(settings.usd_per_day)),
        ),
        egress=egress,
        setup_egress=setup_egress,
        embedder=embedder(settings),
        summaries_of=store.summaries,
        summaries=_summaries_at_onboarding(settings),
        summary_budget=from_dollars(str(settings.summary_budget_usd)),
        preload=_preload,
        isolation=sandbox.isolation,
    )


VOYAGE = "https://api.voyageai.com"


class _Github(TypedDict):
    base_url: str
    proxy: str | None


def _github(settings: Settings) -> _Github:
    """Where GitHub is, and the way there."""
    return {"base_url": settings.github_api_url, "proxy": settings.proxy(settings.github_api_url)}


def organisation_of(settings: Settings, token: str) -> GithubOrganisation:
    """What an audit reads with; it has neither the App's key nor a method that writes."""
    return GithubOrganisation(token, **_github(settings))


def log_of(settings: Settings) -> SqlLog:
    """Everything that is kept, to be read."""
    return SqlLog(settings.database())


def _preload() -> None:
    """The vendor's SDK takes seconds to load; while the tests run on the base nobody waits for it."""
    Thread(target=import_module, args=(_VENDOR,), daemon=True).start()


def _models(raw: _FirstUse, store: Store) -> Callable[[TaskId, MicroUsd], LanguageModel]:
    estimator = Estimator()

    def model_for(task: TaskId, budget: MicroUsd) -> LanguageModel:
        return MeteredModel(raw, Purse(task, budget, store.ledger), raw.prices, estimator)

    return model_for


class _Vendor(Attempts, Protocol):
    async def aclose(self) -> None: ...


class _FirstUse:
    """The vendor's SDK takes seconds and a hundred megabytes to load; it is loaded, on a thread, when a task first needs it."""

    def __init__(self, settings: Settings) -> None:
        self.prices = PriceBook.load()
        self._settings = settings
        self._model: _Vendor | None = None
        self._loading = asyncio.Lock()

    async def attempt(self, request: ModelRequest) -> ModelTurn:
        async with self._loading:
            if self._model is None:
                vendor = await asyncio.to_thread(import_module, _VENDOR)
                self._model = vendor.AnthropicModel(
                    api_key=self._settings.anthropic_api_key.get_secret_value(),
                    base_url=self._settings.anthropic_base_url,
                    proxy=self._settings.proxy(self._settings.anthropic_base_url),
                    prices=self.prices,
                )
        return await self._model.attempt(request)

    async def aclose(self) -> None:
        """Close the connections, if there were any."""
        if self._model is not None:
            await self._model.aclose()


def summaries(settings: Settings) -> Batches:
    """The batches that summarise files."""
    vendor = import_module("bot.providers.llm.anthropic_batches")
    made: Batches = vendor.AnthropicBatches(
        api_key=settings.anthropic_api_key.get_secret_value(),
        base_url=settings.anthropic_base_url,
        proxy=settings.proxy(settings.anthropic_base_url),
        prices=PriceBook.load(),
        model=settings.summary_model,
    )
    return made


def _summaries_at_onboarding(settings: Settings) -> Batches | None:
    paid = settings.summary_budget_usd > 0 and settings.anthropic_api_key.get_secret_value()
    return summaries(settings) if paid else None


@contextmanager
def meaning(settings: Settings, repository: RepositoryId) -> Iterator[Meaning | None]:
    """What makes summaries of this repository count in ranking; None without a key, or when the database does not answer."""
    made = embedder(settings)
    if made is None:
        yield None
        return
    settings.home.mkdir(parents=True, exist_ok=True)
    try:
        store = open_store(settings.database())
    except Transient:
        yield None
        return
    try:
        yield Meaning(made, store.summaries(repository))
    finally:
        store.close()


def embedder(settings: Settings) -> Embedder | None:
    """None without a key: ranking uses words and outlines only."""
    key = settings.voyage_api_key.get_secret_value()
    if not key:
        return None
    vendor = import_module("bot.providers.embedding.voyage")
    made: Embedder = vendor.VoyageEmbedder(
        api_key=key,
        base_url=settings.voyage_base_url or None,
        proxy=settings.proxy(settings.voyage_base_url or VOYAGE),
        model=settings.voyage_model,
        dimension=settings.voyage_dimension,
    )
    return made


def git_protocols(api_url: str) -> str:
    """Transports git may use: https; http only when GitHub's stand-in answers on this machine's loopback."""
    parts = urlsplit(api_url)
    return "http" if parts.scheme == "http" and is_loopback(parts.hostname or "") else "https"
