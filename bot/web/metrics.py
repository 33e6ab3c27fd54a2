"""`/metrics` in Prometheus' text format, read when it is asked for. No label tells of a repository or a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.domain.errors import Transient, UserError
from bot.domain.figures import ModelFigures, QueueFigures, StoreFigures
from bot.domain.money import dollars
from bot.domain.task import ENDINGS, Stage
from bot.web.access import refused
from bot.web.hook import Counts

_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class Figures(Protocol):
    """The store's figures."""

    async def read(self) -> StoreFigures:
        """Raises Transient when the store does not answer."""
        ...


class Queues(Protocol):
    """The engine's queues."""

    async def queues(self) -> tuple[QueueFigures, ...]:
        """Raises Transient when its database does not answer."""
        ...


class Sandboxes(Protocol):
    """The service that has the sandboxes."""

    async def live(self) -> int:
        """How many of ours it has now. Raises Transient when it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the figures come from."""

    figures: Figures
    queues: Queues
    sandboxes: Sandboxes
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))


class Metrics:
    """The endpoint: 200 with everything, or 503 with nothing of it."""

    def __init__(self, sources: Sources, counts: Counts, password: str | None) -> None:
        self._sources = sources
        self._counts = counts
        self._password = password

    async def answer(self, request: Request) -> Response:
        if (refusal := refused(request, self._password)) is not None:
            return refusal
        try:
            store = await self._sources.figures.read()
            queues = await self._sources.queues.queues()
        except Transient:
            return PlainTextResponse("The store does not answer now.\n", 503, _HEADERS)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Made([*self._of_store(store), *_of_queues(queues), *await self._of_sandboxes()]))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4, headers=_HEADERS)

    def _of_store(self, store: StoreFigures) -> Iterator[Metric]:
        counts = self._counts
        yield _counter("deliveries", "Webhook deliveries that were taken, since the start", "outcome", counts.taken)
        yield _counter(
            "deliveries_refused", "Webhook deliveries that were refused, since the start", "reason", counts.refused
        )
        yield _gauge("deliveries_waiting", "Deliveries that are stored and not dealt with", store.waiting)
        since = store.waiting_since
        age = (self._sources.now() - datetime.fromisoformat(since)).total_seconds() if since is not None else 0.0
        yield _gauge("deliveries_oldest_waiting_seconds", "How long the oldest of them waits", max(0.0, age))
        stages = {stage: number for stage, number in store.tasks.items() if stage not in ENDINGS}
        endings = {stage: number for stage, number in store.tasks.items() if stage in ENDINGS}
        yield _by("tasks", "Tasks that have not ended, by stage", "stage", _named(stages))
        yield _counter("tasks_ended", "Tasks that ended, by ending", "ending", _named(endings))
        yield from _of_models(store.models)
        yield _counter(
            "summaries_spent_dollars", "What summaries of files have cost", None, {"": dollars(store.summaries)}
        )

    async def _of_sandboxes(self) -> tuple[Metric, ...]:
        """Nothing where the service does not answer: how many there are is not known then."""
        told = "Whether the sandbox service tells how many there are"
        try:
            live = await self._sources.sandboxes.live()
        except (Transient, UserError):
            return (_gauge("sandboxes_answer", told, 0),)
        return (_gauge("sandboxes_answer", told, 1), _gauge("sandboxes_live", "Sandboxes of tasks", live))


def _of_models(models: Sequence[ModelFigures]) -> Iterator[Metric]:
    spent = {each.model: dollars(each.spent) for each in models}
    yield _counter(
        "spent_dollars", "What tasks have cost; calls nobody heard of count in full after an hour", "model", spent
    )
    day = {each.model: dollars(each.day) for each in models}
    yield _by(
        "spent_last_day_dollars", "The last 24 hours, as the daily limit counts: with what is reserved", "model", day
    )
    calls = CounterMetricFamily("pullwright_model_calls", "Attempts of model calls", labels=("model", "outcome"))
    for each in models:
        for outcome, count in (("answered", each.answered), ("failed", each.failed), ("unheard", each.unheard)):
            calls.add_metric((each.model, outcome), count)
    yield calls
    under_way = {each.model: each.under_way for each in models}
    yield _by("model_calls_under_way", "Attempts of which nothing was heard yet", "model", under_way)


def _of_queues(queues: Sequence[QueueFigures]) -> Iterator[Metric]:
    yield _by(
        "queue_waiting",
        "What waits for a free place (a thousand at most)",
        "queue",
        {q.queue: q.waiting for q in queues},
    )
    yield _by("queue_running", "What has a place (a thousand at most)", "queue", {q.queue: q.running for q in queues})
    yield _by(
        "queue_oldest_wait_seconds", "How long the first of them waits", "queue", {q.queue: q.oldest for q in queues}
    )


class _Made(Collector):
    """Hands out what was made."""

    def __init__(self, made: Sequence[Metric]) -> None:
        self._made = made

    def collect(self) -> Iterator[Metric]:
        return iter(self._made)


def _named(stages: Mapping[Stage, int]) -> Mapping[str, int]:
    return {stage.value: number for stage, number in stages.items()}


def _gauge(name: str, told: str, value: float) -> Metric:
    return GaugeMetricFamily(f"pullwright_{name}", told, value)


def _by(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"pullwright_{name}", told, labels=(label,))
    for of, value in values.items():
        family.add_metric((of,), value)
    return family


def _counter(name: str, told: str, label: str | None, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(f"pullwright_{name}", told, labels=() if label is None else (label,))
    for of, value in values.items():
        family.add_metric(() if label is None else (of,), value)
    return family
