"""A worker without a door: it takes tasks that another process receives. Both share one PostgreSQL and one PULLWRIGHT_HOME."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import structlog

from bot.commands.serve import stopping, working
from bot.domain.errors import UserError
from bot.settings import Settings
from bot.telemetry import configure

log = structlog.get_logger()


async def work(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Work until SIGTERM or SIGINT; `announce` gets one JSON line once it does. Raises UserError without PostgreSQL."""
    configure()
    if not settings.database_url.startswith("postgres"):
        raise UserError(
            "A worker shares its tasks over PostgreSQL, and DATABASE_URL names none.",
            "On SQLite `pullwright serve` works them itself.",
        )
    stop = stopping()
    with _name(settings.home / "workers", settings.executor_id) as name:
        async with working(settings.model_copy(update={"executor_id": name})):
            log.info("working", executor=name)
            announce(json.dumps({"executor": name}))
            await stop.wait()


@contextmanager
def _name(directory: Path, host: str) -> Iterator[str]:
    """The first free of `HOST:worker:1`, `:2`, …: a restarted worker takes its old name, and with it the tasks it left."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        name = f"{host}:worker:{number}"
        with (directory / f"{name.replace('/', '_')}.lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield name
            return
