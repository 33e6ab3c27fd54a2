"""A task after the first begins where the set-up of the first ended: the real workbench over the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.custody.mirror import Mirror
from bot.custody.workbench import SETTING_UP, BenchSettings, Workbench
from bot.domain.egress import Attempt
from bot.domain.errors import UserError
from bot.domain.ids import CommitId, RepositoryId, TreeId
from bot.providers.sandbox.e2b import E2BSandboxes
from bot.providers.sandbox.port import Sandbox
from bot.sandboxd.egress.proxy import Outside, Streams
from bot.sandboxd.serve import Config, running
from tests.contracts.sandbox_server import KEY
from tests.unit.custody.local import Clone

pytestmark = pytest.mark.asyncio(loop_scope="module")
SETUP = "mkdir -p .venv; cp deps.txt .venv/deps; cat /proc/sys/kernel/random/uuid > .venv/made"
SETTINGS = BenchSettings("base", {"test": "reuse"}, setup=(SETUP,), setup_files=("deps.txt",), owner="acme/shop")


class Repository:
    """A clone, its mirror, and what a task does with them: a bench, and a look at what was set up."""

    def __init__(self, root: Path, sandboxes: E2BSandboxes, number: int = 7) -> None:
        self.clone = Clone(root / f"clone-{number}")
        self.mirror = Mirror(root / "mirrors", RepositoryId(number))
        self.sandboxes = sandboxes

    async def commit(self, **files: str) -> CommitId:
        return await self.mirror.from_directory(
            self.clone.path, self.clone.commit({name.replace("_", "."): text for name, text in files.items()})
        )

    async def made(self, base: CommitId, tree: TreeId | None = None, settings: BenchSettings = SETTINGS) -> str:
        """When the set-up ran that the files of this task come from, and that they are the task's."""
        bench = Workbench(self.sandboxes, self.mirror, base, settings)

        async def look(sandbox: Sandbox) -> str:
            assert (await sandbox.run("git status --porcelain", timeout_seconds=30)).stdout == ""
            return (await sandbox.run("cat .venv/made; cat app.py deps.txt", timeout_seconds=30)).stdout

        try:
            return await bench.act(tree or await self.mirror.tree_of(base), look)
        finally:
            await bench.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandboxes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[E2BSandboxes]:
    async with running(Config(tmp_path_factory.mktemp("home"), KEY)) as end:
        yield E2BSandboxes(end.api_key, end.api_url, end.sandbox_url)


@pytest.fixture
def repository(tmp_path: Path, sandboxes: E2BSandboxes, request: pytest.FixtureRequest) -> Repository:
    return Repository(tmp_path, sandboxes, 1 + abs(hash(request.node.name)) % 10**6)


async def test_a_later_base_on_the_same_dependencies_is_not_set_up_again(repository):
    first = await repository.made(await repository.commit(app_py="1\n", deps_txt="a\n"))
    second = await repository.made(await repository.commit(app_py="2\n", other_py="x\n"))
    assert first.split("\n")[1:] == ["1", "a", ""]
    assert second.split("\n")[1:] == ["2", "a", ""]
    assert second.split("\n")[0] == first.split("\n")[0]
    third = await repository.made(await repository.commit(deps_txt="b\n"))
    assert third.split("\n")[0] != first.split("\n")[0]
    assert third.split("\n")[1:] == ["2", "b", ""]


async def test_a_change_of_dependencies_is_set_up_for_itself_and_never_kept(repository):
    """The change is what a model, or a stranger's branch, proposes: only the base may be kept for others."""
    base = await repository.commit(app_py="1\n", deps_txt="a\n")
    hostile = await repository.mirror.tree_of(await repository.commit(deps_txt="evil\n"))
    once, again = [await repository.made(base, hostile) for _ in range(2)]
    assert once.split("\n")[0] != again.split("\n")[0]
    clean = await repository.made(base)
    assert clean.split("\n")[1:] == ["1", "a", ""]
    assert await repository.made(base) == clean


async def test_another_repository_never_begins_with_these_files(repository, tmp_path, sandboxes):
    base = await repository.commit(app_py="1\n", deps_txt="a\n")
    mine = await repository.made(base)
    assert await repository.made(base) == mine, "the control: it is kept"
    other = Repository(tmp_path / "other", sandboxes, 2_000_000)
    same = await other.commit(app_py="1\n", deps_txt="a\n")
    assert await other.mirror.tree_of(same) == await repository.mirror.tree_of(base)
    assert await other.made(same) != mine
    assert await repository.made(base, settings=replace(SETTINGS, owner="acme/renamed")) != mine


