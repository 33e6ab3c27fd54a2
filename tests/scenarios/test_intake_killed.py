"""`kill -9` while deliveries pour in: what was acknowledged is there after the next start, and is worked off once."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from bot.stages.intake.signature import signature
from tests.scenarios.brains import FILES, StepBrain
from tests.world import LABEL, World, world

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "webhooks" / "examples.json.gz"


async def test_what_was_acknowledged_survives_a_kill_and_starts_one_task(tmp_path: Path):
    talk = next(body for event, body in _examples() if event == "issue_comment" and body["action"] == "created")
    async with world(StepBrain(), tmp_path, contents=FILES) as here:
        issue = await here.rosa.open_issue("Add triple", "")
        here.hub.world.app.webhook_url = "http://127.0.0.1:9/nobody"  # the label is told by hand, as one of many
        await here.rosa.label(issue, LABEL)
        await here.hub.settle()
        labelled = json.loads(next(one.body for one in here.hub.world.courier.log if one.action == "labeled"))
        installed = {"installation": {"id": here.hub.installation_id}}
        bodies = [("issue_comment", talk | installed | {"n": number}) for number in range(150)]
        bodies[75:75] = [("issues", labelled)]
        sent = [asyncio.create_task(_send(here, event, body)) for event, body in bodies]
        acknowledged: set[str] = set()
        while len(acknowledged) < 90:
            done, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
            acknowledged = {one.result() for one in done} - {""}
        await here.kill()
        acknowledged = {await one for one in sent} - {""}
        assert len(acknowledged) >= 90
        stored = _stored(tmp_path)
        assert acknowledged <= stored.keys()
        await here.start()
        here.hub.world.app.webhook_url = f"{here.url}/webhook"
        await _send(here, "issues", labelled)
        await here.draft()
        await here.until("all are worked off", lambda: _all_finished(tmp_path), patience=20)
        assert len(await here.rosa.pulls()) == 1
        comments = await here.rosa.comments(issue)
        assert sum(one["user"]["login"].endswith("[bot]") for one in comments) == 1


def _examples() -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = json.loads(gzip.decompress(EXAMPLES.read_bytes()))
    return found


async def _send(here: World, event: str, body: dict[str, Any]) -> str:
    """The id, once it was acknowledged; "" when no answer came."""
    raw, identifier = json.dumps(body).encode(), str(uuid4())
    headers = {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": identifier,
        "x-hub-signature-256": signature(here.hub.webhook_secret, raw),
    }
    try:
        answer = await here.webhook(raw, headers)
    except httpx.HTTPError:
        return ""
    accepted = answer.status_code == 202 and answer.json()["status"] == "accepted"
    return identifier if accepted else ""


def _stored(home: Path) -> dict[str, bool]:
    """Whether each stored delivery is finished."""
    with sqlite3.connect(home / "data" / "pullwright.db") as connection:
        return {row[0]: bool(row[1]) for row in connection.execute("SELECT id, finished FROM deliveries")}


async def _all_finished(home: Path) -> bool | None:
    left = [key for key, finished in _stored(home).items() if not finished]
    return not left or None
