"""A strict local stand-in of GitHub, over real HTTP."""

from bot.emulators.github.config import (
    AppSeed,
    Config,
    CredentialSeed,
    DeployKeySeed,
    GistSeed,
    IssueSeed,
    LabelSeed,
    OrganisationSeed,
    Protection,
    RepositorySeed,
    Seed,
    UserSeed,
    load_seed,
)
from bot.emulators.github.server import Endpoint, RepositoryInfo, UserInfo, running, serve_forever

__all__ = [
    "AppSeed",
    "Config",
    "CredentialSeed",
    "DeployKeySeed",
    "Endpoint",
    "GistSeed",
    "IssueSeed",
    "LabelSeed",
    "OrganisationSeed",
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
