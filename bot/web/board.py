"""The page that shows tasks to people: read-only, no script, no outside resource, everything escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from bot.domain.errors import Transient
from bot.domain.money import ZERO, MicroUsd, show
from bot.domain.task import ENDINGS, Stage
from bot.providers.store.port import TaskRecord, Tasks
from bot.web.access import refused
from bot.web.onboarding import Repositories, repository_rows

SHOWN = 100

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

_WELL = frozenset({Stage.LANDED, Stage.READY})


class Spending(Protocol):
    """What tasks have cost. The store's ledger does this."""

    async def spent(self, tasks: tuple[str, ...]) -> Mapping[str, MicroUsd]: ...


@dataclass(frozen=True, slots=True)
class BoardSettings:
    """Where GitHub's pages are, the password of the page, if it has one (any user name), and where repositories are known."""

    pages: str = "https://github.com"
    password: str | None = field(default=None, repr=False)
    repositories: Repositories | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One task as the page shows it."""

    task: str
    subject: str
    subject_url: str
    title: str
    stage: str
    mood: str
    note: str
    cost: str
    pull: str
    pull_url: str


class Board:
    """The page, and whether the store behind it answers."""

    def __init__(self, tasks: Tasks, spending: Spending, settings: BoardSettings) -> None:
        self._tasks = tasks
        self._spending = spending
        self._settings = settings
        self._pages = Environment(
            loader=PackageLoader("bot.web", "pages"), undefined=StrictUndefined, autoescape=True, auto_reload=False
        )

    async def page(self, request: Request) -> Response:
        if (refusal := refused(request, self._settings.password)) is not None:
            return refusal
        try:
            rows = await self._rows()
            where = self._settings.repositories
            repositories = await repository_rows(where) if where is not None else ()
        except Transient:
            return PlainTextResponse("The store does not answer now.\n", 503, _HEADERS)
        body = self._pages.get_template("board.html.j2").render(rows=rows, repositories=repositories)
        return HTMLResponse(body, headers=_HEADERS)

    async def ready(self, _request: Request) -> Response:
        """200 when the store can be read."""
        try:
            await self._tasks.listing(1)
        except Transient:
            return PlainTextResponse("the store does not answer\n", 503)
        return PlainTextResponse("ready\n")

    async def _rows(self) -> tuple[Row, ...]:
        records = await self._tasks.listing(SHOWN)
        spent = await self._spending.spent(tuple(record.spec.id for record in records))
        return tuple(_row(record, spent.get(record.spec.id, ZERO), self._settings.pages) for record in records)


def _row(record: TaskRecord, spent: MicroUsd, pages: str) -> Row:
    spec, subject = record.spec, record.spec.subject
    base = f"{pages.rstrip('/')}/{quote(subject.repository.full_name)}"
    place = "pull" if subject.is_pull else "issues"
    number = record.pull_number
    return Row(
        task=spec.id,
        subject=f"{subject.repository.full_name}#{subject.number}",
        subject_url=f"{base}/{place}/{subject.number}",
        title=spec.title,
        stage=record.stage.value.replace("_", " "),
        mood=_mood(record.stage),
        note=record.note if record.ending is None else record.ending.reason,
        cost=f"{show(spent)} of {show(spec.budget)}",
        pull="" if number is None else f"#{number}",
        pull_url="" if number is None else f"{base}/pull/{number}",
    )


def _mood(stage: Stage) -> str:
    if stage in _WELL:
        return "well"
    return "ended" if stage in ENDINGS else "live"
