"""A sandbox that is a directory of this machine, and repositories to put into it. Isolates nothing: for our own data only."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.domain.egress import Attempt
from bot.domain.ids import CommitId, SandboxId
from bot.providers.sandbox.port import HOME, WORK, CommandResult

DATE = "2026-01-01T00:00:00+00:00"


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def take(path: Path) -> bytes:
    return path.read_bytes()


class LocalSandbox:
    """Commands run as processes; `/home/user` is a directory of the test."""

    def __init__(self, root: Path, path: str = "/usr/bin:/bin") -> None:
        self.root = root
        self.path = path
        self.work = Path(self._real(WORK))
        self.work.mkdir(parents=True, exist_ok=True)

    def _real(self, text: str) -> str:
        return text.replace(HOME, os.fspath(self.root))

    @property
    def id(self) -> SandboxId:
        return SandboxId("local")

    async def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        cwd: str = WORK,
        env: Mapping[str, str] | None = None,
        output_bytes: int = 200_000,
    ) -> CommandResult:
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            "/bin/bash",
            "-c",
            self._real(command),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._real(cwd),
            env={"PATH": self.path, "HOME": os.fspath(self.root), **(env or {})},
        )
        async with asyncio.timeout(timeout_seconds):
            out, err = await process.communicate()
        seconds = time.monotonic() - started
        return CommandResult(process.returncode or 0, out.decode()[:output_bytes], err.decode(), seconds)

    async def allow(self, egress: Sequence[str]) -> None:
        assert not egress

    async def attempts(self) -> tuple[Attempt, ...]:
        return ()

    async def write(self, path: str, data: bytes) -> None:
        put(Path(self._real(path)), data)

    async def read(self, path: str, *, limit: int) -> bytes:
        data = take(Path(self._real(path)))
        if len(data) > limit:
            raise ValueError(path)
        return data

    async def snapshot(self, name: str) -> bool:
        return False

    async def kill(self) -> None:
        return None


class Clone:
    """A work tree with a `.git`, as a person has it; git is driven the ordinary way."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *options)

    def git(self, *args: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
        settings = {
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in _WHO.items()},
            **(env or {}),
        }
        done = subprocess.run(
            ["/usr/bin/git", "-c", "protocol.file.allow=always", *args],
            cwd=self.path,
            env=settings,
            input=data,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"git {args}: {done.stderr.decode()}")
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            put(self.path / name, content.encode() if isinstance(content, str) else content)

    def link(self, name: str, target: str) -> None:
        (self.path / name).unlink(missing_ok=True)
        (self.path / name).symlink_to(target)

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "change") -> CommitId:
        self.write(files or {})
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def head(self, ref: str = "HEAD") -> CommitId:
        return CommitId(self.git("rev-parse", ref))

    def plumb(self, files: Mapping[bytes, tuple[str, bytes]], *parents: CommitId) -> CommitId:
        """A commit of exactly these paths, modes and contents, without a work tree and without a ref."""
        lines = []
        for path, (mode, data) in files.items():
            pointer = mode == "160000"
            blob = "3" * 40 if pointer else self.git("hash-object", "-w", "--stdin", data=data)
            lines.append(f"{mode} {blob}\t".encode() + path + b"\0")
        index = {"GIT_INDEX_FILE": str(self.path / ".git" / "plumbed")}
        (self.path / ".git" / "plumbed").unlink(missing_ok=True)
        self.git("update-index", "-z", "--index-info", data=b"".join(lines), env=index)
        tree = self.git("write-tree", env=index)
        return CommitId(self.git("commit-tree", tree, *(f"-p{parent}" for parent in parents), "-m", "plumbed"))

    def commit_of_entries(self, lines: bytes) -> CommitId:
        """A commit whose tree has exactly these `mktree`-style entries, however odd."""
        tree = self.git("mktree", "-z", "--missing", data=lines)
        return CommitId(self.git("commit-tree", tree, "-m", "odd"))


_WHO = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": DATE}
