"""The page of tasks is read-only, escapes everything, and says honestly when it cannot."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from bot.domain.money import MicroUsd
from bot.domain.task import Ending, Stage
from bot.providers.store.port import TaskRecord
from tests.unit.stages.intake.builders import PULL, spec
from tests.unit.web.callers import web

LIVE = TaskRecord(spec(), Stage.CODING, "step 2 of 3", 12, "1" * 40, None)


async def test_tasks_show_stage_cost_and_pull_request():
    async with web() as world:
        world.shelf.records = (LIVE,)
        world.shelf.costs = {"task:1:5:1": MicroUsd(73_700)}
        answer = await world.client.get("/")
        assert answer.status_code == 200
        for part in (
            '<a href="https://github.com/acme/shop/issues/5">acme/shop#5</a> Sum is wrong',
            '<a href="https://github.com/acme/shop/pull/12">#12</a>',
            "$0.0737 of $0.5000",
            '<span class="stage live">coding</span>',
            "step 2 of 3",
        ):
            assert part in answer.text


async def test_an_ended_task_says_why():
    async with web() as world:
        ending = Ending(Stage.NEEDS_HUMAN, "the same test failed twice")
        world.shelf.records = (replace(LIVE, stage=Stage.NEEDS_HUMAN, ending=ending, pull_number=None),)
        answer = await world.client.get("/")
        assert '<span class="stage ended">needs human</span>' in answer.text
        assert "the same test failed twice" in answer.text
        assert "/pull/" not in answer.text


@pytest.mark.parametrize(
    ("stage", "mood"), [(Stage.LANDED, "well"), (Stage.IN_REVIEW, "live"), (Stage.CANCELLED, "ended")]
)
async def test_a_stage_has_a_mood(stage: Stage, mood: str):
    async with web() as world:
        world.shelf.records = (replace(LIVE, stage=stage),)
        assert f'class="stage {mood}"' in (await world.client.get("/")).text


async def test_a_hostile_title_stays_text():
    async with web() as world:
        task = spec(title="<script>alert(1)</script>\"'", subject=PULL)
        world.shelf.records = (replace(LIVE, spec=task, note="<img src=x onerror=y>"),)
        answer = await world.client.get("/")
        assert "<script" not in answer.text
        assert "<img" not in answer.text
        assert "&lt;script&gt;" in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_nothing_yet():
    async with web() as world:
        assert "Nothing yet" in (await world.client.get("/")).text


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Basic " + base64.b64encode(b"any:hush").decode(), 200),
        ("basic " + base64.b64encode(b":hush").decode(), 200),
        ("Basic " + base64.b64encode(b"any:hus").decode(), 401),
        ("Basic " + base64.b64encode(b"hush").decode(), 401),
        ("Bearer " + base64.b64encode(b"any:hush").decode(), 401),
        ("Basic %%%", 401),
        ("Basic", 401),
    ],
)
async def test_a_password_keeps_strangers_out(authorization: str | None, status: int):
    async with web(password="hush") as world:
        headers = {} if authorization is None else {"authorization": authorization}
        assert (await world.client.get("/", headers=headers)).status_code == status


async def test_health_and_readiness():
    async with web() as world:
        assert (await world.client.get("/healthz")).text == "alive\n"
        assert (await world.client.get("/readyz")).status_code == 200
        world.shelf.down = True
        assert (await world.client.get("/healthz")).status_code == 200
        assert (await world.client.get("/readyz")).status_code == 503
        page = await world.client.get("/")
        assert (page.status_code, page.text) == (503, "The store does not answer now.\n")


async def test_the_page_is_read_only():
    async with web() as world:
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert (await world.client.request(method, "/")).status_code == 405
