"""Running the stand-in: inside a process, or by hand until a signal."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.emulators.loopback import serving, until_signalled
from bot.emulators.voyage.app import build
from bot.emulators.voyage.state import Config, State

__all__ = ["Config", "Endpoint", "running", "serve_forever"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a running stand-in answers (a base URL for the client), and what it remembers."""

    url: str
    api_key: str
    state: State


@asynccontextmanager
async def running(config: Config | None = None) -> AsyncIterator[Endpoint]:
    """A stand-in on a loopback port for as long as the block lasts."""
    state = State(config or Config())
    async with serving(build(state), port=state.config.port, on_stop=state.closing.set) as url:
        yield Endpoint(url, state.config.api_key, state)


async def serve_forever(config: Config, announce: Callable[[str], None]) -> None:
    """Announce one JSON line when ready; serve until SIGTERM."""
    async with running(config) as endpoint:
        announce(json.dumps({"url": endpoint.url, "api_key": endpoint.api_key}))
        await until_signalled()
