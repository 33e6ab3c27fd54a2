"""A repository as the product knows it, and the settings its owners keep in `.github/pullwright.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.ids import InstallationId, RepositoryId

SETTINGS_PATH = ".github/pullwright.toml"


@dataclass(frozen=True, slots=True)
class RepositoryRef:
    """Which repository, by number; `full_name` is for people and for URLs, never for identity."""

    id: RepositoryId
    full_name: str
    installation_id: InstallationId


class LandingMode(StrEnum):
    """What an approval leads to: `ready` marks the draft ready, `merge` merges it."""

    READY = "ready"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """`.github/pullwright.toml` of the default branch. Commands run in the sandbox with bash, in the repository's root."""

    setup: tuple[str, ...] = ()
    setup_files: tuple[str, ...] = ()
    """Patterns of the files that `setup` reads; empty means found from its commands (`policy/setup.py`)."""
    test: str | None = None
    """None: found from the files (`policy/repository.py`)."""
    step_test: str | None = None
    """A quicker command after each step; None means `test`."""
    lint: str | None = None
    proof: str | None = None
    """Run after the checks passed; what it leaves in `/home/user/artefacts` is shown on the pull request."""
    test_timeout_seconds: int = 900
    plan_gate: bool = False
    landing: LandingMode = LandingMode.READY
    template: str | None = None
    """Sandbox template; None means the operator's default."""
