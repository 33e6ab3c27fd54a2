"""The unmodified e2b SDK against the local server: sandboxes, access and files. Nothing here skips: without bubblewrap it fails."""

from __future__ import annotations

import io
import os
import tarfile

import httpx
import pytest
from e2b import (
    AsyncSandbox,
    AuthenticationException,
    CommandExitException,
    FileNotFoundException,
    FileType,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    PtySize,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxQuery,
    SandboxState,
)
from e2b.sandbox.sandbox_api import SandboxNetworkOpts

from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, running
from tests.contracts.sandbox_server import (
    KEY,
    connection,
    eventually,
    fixtures,
    longer,
    negated,
    sandbox_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()


async def test_a_sandbox_tells_what_it_is(endpoint):
    async with sandbox_of(endpoint, metadata={"task": "t 1&=ü"}) as sandbox:
        info = await sandbox.get_info()
        assert (info.sandbox_id, info.template_id, info.state) == (
            sandbox.sandbox_id,
            "pullwright",
            SandboxState.RUNNING,
        )
        assert info.metadata == {"task": "t 1&=ü"}
        assert 100 < (info.end_at - info.started_at).total_seconds() < 140
        assert await sandbox.is_running()


async def test_an_unknown_template_is_named_with_the_known_ones(endpoint):
    with pytest.raises(
        (SandboxException, NotFoundException), match=r"template 'nosuch' not found; known: base, pullwright"
    ):
        await AsyncSandbox.create("nosuch", **connection(endpoint))


async def test_a_second_client_connects_to_the_same_sandbox(endpoint, sandbox):
    await sandbox.files.write("/tmp/here", "yes")
    other = await AsyncSandbox.connect(sandbox.sandbox_id, **connection(endpoint))
    assert await other.files.read("/tmp/here") == "yes"


async def test_connecting_never_shortens_the_lease(endpoint, sandbox):
    before = (await sandbox.get_info()).end_at
    await AsyncSandbox.connect(sandbox.sandbox_id, timeout=5, **connection(endpoint))
    assert (await sandbox.get_info()).end_at == before


async def test_a_lease_can_be_shortened_and_then_expires(endpoint):
    async with sandbox_of(endpoint) as sandbox:
        await sandbox.set_timeout(1)
        await eventually(lambda: negated(sandbox.is_running()))
        with pytest.raises(SandboxNotRunningException):
            await sandbox.commands.run("true")


async def test_kill_says_whether_there_was_something_to_kill(endpoint):
    async with sandbox_of(endpoint) as sandbox:
        assert await sandbox.kill() is True
        assert await sandbox.kill() is False
        with pytest.raises(SandboxNotFoundException):
            await sandbox.get_info()


async def test_connecting_to_a_dead_sandbox_says_that_it_is_not_there(endpoint):
    with pytest.raises(SandboxNotFoundException):
        await AsyncSandbox.connect("sb000000000000000000", **connection(endpoint))


async def test_listing_filters_by_metadata_and_pages(endpoint):
    mark = {"test": "listing & paging = é"}
    made: list[AsyncSandbox] = []
    try:
        for number in range(3):
            made += [await AsyncSandbox.create("base", metadata={**mark, "n": str(number)}, **connection(endpoint))]
        pages, found = AsyncSandbox.list(query=SandboxQuery(metadata=mark), limit=2, **connection(endpoint)), []
        while pages.has_next:
            found.append([item.metadata["n"] for item in await pages.next_items()])
        assert found == [["0", "1"], ["2"]]
        one = AsyncSandbox.list(query=SandboxQuery(metadata={**mark, "n": "1"}), **connection(endpoint))
        assert [item.sandbox_id for item in await one.next_items()] == [made[1].sandbox_id]
    finally:
        for sandbox in made:
            await sandbox.kill()


async def test_a_paused_sandbox_keeps_its_processes_and_its_files(endpoint, sandbox):
    await sandbox.files.write("/home/user/kept", "kept")
    counter = await sandbox.commands.run(
        "while :; do echo x >> /tmp/ticks; sleep 0.02; done", background=True, timeout=0
    )
    await eventually(lambda: sandbox.files.exists("/tmp/ticks"))
    await sandbox.pause()
    assert (await sandbox.get_info()).state == SandboxState.PAUSED
    assert not await sandbox.is_running()
    resumed = await AsyncSandbox.connect(sandbox.sandbox_id, timeout=60, **connection(endpoint))
    before = len(await resumed.files.read("/tmp/ticks"))
    await eventually(lambda: longer(resumed, "/tmp/ticks", before))
    assert await resumed.files.read("/home/user/kept") == "kept"
    await counter.disconnect()


async def test_what_is_not_served_says_so(sandbox):
    with pytest.raises(SandboxException, match="not served"):
        await sandbox.get_metrics()
    with pytest.raises(SandboxException, match="terminals"):
        await sandbox.pty.create(size=PtySize(rows=24, cols=80), on_data=print)


async def test_an_allow_list_that_would_leave_everything_else_open_is_refused(endpoint):
    with pytest.raises(SandboxException, match="only opens named hosts"):
        await AsyncSandbox.create("base", network={"allow_out": ["example.com"]}, **connection(endpoint))
    for pattern in ("*.example.com", "1.1.1.1", "10.0.0.0/8"):
        network: SandboxNetworkOpts = {"allow_out": [pattern], "deny_out": ["0.0.0.0/0"]}
        with pytest.raises(SandboxException, match="exact host name"):
            await AsyncSandbox.create("base", network=network, **connection(endpoint))


async def test_a_server_at_its_bound_asks_for_patience(tmp_path, monkeypatch):
    monkeypatch.setenv("E2B_MAX_RETRIES", "0")
    async with running(Config(tmp_path, KEY, limits=Limits(sandboxes=1))) as endpoint, sandbox_of(endpoint, "base"):
        with pytest.raises(RateLimitException):
            await AsyncSandbox.create("base", **connection(endpoint))


async def test_a_wrong_api_key_is_refused(endpoint):
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create(**{**connection(endpoint), "api_key": "wrong"})


async def test_one_sandboxs_token_does_not_open_another(endpoint, sandbox):
    async with sandbox_of(endpoint, "base") as other:
        headers = {"E2b-Sandbox-Id": other.sandbox_id, "X-Access-Token": sandbox._envd_access_token}
        async with httpx.AsyncClient() as client:
            answer = await client.get(endpoint.sandbox_url + "/files", params={"path": "/etc/passwd"}, headers=headers)
            assert answer.status_code == 401
            right = {**headers, "X-Access-Token": other._envd_access_token}
            answer = await client.get(endpoint.sandbox_url + "/files", params={"path": "/etc/passwd"}, headers=right)
            assert answer.status_code == 200


async def test_an_unknown_user_is_refused(sandbox):
    with pytest.raises(AuthenticationException, match="invalid username"):
        await sandbox.commands.run("true", user="mallory")
    assert (await sandbox.commands.run("id -u", user="root")).stdout == "1000\n"


async def test_a_file_goes_in_and_comes_out_in_every_form(sandbox):
    data = bytes(range(256)) * 1000
    for path, options in {"a": {}, "b": {"use_octet_stream": True}, "c": {"gzip": True}}.items():
        written = await sandbox.files.write(f"deep/er/{path}", data, **options)
        assert written.path == f"/home/user/deep/er/{path}"
        assert bytes(await sandbox.files.read(f"/home/user/deep/er/{path}", format="bytes")) == data
        assert bytes(await sandbox.files.read(f"~/deep/er/{path}", format="bytes", gzip=True)) == data
    stream = await sandbox.files.read("deep/er/a", format="stream")
    assert b"".join([chunk async for chunk in stream]) == data


async def test_many_files_go_in_with_one_request(sandbox):
    files = [{"path": f"/tmp/many/{number}", "data": str(number)} for number in range(50)]
    written = await sandbox.files.write_files(files)
    assert [item.path for item in written] == [item["path"] for item in files]
    assert await sandbox.files.read("/tmp/many/49") == "49"


async def test_reading_what_is_not_there_or_not_a_file_says_which(sandbox):
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("/tmp/nothing")
    with pytest.raises(InvalidArgumentException, match="directory"):
        await sandbox.files.read("/tmp")
    await sandbox.commands.run("mkfifo /tmp/pipe")
    with pytest.raises(InvalidArgumentException, match="regular"):
        await sandbox.files.read("/tmp/pipe")


async def test_directories_are_made_listed_and_removed(sandbox):
    assert await sandbox.files.make_dir("/tmp/d/e") is True
    assert await sandbox.files.make_dir("/tmp/d/e") is False
    await sandbox.files.write("/tmp/d/f", "12345")
    await sandbox.commands.run("ln -s f /tmp/d/link")
    entries = {entry.name: entry for entry in await sandbox.files.list("/tmp/d")}
    assert sorted(entries) == ["e", "f", "link"]
    assert (entries["e"].type, entries["f"].type, entries["f"].size) == (FileType.DIR, FileType.FILE, 5)
    assert entries["link"].symlink_target == "/tmp/d/f"
    await sandbox.files.write("/tmp/d/e/deep", "")
    assert "deep" in [entry.name for entry in await sandbox.files.list("/tmp/d", depth=2)]
    await sandbox.files.remove("/tmp/d")
    await sandbox.files.remove("/tmp/d")
    assert await sandbox.files.exists("/tmp/d") is False
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.list("/etc/passwd")


async def test_a_file_is_renamed_and_described(sandbox):
    await sandbox.files.write("/tmp/old", "1")
    await sandbox.commands.run("chmod 750 /tmp/old")
    entry = await sandbox.files.rename("/tmp/old", "/tmp/made/new")
    assert (entry.path, oct(entry.mode), entry.permissions, entry.owner) == (
        "/tmp/made/new",
        "0o750",
        "-rwxr-x---",
        "user",
    )
    assert await sandbox.files.exists("/tmp/old") is False
    assert (await sandbox.files.get_info("/tmp/made/new")).size == 1
    with pytest.raises(FileNotFoundException):
        await sandbox.files.get_info("/tmp/old")


async def test_a_full_disk_is_said_and_bounded(tmp_path):
    limits = Limits(home_bytes=4 << 20)
    async with running(Config(tmp_path, KEY, limits=limits)) as endpoint, sandbox_of(endpoint, "base") as sandbox:
        with pytest.raises(NotEnoughSpaceException):
            await sandbox.files.write("big", b"x" * (8 << 20), use_octet_stream=True)
        with pytest.raises(CommandExitException, match="No space left"):
            await sandbox.commands.run("head -c 8000000 /dev/zero > big2")


async def test_a_name_that_is_not_utf8_can_be_listed(sandbox):
    await sandbox.commands.run(r"mkdir /tmp/odd; touch $'/tmp/odd/\xff'")
    assert [entry.name for entry in await sandbox.files.list("/tmp/odd")] == ["\ufffd"]


async def test_a_tree_of_six_thousand_files_goes_in_quickly(sandbox):
    buffer, body = io.BytesIO(), os.urandom(6_700)
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(6_000):
            member = tarfile.TarInfo(f"d{number % 60}/f{number}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    await sandbox.files.write("/tmp/tree.tar", buffer.getvalue(), use_octet_stream=True)
    result = await sandbox.commands.run("mkdir repo && tar -xf /tmp/tree.tar -C repo && find repo -type f | wc -l")
    assert result.stdout == "6000\n"
