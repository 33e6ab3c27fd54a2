"""The unmodified e2b SDK against the local server: what is our own, see test_sandbox_conformance for what E2B has too."""

from __future__ import annotations

import io
import os
import tarfile

import httpx
import pytest
from e2b import (
    AsyncSandbox,
    CommandExitException,
    FileNotFoundException,
    InvalidArgumentException,
    NotEnoughSpaceException,
    NotFoundException,
    RateLimitException,
    SandboxException,
)
from e2b.sandbox.sandbox_api import SandboxNetworkOpts

from bot.sandboxd.limits import Limits
from bot.sandboxd.serve import Config, running
from tests.contracts.sandbox_server import (
    KEY,
    connection,
    fixtures,
    sandbox_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()


async def test_an_unknown_template_is_named_with_the_known_ones(endpoint):
    with pytest.raises(
        (SandboxException, NotFoundException), match=r"template 'nosuch' not found; known: base, pullwright"
    ):
        await AsyncSandbox.create("nosuch", **connection(endpoint))


async def test_what_is_not_served_says_so(sandbox):
    with pytest.raises(SandboxException, match="not served"):
        await sandbox.fork()
    with pytest.raises(SandboxException, match="only opens named hosts"):
        await sandbox.update_network({"allow_out": ["example.com"]})


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


async def test_one_sandboxs_token_does_not_open_another(endpoint, sandbox):
    async with sandbox_of(endpoint, "base") as other:
        headers = {"E2b-Sandbox-Id": other.sandbox_id, "X-Access-Token": sandbox._envd_access_token}
        async with httpx.AsyncClient() as client:
            answer = await client.get(endpoint.sandbox_url + "/files", params={"path": "/etc/passwd"}, headers=headers)
            assert answer.status_code == 401
            right = {**headers, "X-Access-Token": other._envd_access_token}
            answer = await client.get(endpoint.sandbox_url + "/files", params={"path": "/etc/passwd"}, headers=right)
            assert answer.status_code == 200


async def test_reading_what_is_not_there_or_not_a_file_says_which(sandbox):
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("/tmp/nothing")
    with pytest.raises(InvalidArgumentException, match="directory"):
        await sandbox.files.read("/tmp")
    await sandbox.commands.run("mkfifo /tmp/pipe")
    with pytest.raises(InvalidArgumentException, match="regular"):
        await sandbox.files.read("/tmp/pipe")


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
