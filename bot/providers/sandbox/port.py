"""The sandbox role: a machine that holds the files of one commit, its test tools, and no credential of any kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.egress import Attempt
from bot.domain.errors import Transient
from bot.domain.ids import SandboxId

HOME = "/home/user"
WORK = "/home/user/repo"
"""Where the files of the commit stand, in every sandbox."""


class SandboxLost(Transient):
    """The sandbox is gone (expired, killed, its server restarted). Make another and put the last tree in."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A finished command. Output is cut to the caller's cap, middle first; `timed_out` means the deadline killed it."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False


class Sandbox(Protocol):
    """One live sandbox. Every method may raise SandboxLost or Transient."""

    @property
    def id(self) -> SandboxId: ...

    async def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        cwd: str = WORK,
        env: Mapping[str, str] | None = None,
        output_bytes: int = 200_000,
    ) -> CommandResult:
        """Run `command` with bash to its end. A non-zero exit is a value. `cwd` must exist."""
        ...

    async def allow(self, egress: Sequence[str]) -> None:
        """From now on exactly these `host:port` can be reached; with none, nothing."""
        ...

    async def attempts(self) -> tuple[Attempt, ...]:
        """What it asked the way out for since it began, in order, as far as the service tells (E2B Cloud does not)."""
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Write one file (parents are made); the way in for archives."""
        ...

    async def read(self, path: str, *, limit: int) -> bytes:
        """The bytes of one file. Raises FileNotFoundError, or ValueError above `limit` bytes (nothing is cut silently)."""
        ...

    async def snapshot(self, name: str) -> bool:
        """Keep its files (not what runs) under this name, in place of what had it; False where the service keeps none."""
        ...

    async def kill(self) -> None:
        """End it; ending twice is no error."""
        ...


class Sandboxes(Protocol):
    """Makes sandboxes. Egress is closed at creation, but for what is named."""

    async def create(
        self, *, template: str, labels: Mapping[str, str], lifetime_seconds: int, egress: Sequence[str] = ()
    ) -> Sandbox:
        """A fresh sandbox. Raises UserError for an unknown template or host, Transient when none can be had now."""
        ...

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Kill every sandbox that carries all of `labels`; how many there were."""
        ...

    async def snapshot_of(self, name: str) -> str | None:
        """The template that begins with what is kept under this name, for `create`; None when nothing is."""
        ...

    async def forget(self, prefix: str, *, but: str) -> None:
        """Keep nothing any longer whose name begins so, but for the one."""
        ...