async def test_what_runs_in_a_sandbox_later_is_in_no_other(repository):
    base = await repository.commit(app_py="1\n", deps_txt="a\n")
    bench = Workbench(repository.sandboxes, repository.mirror, base, SETTINGS)

    async def poison(sandbox: Sandbox) -> None:
        await sandbox.run("echo evil > .venv/made; echo evil > app.py; echo evil > /tmp/evil", timeout_seconds=30)

    await bench.act(await repository.mirror.tree_of(base), poison)
    await bench.close()
    assert "evil" not in await repository.made(base)


async def test_a_kept_set_up_that_is_gone_or_damaged_costs_time_and_nothing_else(repository, sandboxes, tmp_path):
    async with running(Config(tmp_path, KEY)) as end:
        repository.sandboxes = E2BSandboxes(end.api_key, end.api_url, end.sandbox_url)
        base = await repository.commit(app_py="1\n", deps_txt="a\n")
        first = await repository.made(base)
        assert await repository.made(base) == first, "the control: it is kept"
        damage(tmp_path / "snapshots")
        second = await repository.made(base)
        assert second != first
        assert await repository.made(base) == second, "and it is kept anew"
        for path in files(tmp_path / "snapshots"):
            path.unlink()
        assert await repository.made(base) not in {first, second}


async def test_a_set_up_that_goes_on_changing_the_files_is_told_to_whoever_wrote_it(repository):
    base = await repository.commit(app_py="1\n", deps_txt="a\n")
    loops = "for _ in 1 2 3 4; do (while :; do echo x >> app.py; done) >/dev/null 2>&1 & done"
    restless = replace(SETTINGS, setup=(loops, "until grep -q x app.py; do sleep 0.01; done"))
    with pytest.raises(UserError, match="not the commit's any more"):
        await repository.made(base, settings=restless)


@pytest.mark.parametrize(
    ("egress", "said"),
    [
        (("files.example.org:443",), "asked for other.example.org:443, not open to it; the operator can add it"),
        ((), "Sandboxes reach no host; the operator can name those that it needs"),
    ],
)
async def test_a_set_up_that_lacks_a_host_says_which(repository, egress, said):
    base = await repository.commit(app_py="1\n", deps_txt="a\n")
    needs = replace(SETTINGS, setup=("curl -sS https://other.example.org/package",), setup_egress=egress)
    with pytest.raises(UserError, match=said):
        await repository.made(base, settings=needs)


async def test_what_set_up_may_reach_is_shut_to_the_tests_and_all_of_it_is_told(repository, tmp_path):
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["203.0.112.1"]

    async def dial(_address: str, _port: int) -> Streams:
        raise OSError("nothing is dialled from a test")

    curl = "curl -sS https://files.example.org/x 2>&1"
    settings = replace(SETTINGS, setup=(f"{curl}; true",), setup_egress=("files.example.org:443",))
    base = await repository.commit(app_py="1\n", deps_txt="a\n")
    async with running(Config(tmp_path, KEY, outside=Outside(resolve, dial))) as end:
        sandboxes = E2BSandboxes(end.api_key, end.api_url, end.sandbox_url)
        bench = Workbench(sandboxes, repository.mirror, base, settings)

        async def tests(sandbox: Sandbox) -> str:
            return (await sandbox.run(f"{curl}; {curl}; true", timeout_seconds=30)).stdout

        try:
            said = await bench.act(await repository.mirror.tree_of(base), tests)
            assert said.count("403") == 2
            assert (await bench.attempts("the full check")).all == (
                Attempt("files.example.org:443", allowed=True, phase=SETTING_UP),
                Attempt("files.example.org:443", allowed=False, unlisted=True, phase="the full check", times=2),
            )
            assert (await bench.attempts("the full check")).all == (), "told once"
        finally:
            await bench.close()


async def test_what_is_kept_of_an_older_state_is_forgotten(repository, tmp_path):
    async with running(Config(tmp_path, KEY)) as end:
        repository.sandboxes = E2BSandboxes(end.api_key, end.api_url, end.sandbox_url)
        for deps in ("a", "b"):
            await repository.made(await repository.commit(app_py="1\n", deps_txt=deps))
        assert len(files(tmp_path / "snapshots")) == 2


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def damage(folder: Path) -> None:
    for path in folder.glob("*.tar"):
        path.write_bytes(path.read_bytes()[:2_000])
