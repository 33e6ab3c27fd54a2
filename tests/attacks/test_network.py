"""Ways out of a sandbox (cases E01-E07): at the proxy itself with a network of our own, and end to end from inside."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from e2b import AsyncSandbox, CommandExitException

from bot.sandboxd.egress.hello import BadHello, server_name
from bot.sandboxd.egress.proxy import Budget, Decision, EgressProxy, Outside, Streams
from bot.sandboxd.egress.rules import Destination, is_public, parse_entry, plain_host
from bot.sandboxd.serve import Config, running
from tests.attacks.conftest import Control
from tests.contracts.sandbox_server import KEY, output, sandbox_of

HOST = "files.example.org"
PUBLIC = "93.184.215.14"
HELLO = "CONNECT {} HTTP/1.1\r\nHost: x\r\n\r\n"


class Network:
    """Names, addresses and one server that answers at every address with what it was sent."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {HOST: [PUBLIC], "other.example.org": [PUBLIC]}
        self.dialled: list[tuple[str, int]] = []
        self.port = 0
        self.asked = 0

    async def resolve(self, host: str, port: int) -> list[str]:
        self.asked += 1
        return self.names.get(host, [])

    async def dial(self, address: str, port: int) -> Streams:
        self.dialled.append((address, port))
        return await asyncio.open_connection("127.0.0.1", self.port)

    @property
    def outside(self) -> Outside:
        return Outside(self.resolve, self.dial)


@asynccontextmanager
async def echo(network: Network) -> AsyncIterator[Network]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        network.port = server.sockets[0].getsockname()[1]
        yield network


class Way:
    """A proxy with one allowed host, and a client of it."""

    def __init__(self, network: Network, budget: Budget | None = None) -> None:
        self.network = network
        self.decisions: list[Decision] = []
        self.proxy = EgressProxy(self.decisions.append, network.outside, budget or Budget())
        self.proxy.allow([Destination(HOST, 443)])

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Streams]:
        async with await asyncio.start_server(self.proxy.serve, "127.0.0.1", 0, limit=8192) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
            try:
                yield reader, writer
            finally:
                writer.close()
                async with asyncio.timeout(10):
                    while self.proxy._open:  # noqa: ASYNC110 - what is waited for is the proxy's own end of the connection
                        await asyncio.sleep(0.005)
                await asyncio.sleep(0.02)

    async def asks(self, request: bytes, then: bytes = b"") -> tuple[int, bytes]:
        """The status of the answer, and what came back through the tunnel."""
        async with self.client() as (reader, writer), asyncio.timeout(20):
            writer.write(request)
            line = await reader.readline()
            status = int(line.split()[1]) if line else 0
            if status != 200:
                return status, line
            await reader.readuntil(b"\r\n")
            writer.write(then)
            return status, await reader.read(len(then))

    async def gets_through(self, target: str, hello: bytes) -> bool:
        status, back = await self.asks(HELLO.format(target).encode("latin-1"), hello)
        return status == 200 and back == hello


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    async with echo(Network()) as network:
        yield Way(network)


def hello(name: str | None = HOST, *, extra: bytes = b"", names: int = 1) -> bytes:
    """A ClientHello record, as small as one may be."""
    entry = b"\0" + struct.pack(">H", len(name)) + name.encode() if name else b""
    listed = struct.pack(">H", len(entry) * names) + entry * names
    extensions = (struct.pack(">HH", 0, len(listed)) + listed if name else b"") + extra
    body = (
        b"\x03\x03"
        + bytes(32)
        + b"\0"
        + b"\0\x02\x13\x01"
        + b"\x01\0"
        + struct.pack(">H", len(extensions))
        + extensions
    )
    return record(b"\x01" + len(body).to_bytes(3, "big") + body)


def record(body: bytes) -> bytes:
    return b"\x16\x03\x01" + struct.pack(">H", len(body)) + body


def test_positive_control_what_a_real_client_sends_is_read():
    context, incoming, outgoing = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=HOST).do_handshake()
    assert server_name(outgoing.read()[5:]) == HOST
    assert server_name(hello()[5:]) == HOST


OTHER_NAMES = [
    "other.example.org", "files.example.org.evil.net", "evil-files.example.org", "xfiles.example.org", "example.org",
    "files.example.org..", ".files.example.org", "files.example.orgx", "a.files.example.org", "files.exampl\u00e9.org",
    "xn--fils-epa.example.org", "f\u0131les.example.org", "files.example.org%00.evil.net", "files_example.org",
]  # fmt: skip


@pytest.mark.parametrize("name", OTHER_NAMES)
async def test_e01_only_the_exact_name_is_let_out(name: str, way: Way, control: Control):
    control(await way.gets_through(f"{HOST}:443", hello()), "the listed name")
    control(await way.gets_through("FILES.Example.ORG.:443", hello()), "the same in capitals with a dot")
    way.network.dialled.clear()
    status, _ = await way.asks(HELLO.format(f"{name}:443").encode(), hello(HOST))
    assert status in {400, 403}
    assert way.network.dialled == []


