"""Second opinions on the stand-in: clients that are not ours tell one story and have to see the same."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bot.emulators.github import Config
from tests.clients import gh_story, pygithub_story
from tests.clients.world import SEEN
from tests.contracts.github_world import Hub, app_jwt, hub, receiving

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / ".venv-clients"
STORY = ROOT / "tests" / "clients" / "story.mjs"
MISSING = "is not installed: run scripts/setup.sh tests (make contracts does)"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
async def test_pygithub_tells_the_story():
    async with hub() as world:
        assert await asyncio.to_thread(pygithub_story.tell, world.endpoint) == SEEN


async def test_githubs_command_line_tells_the_story(tmp_path: Path):
    assert shutil.which("gh"), f"gh {MISSING}"
    socket = tmp_path / "hub.sock"
    async with hub(Config(unix_socket=str(socket))) as world:
        config = gh_story.configured(tmp_path / "gh", socket)
        end = world.endpoint
        told = await asyncio.to_thread(
            gh_story.tell, config, app_jwt(end), end.installation_id, world.token("octo-dev")
        )
        assert told == SEEN


async def test_octokit_tells_the_story_and_accepts_the_signatures(tmp_path: Path):
    assert (INSTALLED / "node_modules" / "octokit").is_dir(), f"octokit {MISSING}"
    shutil.copy(STORY, tmp_path)
    (tmp_path / "node_modules").symlink_to(INSTALLED / "node_modules")
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await world.http.post("/_stand-in/ping")
        await world.endpoint.settle()
        deliveries = [
            {"body": one.body.decode(), "signature": one.headers["x-hub-signature-256"]} for one in receiver.events
        ]
        told = await asyncio.to_thread(_node, tmp_path / STORY.name, {**_world(world), "deliveries": deliveries})
        assert told == {**SEEN, "signed": True}


def _world(world: Hub) -> dict[str, Any]:
    end = world.endpoint
    return {
        "url": end.url,
        "app_id": end.app_id,
        "installation_id": end.installation_id,
        "private_key": end.private_key_pem,
        "webhook_secret": end.webhook_secret,
        "token": world.token("octo-dev"),
    }


def _node(script: Path, given: dict[str, Any]) -> Any:
    node = INSTALLED / "bin" / "node"
    done = subprocess.run(
        [node, script], input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
