"""Clients that are no SDK, or mean harm: every request has an answer that says whose fault it is, and nobody else's sandbox notices."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from e2b import AsyncSandbox

from bot.sandboxd.codec import RequestCodec
from tests.contracts.sandbox_server import KEY, eventually, fixtures, output, sandbox_of, server_process

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()
DEEP = 100_000
RPC = {"content-type": "application/json"}


def token_of(sandbox: AsyncSandbox) -> dict[str, str]:
    return {"E2b-Sandbox-Id": sandbox.sandbox_id, "X-Access-Token": str(sandbox._envd_access_token)}


async def control(endpoint, method: str, path: str, body: bytes | None = None, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=endpoint.api_url, timeout=60) as client:
        return await client.request(method, path, content=body, headers={"X-API-KEY": KEY, **headers})


async def inside(
    endpoint, sandbox, method: str, path: str, body: bytes | None = None, **headers: str
) -> httpx.Response:
    async with httpx.AsyncClient(base_url=endpoint.sandbox_url, timeout=60) as client:
        return await client.request(method, path, content=body, headers={**token_of(sandbox), **headers})


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"templateID":5}',
        b'{"templateID":"\xff"}',
        b'{"templateID":' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"templateID":"base","timeout":-1}',
        b'{"templateID":"base","timeout":1.5}',
        b'{"templateID":"base","timeout":' + b"9" * 400 + b"}",
        b'{"templateID":"base","metadata":{"a":{}}}',
        b'{"templateID":"base","metadata":{"a":"\\ud800"}}',
        b'{"templateID":"base","network":"all"}',
    ],
    ids=lambda body: repr(body[:40]),
)
async def test_a_body_that_is_no_request_is_refused_and_makes_nothing(endpoint, body):
    before = (await control(endpoint, "GET", "/v2/sandboxes")).json()
    answer = await control(endpoint, "POST", "/v2/sandboxes", body)
    assert answer.status_code == 400
    assert answer.json()["code"] == 400
    assert (await control(endpoint, "GET", "/v2/sandboxes")).json() == before


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=101", f"limit={'9' * 5000}", "limit=%D9%A3", "nextToken=x", "startedAfter=then"],
)
async def test_a_question_that_means_nothing_is_refused(endpoint, query):
    assert (await control(endpoint, "GET", f"/v2/sandboxes?{query}")).status_code == 400


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("PATCH", "/v2/sandboxes", 405)])
async def test_what_there_is_not_is_told_as_every_error_is(endpoint, method, path, status):
    answer = await control(endpoint, method, path)
    assert (answer.status_code, answer.json()["code"]) == (status, status)


async def test_whoever_ends_sandboxes_while_listing_them_passes_none_by(endpoint):
    async with sandbox_of(endpoint, "base"), sandbox_of(endpoint, "base"), sandbox_of(endpoint, "base"):
        everyone = [row["sandboxID"] for row in (await control(endpoint, "GET", "/v2/sandboxes")).json()]
        for order in ("asc", "desc"):
            seen: list[str] = []
            following, more = "", True
            while more:
                answer = await control(endpoint, "GET", f"/v2/sandboxes?order={order}&limit=1{following}")
                seen += [row["sandboxID"] for row in answer.json()]
                more = "x-next-token" in answer.headers
                following = f"&nextToken={quote(answer.headers.get('x-next-token', ''))}"
            assert seen == (everyone if order == "asc" else everyone[::-1])
        first = await control(endpoint, "GET", "/v2/sandboxes?limit=1")
        await control(endpoint, "DELETE", f"/sandboxes/{everyone[0]}")
        rest = await control(endpoint, "GET", f"/v2/sandboxes?nextToken={quote(first.headers['x-next-token'])}")
        assert [row["sandboxID"] for row in rest.json()] == everyone[1:]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"path":5}',
        b'{"path":"\\ud800"}',
        b'{"path":"a\\u0000b"}',
        b'{"path":"' + b"a" * 5000 + b'"}',
    ],
    ids=lambda body: repr(body[:30]),
)
async def test_a_message_that_is_none_is_an_invalid_argument(endpoint, sandbox, body):
    answer = await inside(endpoint, sandbox, "POST", "/filesystem.Filesystem/Stat", body, **RPC)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")


async def test_a_message_nested_without_end_is_not_the_end_of_the_server(tmp_path):
    async with server_process(tmp_path) as (process, endpoint), sandbox_of(endpoint, "base") as sandbox:
        for body in (
            b'{"path":' + b"[" * DEEP + b"]" * DEEP + b"}",
            b'{"x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
        ):
            answer = await inside(endpoint, sandbox, "POST", "/filesystem.Filesystem/Stat", body, **RPC)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_argument")
        assert await output(sandbox, "echo on") == "on\n"
        assert process.returncode is None


async def test_many_brackets_inside_of_text_are_only_text():
    from e2b.envd.process import process_pb as pb

    script = "[{" * 10_000
    message = pb.StartRequest(process=pb.ProcessConfig(cmd="/bin/bash", args=["-c", script]))
    codec = RequestCodec()
    read = codec.decode(codec.encode(message), pb.StartRequest).process
    assert read is not None
    assert read.args[1] == script


async def test_messages_are_bounded_and_never_unpacked(endpoint, sandbox):
    stat = "/filesystem.Filesystem/Stat"
    large = await inside(endpoint, sandbox, "POST", stat, b'{"path":"' + b"a" * (20 << 20) + b'"}', **RPC)
    assert large.json()["code"] == "resource_exhausted"
    packed = await inside(endpoint, sandbox, "POST", stat, b"x", **RPC, **{"content-encoding": "gzip"})
    assert packed.json()["code"] == "unimplemented"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", 400),
        ("%00", 400),
        ("a" * 300, 400),
        ("/tmp", 400),
        ("/dev/zero", 400),
        ("/dev/tty", 400),
        ("/proc/1/fd/3", 400),
        ("/tmp/circle", 400),
        ("/etc/passwd/x", 400),
        ("/proc/1/mem", 403),
        ("/proc/1/environ", 403),
        ("/tmp/nothing", 404),
        ("/tmp/to-shadow", 404),
        ("../../../etc/shadow", 404),
    ],
)
async def test_reading_says_what_is_wrong_with_the_path(endpoint, sandbox, path, status):
    await sandbox.commands.run("ln -s circle /tmp/circle; ln -s /etc/shadow /tmp/to-shadow")
    answer = await inside(endpoint, sandbox, "GET", f"/files?path={path}")
    assert (answer.status_code, answer.json()["code"]) == (status, status)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/etc/passwd", 403),
        ("/run/agent.py", 403),
        ("../../usr/new", 403),
        ("/proc/sys/kernel/core_pattern", 403),
        ("/proc/self/oom_score_adj", 403),
        ("/dev/full", 400),
        ("/etc/passwd/x", 400),
        ("/tmp", 400),
    ],
)
async def test_writing_says_what_is_wrong_with_the_path(endpoint, sandbox, path, status):
    raw = {"content-type": "application/octet-stream"}
    answer = await inside(endpoint, sandbox, "POST", f"/files?path={path}", b"x", **raw)
    assert answer.status_code == status


PART = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("multipart/form-data", PART, "neither a form"),
        ("application/json", b"{}", "neither a form"),
        ("", b"text", "neither a form"),
        ("multipart/form-data; boundary=b", PART % (b"file", b"", b"x") + b"--b--\r\n", "not a file"),
        ("multipart/form-data; boundary=b", PART % (b"file", b'; filename="f"', b"x"), "last boundary"),
        ("multipart/form-data; boundary=b", b"no form at all", "boundary"),
        ("multipart/form-data; boundary=b", b"", "last boundary"),
    ],
)
async def test_a_form_that_is_none_or_cut_off_is_refused(endpoint, sandbox, kind, body, said):
    answer = await inside(endpoint, sandbox, "POST", "/files?path=/tmp/f", body, **{"content-type": kind})
    assert answer.status_code == 400
    assert said in answer.json()["message"]


async def test_a_form_of_many_files_and_other_parts_is_read_as_it_comes(endpoint, sandbox):
    parts = [PART % (b"file", b'; filename="/tmp/form/%d"' % n, b"\r\n--b%d" % n) for n in range(50)]
    body = PART % (b"note", b"", b"not a file") + b"".join(parts) + b"--b--\r\n"

    async def slowly():
        for at in range(0, len(body), 7):
            yield body[at : at + 7]

    async with httpx.AsyncClient(base_url=endpoint.sandbox_url) as client:
        kind = {"content-type": "multipart/form-data; boundary=b"}
        answer = await client.post("/files", content=slowly(), headers={**token_of(sandbox), **kind})
    assert [entry["path"] for entry in answer.json()] == [f"/tmp/form/{n}" for n in range(50)]
    assert await output(sandbox, "cat /tmp/form/49; ls /tmp/form | wc -l") == "\r\n--b4950\n"


async def test_a_body_in_an_unknown_encoding_is_not_written_as_it_is(endpoint, sandbox):
    raw = {"content-type": "application/octet-stream", "content-encoding": "br"}
    answer = await inside(endpoint, sandbox, "POST", "/files?path=/tmp/br", b"x", **raw)
    assert (answer.status_code, await sandbox.files.exists("/tmp/br")) == (400, False)


async def test_asking_for_the_head_of_a_file_does_not_empty_it(endpoint, sandbox):
    await sandbox.files.write("/tmp/kept", "kept")
    raw = {"content-type": "application/octet-stream"}
    answer = await inside(endpoint, sandbox, "HEAD", "/files?path=/tmp/kept", None, **raw)
    assert (answer.status_code, answer.headers["content-length"]) == (200, "4")
    assert await sandbox.files.read("/tmp/kept") == "kept"


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def connected(endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(endpoint.api_url.rpartition(":")[2]))


def head(method: str, path: str, fields: dict[str, str]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def test_connections_dropped_half_way_leave_no_descriptor_and_no_complaint(endpoint, sandbox, caplog):
    await sandbox.files.write("/tmp/big", b"x" * (8 << 20))
    before = descriptors()
    raw = {"content-type": "application/octet-stream", "content-length": "1000000"}
    for number in range(60):
        _, writer = await connected(endpoint)
        if number % 2:
            writer.write(head("GET", "/files?path=/tmp/big", token_of(sandbox)))
        else:
            writer.write(head("POST", f"/files?path=/tmp/{number}", {**token_of(sandbox), **raw}) + b"x" * 1000)
        await writer.drain()
        await asyncio.sleep(0.002 * (number % 5))
        writer.transport.abort()

    async def as_before() -> bool:
        return descriptors() <= before

    await eventually(as_before)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_an_upload_that_goes_on_does_not_keep_a_dead_sandboxs_memory(endpoint):
    async with sandbox_of(endpoint, "base") as made:
        reader, writer = await connected(endpoint)
        raw = {"content-type": "application/octet-stream", "content-length": "3000000"}
        writer.write(head("POST", "/files?path=/tmp/slow", {**token_of(made), **raw}) + b"x" * 1000)
        await eventually(lambda: made.files.exists("/tmp/slow"))
        await made.kill()
        writer.write(b"x" * 1000)
        assert b" 502 " in await reader.readline()
        writer.transport.abort()


async def test_output_that_nobody_reads_any_more_holds_up_nobody(endpoint, sandbox):
    async with sandbox_of(endpoint, "base") as noisy:
        for _ in range(3):
            handle = await noisy.commands.run("yes & yes & yes & yes & wait", background=True, timeout=0)
            await handle.disconnect()
        assert await output(sandbox, "echo calm") == "calm\n"
        assert await noisy.commands.kill(handle.pid) is True


async def test_a_link_opens_one_file_in_one_way_until_its_end(endpoint, sandbox):
    await sandbox.files.write("/tmp/a", "inside")
    async with httpx.AsyncClient() as client, sandbox_of(endpoint, "base"):

        async def status(url: str) -> int:
            return (await client.get(url)).status_code

        link = sandbox.download_url("/tmp/a")
        assert (await client.get(link)).text == "inside"
        assert await status(sandbox.download_url("/tmp/a", user="user", use_signature_expiration=60)) == 200
        assert await status(sandbox.download_url("/tmp/a", use_signature_expiration=-1)) == 401
        assert await status(link.replace("%2Ftmp%2Fa", "%2Fetc%2Fpasswd").replace("/tmp/a", "/etc/passwd")) == 401
        assert await status(link + "&username=root") == 401
        assert await status(link + "&signature_expiration=99999999999") == 401
        assert (await client.post(link, files={"file": ("a", b"over")})).status_code == 401
        upload = sandbox.upload_url("/tmp/b")
        assert (await client.post(upload, files={"file": ("b", b"sent")})).json()[0]["path"] == "/tmp/b"
        assert await status(upload) == 401
        assert await sandbox.files.read("/tmp/b") == "sent"
        await sandbox.kill()
        assert await status(link) == 401


async def test_a_move_between_the_two_file_systems_is_a_move_or_nothing(sandbox):
    await sandbox.commands.run(
        "mkdir -p /tmp/d/e ~/full/x; echo deep > /tmp/d/e/f; ln -s nowhere /tmp/d/link; chmod 755 /tmp/d/e/f"
    )
    moved = await sandbox.files.rename("/tmp/d", "/home/user/made/d")
    assert moved.path == "/home/user/made/d"
    assert (
        await output(sandbox, "cd ~/made/d; cat e/f; readlink link; stat -c %a e/f; find /tmp -maxdepth 1 -name 'd*'")
        == "deep\nnowhere\n755\n"
    )
    for source, destination in (("/etc/passwd", "/tmp/passwd"), ("/home/user/made/d/e/f", "/tmp")):
        with pytest.raises(Exception, match=r"cannot be moved away|Read-only"):
            await sandbox.files.rename(source, destination)
    assert await output(sandbox, "find /tmp -maxdepth 1 -type f; cat ~/made/d/e/f") == "deep\n"


async def test_a_time_beyond_the_wires_years_hides_no_directory(sandbox):
    await sandbox.commands.run(
        "mkdir /tmp/times; touch -d @99999999999999 /tmp/times/far; touch -d @-1 /tmp/times/before"
    )
    listed = {entry.name: entry.modified_time.year for entry in await sandbox.files.list("/tmp/times")}
    assert listed == {"far": 9999, "before": 1970}


async def test_a_directory_that_may_not_be_read_does_not_hide_the_others(sandbox):
    await sandbox.commands.run("mkdir -p /tmp/two/shut /tmp/two/open; touch /tmp/two/open/x; chmod 0 /tmp/two/shut")
    listed = {entry.path for entry in await sandbox.files.list("/tmp/two", depth=3)}
    assert listed == {"/tmp/two/shut", "/tmp/two/open", "/tmp/two/open/x"}