LITERALS = [
    "1.1.1.1:443", "[::1]:443", "[::ffff:127.0.0.1]:443", "2130706433:443", "0x7f000001:443", "0177.0.0.1:443", "127.1:443",
    f"user@{HOST}:443", f"user:pw@{HOST}:443", f"{HOST}:22", f"{HOST}:80", f"{HOST}:0443x", f"{HOST}:0", f"{HOST}:65536", f"{HOST}", f"{HOST}:",
]  # fmt: skip


@pytest.mark.parametrize("target", LITERALS)
async def test_e02_addresses_users_and_other_ports_are_denied(target: str, way: Way, control: Control):
    control(await way.gets_through(f"{HOST}:443", hello()), "the listed name and port")
    way.network.dialled.clear()
    status, _ = await way.asks(HELLO.format(target).encode(), hello())
    assert status in {400, 403}
    assert way.network.dialled == []


PRIVATE = [
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
    "::1", "fe80::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "nonsense",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
async def test_e03_a_listed_name_that_leads_to_a_private_address_is_denied(address: str, way: Way, control: Control):
    control(await way.gets_through(f"{HOST}:443", hello()), "with a public address")
    control(is_public(PUBLIC) and is_public("2606:4700::1111"), "public addresses are known as such")
    way.network.dialled.clear()
    for answer in ([address], [PUBLIC, address]):
        way.network.names[HOST] = answer
        status, line = await way.asks(HELLO.format(f"{HOST}:443").encode(), hello())
        assert (status, b"not public" in line) == (403, True)
    assert way.network.dialled == []


async def test_e03_the_checked_address_is_the_one_that_is_dialled(way: Way, control: Control):
    answers = iter([[PUBLIC], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> list[str]:
        return next(answers)

    proxy = EgressProxy(way.decisions.append, Outside(rebinding, way.network.dial))
    proxy.allow([Destination(HOST, 443)])
    way.proxy = proxy
    control(await way.gets_through(f"{HOST}:443", hello()), "the first answer is public")
    assert way.network.dialled == [(PUBLIC, 443)]
    assert next(answers) == ["127.0.0.1"], "the second answer was never asked for"


BODY = hello()[5:]
GREETINGS = {
    "another name": hello("other.example.org"),
    "no name": hello(None),
    "two names": hello(names=2),
    "encrypted": hello(extra=struct.pack(">HH", 0xFE0D, 4) + b"abcd"),
    "not TLS": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.0\r\n" + bytes(20),
    "split over two records": record(BODY[:20]) + record(BODY[20:]),
    "cut short": record(BODY[:-4]),
    "more behind": record(BODY + b"\0\0"),
    "oversized": b"\x16\x03\x01\x40\x01" + bytes(16385),
    "another handshake": record(b"\x02" + BODY[1:]),
    "an address as name": hello("93.184.215.14"),
    "a second CONNECT": HELLO.format("other.example.org:443").encode(),
}


@pytest.mark.parametrize("greeting", GREETINGS)
async def test_e04_tls_must_ask_for_the_very_host(greeting: str, way: Way, control: Control):
    control(await way.gets_through(f"{HOST}:443", hello("FILES.example.org")), "the right name")
    way.network.dialled.clear()
    assert await way.asks(HELLO.format(f"{HOST}:443").encode(), GREETINGS[greeting]) == (200, b"")
    assert way.network.dialled == []
    assert way.decisions[-1].allowed is False


def test_e04_every_cut_and_every_flipped_length_of_a_greeting_is_refused_or_means_the_same(control: Control):
    control(server_name(BODY) == HOST, "whole it is read")
    for length in range(len(BODY)):
        with pytest.raises(BadHello):
            server_name(BODY[:length])
    for place in range(len(BODY)):
        for bit in range(8):
            damaged = bytearray(BODY)
            damaged[place] ^= 1 << bit
            try:
                assert len(server_name(bytes(damaged))) <= len(HOST)
            except BadHello:
                continue


HEADS = {
    "absolute GET": b"GET http://files.example.org/ HTTP/1.1\r\n\r\n",
    "bare line feed": b"CONNECT files.example.org:443 HTTP/1.1\nHost: x\r\n\r\n",
    "NUL": b"CONNECT files.example.org:443\0 HTTP/1.1\r\n\r\n",
    "huge": b"CONNECT files.example.org:443 HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    "two targets": b"CONNECT files.example.org:443 other.example.org:443 HTTP/1.1\r\n\r\n",
    "lower case": b"connect files.example.org:443 HTTP/1.1\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tab": b"CONNECT\tfiles.example.org:443\tHTTP/1.1\r\n\r\n",
    "bare return": b"CONNECT files.example.org:443 HTTP/1.1\rX: y\r\n\r\n",
    "high bytes": b"CONNECT files.example.org:443 HTTP/1.1\r\nX: \xff\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS)
async def test_e05_a_head_that_is_not_plain_is_denied(head: str, way: Way, control: Control):
    control(await way.gets_through(f"{HOST}:443", hello()), "a plain one")
    way.network.dialled.clear()
    status, _ = await way.asks(HEADS[head], hello())
    assert status in {0, 400, 403, 405}
    assert way.network.dialled == []


async def test_e05_a_slow_head_is_given_up(way: Way, control: Control):
    control(await way.gets_through(f"{HOST}:443", hello()), "a quick one")
    async with way.client() as (reader, writer), asyncio.timeout(15):
        writer.write(b"CONNECT files")
        assert (await reader.readline()).split()[1] == b"400"


async def test_e07_what_may_be_sent_out_is_bounded(control: Control):
    async with echo(Network()) as network:
        free, bounded = Way(network), Way(network, Budget(up_bytes=100_000))
        upload = hello() + bytes(300_000)
        status, back = await free.asks(HELLO.format(f"{HOST}:443").encode(), upload)
        control(status == 200 and back, "with a wide budget it goes out")
        received = 0
        async with bounded.client() as (reader, writer), asyncio.timeout(20):
            writer.write(HELLO.format(f"{HOST}:443").encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(upload)
            try:
                while data := await reader.read(65536):
                    received += len(data)
            except ConnectionError:
                pass
        assert received <= 100_000
        assert "used up" in bounded.decisions[-1].reason


async def test_e07_connections_at_once_are_bounded(control: Control):
    async with echo(Network()) as network:
        way = Way(network, Budget(connections=3))
        async with await asyncio.start_server(way.proxy.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            answers, open_ones = [], []
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                open_ones.append(writer)
                writer.write(HELLO.format(f"{HOST}:443").encode())
                answers.append(int((await reader.readline()).split()[1]))
            control(answers[:3] == [200] * 3, "three are let out")
            assert answers[3:] == [503, 503]
            for writer in open_ones:
                writer.close()


async def test_a_tunnel_is_cut_when_its_host_is_no_longer_allowed(way: Way):
    async with way.client() as (reader, writer), asyncio.timeout(20):
        writer.write(HELLO.format(f"{HOST}:443").encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(hello())
        assert await reader.readexactly(len(hello())) == hello()
        way.proxy.allow([])
        assert await reader.read() == b""


async def test_the_denial_names_the_line_to_add(way: Way):
    _, line = await way.asks(HELLO.format("other.example.org:8443").encode())
    assert b"to allow it add other.example.org:8443 to PULLWRIGHT_EGRESS" in line


@pytest.mark.parametrize(
    "entry", ["*.example.org", "1.2.3.4", "10.0.0.0/8", "", "x", "a.b:0", "a.b:x", "http://a.b", "a.b:1:2", "a b.c"]
)
def test_an_entry_that_is_not_an_exact_host_is_refused(entry: str):
    with pytest.raises(ValueError, match="exact host name"):
        parse_entry(entry)
    assert parse_entry("Files.Example.org:8443") == Destination(HOST, 8443)
    assert plain_host(HOST) == HOST


# End to end, from inside a sandbox


def certificate(place: Path) -> tuple[Path, Path]:
    key, cert = place / "key.pem", place / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, cert


@asynccontextmanager
async def web(place: Path, network: Network) -> AsyncIterator[None]:
    key, cert = certificate(place)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        network.port = server.sockets[0].getsockname()[1]
        yield


OPEN = {"allow_out": [HOST], "deny_out": ["0.0.0.0/0"]}
Says = Callable[[str], Awaitable[str]]


async def said(sandbox: AsyncSandbox, command: str) -> str:
    try:
        return (await sandbox.commands.run(command, timeout=40)).stdout
    except CommandExitException as ended:
        return f"{ended.exit_code}: {ended.stdout}{ended.stderr}"


async def test_e01_e06_from_inside_only_the_listed_host_is_reached_and_only_while_it_is_listed(
    tmp_path: Path, control: Control
):
    network = Network()
    fetch = "curl -sS --cacert /home/user/cert.pem https://{}/ 2>&1"
    async with web(tmp_path, network), running(Config(tmp_path, KEY, outside=network.outside)) as endpoint:
        async with sandbox_of(endpoint, network=OPEN) as sandbox:
            await sandbox.files.write("cert.pem", (tmp_path / "cert.pem").read_text())
            control(await said(sandbox, fetch.format(HOST)) == "hello\n", "the listed host answers")
            assert "403" in await said(sandbox, fetch.format("other.example.org"))
            assert "add other.example.org:443 to PULLWRIGHT_EGRESS" in await said(
                sandbox, fetch.format("other.example.org").replace("-sS", "-sv")
            )
            with socket.create_server(("127.0.0.1", 0)) as listener:
                port = listener.getsockname()[1]
                for direct in (
                    f"exec 3<>/dev/tcp/127.0.0.1/{port}",
                    "exec 3<>/dev/tcp/1.1.1.1/443",
                    "echo x > /dev/udp/1.1.1.1/443",
                    f"getent hosts {HOST}",
                    "ping -c1 -W1 1.1.1.1",
                ):
                    assert not (await said(sandbox, f"{direct} 2>/dev/null && echo out")).endswith("out\n"), direct
            await sandbox.update_network({"deny_out": ["0.0.0.0/0"]})
            assert "403" in await said(sandbox, fetch.format(HOST))
        async with sandbox_of(endpoint, "base") as closed:
            assert await output(closed, "env | grep -ci proxy || true") == "0\n"
