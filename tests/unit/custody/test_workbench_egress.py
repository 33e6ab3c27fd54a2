"""The set-up may reach more than what runs after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.custody.mirror import Mirror
from bot.custody.workbench import BenchSettings, Workbench
from bot.providers.sandbox.port import CommandResult, Sandbox
from tests.unit.custody.local import Clone, LocalSandbox

SETUP, ALWAYS = "packages.example.org:443", "files.example.org:443"


class Recording(LocalSandbox):
    """Notes in which order hosts are opened and commands run."""

    def __init__(self, root: Path, log: list[tuple[str, ...]]) -> None:
        super().__init__(root)
        self.log = log

    async def run(
        self,
        command: str,
        *,
        timeout_seconds: float,
        cwd: str = "/home/user/repo",
        env: Mapping[str, str] | None = None,
        output_bytes: int = 200_000,
    ) -> CommandResult:
        self.log.append(("run", command.partition(" ")[0]))
        return await super().run(command, timeout_seconds=timeout_seconds, cwd=cwd, env=env, output_bytes=output_bytes)

    async def allow(self, egress: Sequence[str]) -> None:
        self.log.append(("allow", *egress))


class Makes:
    """Hands out one recording sandbox."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log: list[tuple[str, ...]] = []

    async def create(
        self, *, template: str, labels: Mapping[str, str], lifetime_seconds: int, egress: Sequence[str] = ()
    ) -> Sandbox:
        self.log.append(("create", *egress))
        return Recording(self.root, self.log)

    async def reap(self, labels: Mapping[str, str]) -> int:
        return 0

    async def snapshot_of(self, name: str) -> str | None:
        return None

    async def forget(self, prefix: str, *, but: str) -> None:
        raise AssertionError(prefix, but)


async def acted(tmp_path: Path, settings: BenchSettings) -> list[tuple[str, ...]]:
    clone = Clone(tmp_path / "clone")
    mirror = Mirror(tmp_path / "m", 1)  # type: ignore[arg-type]
    base = await mirror.from_directory(clone.path, clone.commit({"a": "1\n"}))
    makes = Makes(tmp_path / "sandbox")
    bench = Workbench(makes, mirror, base, settings)

    async def test(sandbox: Sandbox) -> None:
        await sandbox.run("test -f a", timeout_seconds=20)

    await bench.act(await mirror.tree_of(base), test)
    return [entry for entry in makes.log if entry[1:2] != ("python3",)]


async def test_hosts_of_the_set_up_are_shut_before_anything_else_runs(tmp_path: Path) -> None:
    settings = BenchSettings("base", {}, setup=("true",), setup_egress=(SETUP,), egress=(ALWAYS,))
    assert await acted(tmp_path, settings) == [
        ("create", ALWAYS, SETUP),
        ("run", "true"),
        ("allow", ALWAYS),
        ("run", "test"),
    ]


async def test_without_set_up_commands_its_hosts_are_never_open(tmp_path: Path) -> None:
    settings = BenchSettings("base", {}, setup_egress=(SETUP,))
    assert await acted(tmp_path, settings) == [("create",), ("run", "test")]
