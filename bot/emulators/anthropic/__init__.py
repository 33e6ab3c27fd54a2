"""A strict stand-in of the Messages API: real HTTP, exact bills, a scripted model behind it."""

from bot.emulators.anthropic.brain import (
    Brain,
    BrainAnswer,
    BrainError,
    BrainRequest,
    HeardMessage,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
)
from bot.emulators.anthropic.brains import Echo, Scripted, named, register, scripted
from bot.emulators.anthropic.faults import Fault, Kind
from bot.emulators.anthropic.server import Endpoint, running, serve_forever
from bot.emulators.anthropic.state import Config, State

__all__ = [
    "Brain",
    "BrainAnswer",
    "BrainError",
    "BrainRequest",
    "Config",
    "Echo",
    "Endpoint",
    "Fault",
    "HeardMessage",
    "Kind",
    "Scripted",
    "State",
    "Text",
    "Thinking",
    "Tool",
    "ToolResult",
    "ToolUse",
    "named",
    "register",
    "running",
    "scripted",
    "serve_forever",
]
