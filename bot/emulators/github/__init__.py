"""A strict local stand-in of GitHub, over real HTTP."""

from bot.emulators.github.config import (
    Config,
    IssueSeed,
    LabelSeed,
    Protection,
    RepositorySeed,
    Seed,
    UserSeed,
    load_seed,
)
from bot.emulators.github.server import Endpoint, RepositoryInfo, UserInfo, running, serve_forever

__all__ = [
    "Config",
    "Endpoint",
    "IssueSeed",
    "LabelSeed",
    "Protection",
    "RepositoryInfo",
    "RepositorySeed",
    "Seed",
    "UserInfo",
    "UserSeed",
    "load_seed",
    "running",
    "serve_forever",
]
