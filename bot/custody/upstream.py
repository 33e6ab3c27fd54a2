"""Where commits come from, and how git is let in there."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where to fetch from, through `proxy` if one is named. Token and proxy travel in the environment of git, never in its arguments."""

    url: str
    token: str | None = field(default=None, repr=False)
    protocols: str = "https"
    proxy: str | None = field(default=None, repr=False)

    def environment(self) -> dict[str, str]:
        """What git is told beyond its own environment (`git.environment`)."""
        told = []
        if self.token is not None:
            secret = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
            told.append(("http.extraHeader", f"Authorization: Basic {secret}"))
        if self.proxy is not None:
            told.append(("http.proxy", self.proxy))
        named = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(told)}
        given = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(told)}
        return {"GIT_CONFIG_COUNT": str(len(told)), **named, **given} if told else {}


def local_url(path: Path) -> str:
    """How git is told to fetch from a directory of this machine."""
    return os.fspath(path.resolve())
