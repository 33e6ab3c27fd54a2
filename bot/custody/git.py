"""The only module of the product that starts git.

Every call runs with an environment written here from nothing, in an empty directory, against a git directory the
caller names. Rules and the attacks behind each line: specs/security.md §2.5.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

_GIT = "/usr/bin/git"

_CONFIG = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.attributesFile=/dev/null",
    "core.abbrev=40",
    "safe.bareRepository=explicit",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "http.followRedirects=false",
    "credential.helper=",
)


class GitError(Exception):
    """git ended with a code that the caller did not expect; `stderr` is what it said, cut to 2,000 characters."""

    def __init__(self, args: Sequence[str], code: int, stderr: bytes) -> None:
        self.code = code
        self.stderr = stderr.decode("utf-8", "replace")[:2000]
        super().__init__(f"git {args[0] if args else ''} ended with {code}: {self.stderr.strip()}")


@dataclass(frozen=True, slots=True)
class GitResult:
    code: int
    stdout: bytes
    stderr: bytes


def environment(*, protocols: str = "https", extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a git process. `protocols` is GIT_ALLOW_PROTOCOL: "https", or "http" for a stand-in."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_PROTOCOL_FROM_USER": "0",
        **(extra or {}),
    }


def command(git_dir: Path | None, args: Sequence[str]) -> list[str]:
    """argv of one git call: fixed settings first, then the git directory, then what the caller asks for."""
    settings = [part for setting in _CONFIG for part in ("-c", setting)]
    where = [f"--git-dir={git_dir}"] if git_dir else []
    return [_GIT, "--no-pager", *settings, *where, *args]


@asynccontextmanager
async def spawn(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    protocols: str = "https",
    env: Mapping[str, str] | None = None,
    stdin: int = asyncio.subprocess.PIPE,
    stdout: int = asyncio.subprocess.PIPE,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A running git for streaming (`cat-file --batch`, `http-backend`); killed on the way out if it still runs."""
    with tempfile.TemporaryDirectory(prefix="git-cwd-") as empty:
        process = await asyncio.create_subprocess_exec(
            *command(git_dir, args),
            stdin=stdin,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            env=environment(protocols=protocols, extra=env),
            cwd=empty,
            start_new_session=True,
            limit=1 << 20,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            _close(process)


def _close(process: asyncio.subprocess.Process) -> None:
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def git(  # noqa: PLR0913 - see spawn
    args: Sequence[str],
    *,
    git_dir: Path | None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    protocols: str = "https",
    timeout_seconds: float = 120,
    ok: frozenset[int] = frozenset({0}),
) -> GitResult:
    """Run git to its end. Raises GitError when the exit code is not in `ok` or the time is up."""
    async with spawn(args, git_dir=git_dir, env=env, protocols=protocols) as process:
        try:
            async with asyncio.timeout(timeout_seconds):
                out, err = await process.communicate(stdin)
        except TimeoutError:
            raise GitError(args, -1, f"no answer within {timeout_seconds:g} s".encode()) from None
    code = process.returncode if process.returncode is not None else -1
    if code not in ok:
        raise GitError(args, code, err)
    return GitResult(code, out, err)


def isolated_index(directory: Path) -> dict[str, str]:
    """Environment that points git at a private index file, so that building a tree touches no shared state."""
    return {"GIT_INDEX_FILE": os.fspath(directory / "index")}
