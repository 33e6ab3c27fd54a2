"""Running the stand-in: inside a process, or by hand until a signal."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from bot.emulators import loopback
from bot.emulators.anthropic.app import build
from bot.emulators.anthropic.state import Config, State

__all__ = ["Config", "Endpoint", "running", "serve_forever"]

Endpoint: TypeAlias = loopback.Endpoint[State]


def running(config: Config | None = None) -> AbstractAsyncContextManager[Endpoint]:
    """A stand-in on a loopback port for as long as the block lasts."""
    config = config or Config()
    state = State(config)
    return loopback.hosting(build(state), state, api_key=config.api_key, port=config.port, on_stop=state.closing.set)


async def serve_forever(config: Config, announce: Callable[[str], None]) -> None:
    """Announce one JSON line when ready; serve until SIGTERM."""
    await loopback.serve_forever(running(config), announce)
