"""The stand-in as something that is served: its webhooks to a strict reader, a unix socket, and the serving command."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.emulators.github import Config, load_seed, serve_forever
from tests.contracts.github_world import HOME, hub


async def test_a_unix_socket_serves_the_same(tmp_path):
    socket = tmp_path / "hub.sock"
    async with hub(Config(unix_socket=str(socket))) as world:
        transport = httpx.AsyncHTTPTransport(uds=str(socket))
        async with httpx.AsyncClient(transport=transport, base_url="http://api.github.localhost") as client:
            answer = await client.get(HOME, headers={"Authorization": f"token {world.token('octo-dev')}"})
            assert answer.json()["url"] == f"http://api.github.localhost{HOME}"


async def test_the_serving_command_announces_itself_and_stops_on_sigterm(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a\n")
    seed = tmp_path / "seed.toml"
    seed.write_text(
        """
        [[users]]
        login = "ada"
        permission = "admin"

        [[repositories]]
        full_name = "octo-org/seeded"
        files = "files"
        labels = [{ name = "agent" }]
        issues = [{ title = "First", labels = ["agent"], user = "ada" }]
        """
    )
    told: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(serve_forever(Config(seed=load_seed(seed)), told.put_nowait))
    ready = await told.get()
    assert set(ready) == {
        "url",
        "app_id",
        "installation_id",
        "private_key_file",
        "webhook_secret",
        "repositories",
        "users",
    }
    assert _key_file(ready) == ("-----BEGIN RSA PRIVATE KEY-----", 0o600)
    assert ready["repositories"][0]["clone_url"] == f"{ready['url']}/octo-org/seeded.git"
    token = ready["users"]["ada"]["token"]
    async with httpx.AsyncClient(headers={"Authorization": f"token {token}"}, trust_env=False) as client:
        issue = (await client.get(f"{ready['url']}/repos/octo-org/seeded/issues/1")).json()
    assert (issue["title"], [one["name"] for one in issue["labels"]]) == ("First", ["agent"])
    os.kill(os.getpid(), signal.SIGTERM)
    await task
    with pytest.raises(FileNotFoundError):
        _key_file(ready)


def _key_file(ready: dict[str, Any]) -> tuple[str, int]:
    path = Path(ready["private_key_file"])
    return path.read_text().splitlines()[0], path.stat().st_mode & 0o777
