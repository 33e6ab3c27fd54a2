"""Snapshots by the SDK: the files of one sandbox are where others begin. What runs is not kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from e2b import AsyncSandbox, NotFoundException, SandboxException

from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, Endpoint, running
from bot.sandboxd.templates import Bind, Template
from tests.contracts.sandbox_server import KEY, connection, fixtures, output, sandbox_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()


async def kept(sandbox: AsyncSandbox, name: str) -> str:
    return (await sandbox.create_snapshot(name=name, mode="filesystem")).snapshot_id


def control(endpoint: Endpoint) -> dict[str, Any]:
    return {"api_url": endpoint.api_url, "api_key": endpoint.api_key}


def files(home: Path) -> list[Path]:
    return sorted((home / "snapshots").iterdir())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50_000])


async def test_files_of_every_kind_go_over_and_what_runs_does_not(endpoint, sandbox):
    make = r"""
    mkdir -p 'a b'/deep shut && printf 1 > 'a b'/deep/x && chmod 751 'a b'/deep/x && touch -d '2001-02-03 04:05:06.789' 'a b'/deep/x
    ln 'a b'/deep/x hard; ln -s /etc/passwd out; ln -s nowhere broken; touch $'bytes\xff'; truncate -s 1G sparse; mkfifo pipe
    printf t > /tmp/t; chmod 500 shut; sleep 4242 & sleep 0.2
    """
    await sandbox.commands.run(make, background=False)
    tell = r"""
    stat -c '%n %a %s %Y %h %F' 'a b'/deep/x hard out broken sparse pipe shut bytes* /tmp/t; stat -c %y hard; readlink out broken
    """
    before = await output(sandbox, tell)
    async with sandbox_of(endpoint, await kept(sandbox, "every-kind")) as other:
        assert await output(other, tell) == before
        assert "04:05:06.789" in before
        assert await output(other, "pgrep -fc '[s]leep 4242' || true") == "0\n"
        assert await output(sandbox, "pgrep -fc '[s]leep 4242'") == "1\n"


async def test_what_is_written_afterwards_is_in_neither(endpoint, sandbox):
    await sandbox.files.write("a", "before")
    name = await kept(sandbox, "neither")
    await sandbox.files.write("a", "after")
    async with sandbox_of(endpoint, name) as one:
        await one.files.write("a", "mine")
        async with sandbox_of(endpoint, name) as two:
            assert await two.files.read("a") == "before"


async def test_a_name_finds_its_newest_and_an_id_stays(endpoint, sandbox):
    await sandbox.files.write("a", "1")
    first = await kept(sandbox, "the-name")
    await sandbox.files.write("a", "2")
    assert await kept(sandbox, "the-name") == first
    found = await AsyncSandbox.list_snapshots(name="the-name", **control(endpoint)).next_items()
    assert [(each.snapshot_id, each.names) for each in found] == [(first, ["the-name"])]
    for template in (first, "the-name"):
        async with sandbox_of(endpoint, template) as other:
            assert await other.files.read("a") == "2"
            assert (await other.get_info()).template_id == template


async def test_snapshots_are_listed_in_pages_and_deleted(endpoint, sandbox):
    names = {f"paged-{number}" for number in range(3)}
    for name in names:
        await kept(sandbox, name)
    unnamed = await sandbox.create_snapshot(mode="filesystem")
    assert unnamed.names == []
    pages, seen = AsyncSandbox.list_snapshots(limit=2, **control(endpoint)), set()
    while pages.has_next:
        page = await pages.next_items()
        assert len(page) <= 2
        seen |= {name for each in page for name in each.names} | {each.snapshot_id for each in page}
    assert names <= seen
    assert unnamed.snapshot_id in seen
    assert await AsyncSandbox.delete_snapshot(unnamed.snapshot_id, **control(endpoint)) is True
    assert await AsyncSandbox.delete_snapshot(unnamed.snapshot_id, **control(endpoint)) is False
    with pytest.raises((SandboxException, NotFoundException), match="not found"):
        await AsyncSandbox.create(unnamed.snapshot_id, **connection(endpoint))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "files only"),
        ({"mode": "full"}, "files only"),
        ({"mode": "filesystem", "name": "Capital"}, "lower-case"),
        ({"mode": "filesystem", "name": "../up"}, "lower-case"),
        ({"mode": "filesystem", "name": "base"}, "name of a template"),
    ],
)
async def test_what_is_not_served_is_refused(sandbox, options, said):
    with pytest.raises(SandboxException, match=said):
        await sandbox.create_snapshot(**options)


async def test_a_snapshot_outlives_its_sandbox_and_its_server_but_not_its_template(tmp_path):
    async with running(Config(tmp_path, KEY)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        await sandbox.files.write("a", "1")
        name = await kept(sandbox, "long-lived")
    async with running(Config(tmp_path, KEY)) as endpoint, sandbox_of(endpoint, name) as sandbox:
        assert await sandbox.files.read("a") == "1"
    changed = Template("base", (Bind(tmp_path, "/opt/new"),))
    async with running(Config(tmp_path, KEY, templates=(changed,))) as endpoint:
        with pytest.raises((SandboxException, NotFoundException), match="not found"):
            await AsyncSandbox.create(name, **connection(endpoint))


async def test_more_than_the_disk_holds_is_not_kept_and_leaves_nothing(tmp_path):
    limits = Limits(home_bytes=1 << 20, tmp_bytes=1 << 20)
    async with running(Config(tmp_path, KEY, limits=limits)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        await sandbox.commands.run("mkdir many; cd many; seq 6000 | xargs touch")
        with pytest.raises(SandboxException, match="more than 2 MiB"):
            await kept(sandbox, "many")
        assert await output(sandbox, "echo alive") == "alive\n"
    assert files(tmp_path) == []


async def test_the_least_recently_used_makes_room(tmp_path):
    async with running(Config(tmp_path, KEY, limits=Limits(snapshots=2))) as endpoint:
        async with sandbox_of(endpoint, "base") as sandbox:
            first, second = await kept(sandbox, "one"), await kept(sandbox, "two")
            async with sandbox_of(endpoint, first):
                pass
            third = await kept(sandbox, "three")
        left = await AsyncSandbox.list_snapshots(**control(endpoint)).next_items()
        assert {each.snapshot_id for each in left} == {first, third}
        with pytest.raises((SandboxException, NotFoundException), match="not found"):
            await AsyncSandbox.create(second, **connection(endpoint))
    assert len(files(tmp_path)) == 4


async def test_a_damaged_snapshot_is_refused_and_its_sandbox_ended(tmp_path):
    async with running(Config(tmp_path, KEY)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        await sandbox.commands.run("head -c 100000 /dev/urandom > data")
        name = await kept(sandbox, "damaged")
        cut(next(path for path in files(tmp_path) if path.suffix == ".tar"))
        with pytest.raises(SandboxException, match="cannot be restored"):
            await AsyncSandbox.create(name, **connection(endpoint))
        alive = await AsyncSandbox.list(**control(endpoint)).next_items()
        assert [each.sandbox_id for each in alive] == [sandbox.sandbox_id]


async def test_what_a_template_binds_below_tmp_is_not_kept_and_does_not_stand_in_the_way(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for number in range(3000):
        (tools / f"a-tool-with-a-long-name-{number:04}").write_text("x" * 400)
    template = Template("base", (Bind(tools, "/tmp/deep/tools"),))
    async with (
        running(Config(tmp_path, KEY, templates=(template,))) as endpoint,
        sandbox_of(endpoint, "base") as sandbox,
    ):
        await sandbox.files.write("a", "1")
        await sandbox.files.write("/tmp/b", "2")
        name = await kept(sandbox, "bound")
        assert sum(path.stat().st_size for path in files(tmp_path)) < 200_000
        async with sandbox_of(endpoint, name) as other:
            assert await other.files.read("a") + await other.files.read("/tmp/b") == "12"
            assert await output(other, "ls /tmp/deep/tools | wc -l") == "3000\n"


async def test_however_much_tar_has_to_say_a_restore_ends(tmp_path):
    async with running(Config(tmp_path, KEY)) as endpoint:
        async with sandbox_of(endpoint, "base") as sandbox:
            await sandbox.commands.run("for i in $(seq 4000); do echo > a-file-with-a-long-name-$i; done")
            name = await kept(sandbox, "talkative")
        packed = next(path for path in files(tmp_path) if path.suffix == ".tar")
        packed.write_bytes(packed.read_bytes().replace(b"home/user/a-file", b"proc/user/a-file"))
        with pytest.raises(SandboxException, match="cannot be restored"):
            await AsyncSandbox.create(name, **connection(endpoint), request_timeout=60)
