"""Where the environment names a proxy, everything that goes outside goes through it: GitHub's API, git, the model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.domain.errors import Transient
from bot.domain.ids import InstallationId, RepositoryId
from bot.emulators import anthropic
from bot.emulators.anthropic.brain import BrainAnswer, BrainRequest, Text
from bot.emulators.anthropic.state import Config
from bot.providers.forge.githubkit import AppCredentials, GithubForges
from bot.providers.llm.anthropic import AnthropicModel
from bot.providers.llm.port import Conversation, Effort, Message, ModelRequest
from bot.providers.llm.pricing import PriceBook
from bot.settings import Settings
from tests.contracts.github_world import hub
from tests.contracts.messages import compact, user

HOST = "outside.test"
"""No resolver knows it: only the proxy does."""


@dataclass
class Proxy:
    """A plain HTTP proxy that knows one host, at `port`; `url` is where it is, and `seen` what it was asked for."""

    port: int
    url: str = ""
    seen: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, address, _ = head.split(b" ", 2)
        asked = urlsplit(address.decode())
        self.seen.append(f"{method.decode()} {asked.hostname}")
        assert asked.hostname == HOST
        inward, outward = await asyncio.open_connection("127.0.0.1", self.port)
        plain = head.replace(address, address.partition(HOST.encode())[2], 1)
        outward.write(re.sub(rb"(?im)^(proxy-)?connection:.*\r\n", b"", plain)[:-2] + b"Connection: close\r\n\r\n")
        both = (asyncio.create_task(_pump(reader, outward)), asyncio.create_task(_pump(inward, writer)))
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        await both[1]
        both[0].cancel()
        for stream in (writer, outward):
            stream.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        sink.write(data)
        await sink.drain()


@asynccontextmanager
async def before(url: str) -> AsyncIterator[Proxy]:
    """A proxy behind which this service is."""
    port = urlsplit(url).port
    assert port
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await server.wait_closed()


async def test_github_and_git_go_through_the_proxy_that_the_environment_names(tmp_path: Path):
    async with hub() as world, before(world.endpoint.url) as proxy:
        settings = Settings(github_api_url=f"http://{HOST}", http_proxy=proxy.url)
        credentials = AppCredentials.from_pem(str(world.endpoint.app_id), world.endpoint.private_key_pem)
        forges = GithubForges(
            credentials, base_url=settings.github_api_url, proxy=settings.proxy(settings.github_api_url)
        )
        try:
            where = InstallationId(world.endpoint.installation_id), RepositoryId(world.endpoint.repositories[0].id)
            forge = await forges.open(*where)
            repository, token = await forge.repository(), await forge.fetch_token()
            head = await forge.branch_head("main")
        finally:
            await forges.close()
        assert head
        assert urlsplit(repository.clone_url).hostname == HOST
        mirror = Mirror(tmp_path, where[1])
        with pytest.raises(Transient):
            await mirror.fetch(Upstream(repository.clone_url, token, "http"), commits=[head])
        through = Upstream(repository.clone_url, token, "http", settings.proxy(repository.clone_url))
        called = len(proxy.seen)
        await mirror.fetch(through, commits=[head])
        assert await mirror.has(head)
        assert called > 0
        assert len(proxy.seen) > called


class Echo:
    def answer(self, _: BrainRequest) -> BrainAnswer:
        return BrainAnswer((Text("Yes."),))


async def test_the_model_is_asked_through_it_too():
    async with anthropic.running(Config(brain=Echo())) as endpoint, before(endpoint.url) as proxy:
        settings = Settings(anthropic_base_url=f"http://{HOST}", http_proxy=proxy.url)
        model = AnthropicModel(
            api_key=endpoint.api_key,
            base_url=settings.anthropic_base_url,
            proxy=settings.proxy(settings.anthropic_base_url),
            prices=PriceBook.load(),
        )
        try:
            asked = Conversation(
                model="claude-sonnet-5-5",
                effort=Effort.MEDIUM,
                thinking="adaptive",
                system=("You answer.",),
                tools="[]",
                max_tokens=1_000,
            )
            turn = await model.attempt(ModelRequest("call:1", asked, (Message(compact(user("Well?"))),)))
        finally:
            await model.aclose()
    assert turn.text == "Yes."
    assert proxy.seen == [f"POST {HOST}"]
