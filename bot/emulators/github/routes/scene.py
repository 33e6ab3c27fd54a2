"""The scene of an event, taken from a call."""

from __future__ import annotations

from bot.emulators.github.call import Call
from bot.emulators.github.webhooks.events import Scene


def scene(call: Call) -> Scene:
    return Scene(call.world, call.repository, call.user, call.urls)
