"""The stage reads what a decision needs, and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.domain.action import Action, Answer, Nothing, StartTask, TellTask
from bot.domain.ids import DeliveryId, InstallationId, TaskId
from bot.domain.money import MicroUsd
from bot.domain.pull import Permission
from bot.domain.task import Ending, Stage
from bot.providers.store.port import Delivery
from bot.providers.store.sql import Store, open_store, sqlite_url
from bot.stages.intake.decide import IntakeSettings
from bot.stages.intake.run import decide_delivery
from tests.unit.stages.intake.builders import ANA, ISSUE, comment, issue, payload, pull, review, user
from tests.unit.stages.intake.forges import Forges


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(sqlite_url(tmp_path / "store.db"))
    yield opened
    opened.close()


@pytest.fixture
def forges() -> Forges:
    return Forges()


async def decided(store: Store, forges: Forges, event: str, body: dict[str, Any] | bytes) -> Action:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    delivery = Delivery(DeliveryId("d"), event, raw, "2026-11-29T10:00:00+00:00")
    return await decide_delivery(delivery, forges=forges, tasks=store.tasks, settings=IntakeSettings())


async def with_task(store: Store, installation: int = 9) -> TaskId:
    subject = replace(ISSUE, repository=replace(ISSUE.repository, installation_id=InstallationId(installation)))
    spec = await store.tasks.start(StartTask(subject, ANA, "comment:1", "t", "then"), MicroUsd(1))
    assert spec is not None
    await store.tasks.published(spec.id, 12, "1" * 40)
    return spec.id


LABELLED = payload("labeled", issue=issue(), label={"name": "agent"})


async def test_a_label_by_a_writer_starts(store: Store, forges: Forges):
    assert isinstance(await decided(store, forges, "issues", LABELLED), StartTask)
    assert forges.asked == ["open 9 1", "ana"]


async def test_the_deleted_user_has_no_permission(store: Store, forges: Forges):
    ghost = LABELLED | {"sender": user("ghost", 10137)}
    assert await decided(store, forges, "issues", ghost) == Answer(ISSUE, "refused")


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("star", payload("created")),
        ("issues", b"{"),
        ("issues", LABELLED | {"label": {"name": "bug"}}),
        ("issue_comment", payload("created", issue=issue(), comment=comment("hello"))),
        ("issue_comment", payload("created", issue=issue(), comment=comment(), sender=user("x[bot]", 3, "Bot"))),
        ("pull_request_review", payload("submitted", pull_request=pull(), review=review())),
        ("pull_request", payload("closed", pull_request=pull())),
        ("issues", payload("closed", issue=issue())),
    ],
)
async def test_nothing_is_asked_of_github_for_nothing(store: Store, forges: Forges, event: str, body: Any):
    assert isinstance(await decided(store, forges, event, body), Nothing)
    assert forges.asked == []


async def test_the_reviewers_permission_counts(store: Store, forges: Forges):
    await with_task(store)
    body = payload("submitted", pull_request=pull(), review=review(state="changes_requested"))
    assert await decided(store, forges, "pull_request_review", body) == Nothing("the reviewer may not write")
    forges.permissions["rob"] = Permission.ADMIN
    assert isinstance(await decided(store, forges, "pull_request_review", body), TellTask)


@pytest.mark.parametrize(
    ("event", "body"), [("issues", LABELLED), ("issue_comment", payload("created", issue=issue(), comment=comment()))]
)
async def test_a_twin_delivery_is_nothing(store: Store, forges: Forges, event: str, body: dict[str, Any]):
    first = await decided(store, forges, event, body)
    assert isinstance(first, StartTask)
    spec = await store.tasks.start(first, MicroUsd(1))
    assert spec is not None
    assert await decided(store, forges, event, body | {"twin": True}) == Nothing(
        "this label or comment has had its task"
    )
    await store.tasks.end(spec.id, Ending(Stage.LANDED, "done"))
    assert isinstance(await decided(store, forges, event, body | {"twin": True}), Nothing)


async def test_an_ended_task_is_retried_from_its_pull_request(store: Store, forges: Forges):
    task = await with_task(store)
    await store.tasks.end(task, Ending(Stage.NEEDS_HUMAN, "tests fail"))
    body = payload("created", issue=issue(number=12, pull_request={}), comment=comment("/agent retry"))
    again = await decided(store, forges, "issue_comment", body)
    assert isinstance(again, StartTask)
    assert (again.subject, again.request) == (ISSUE, "then")


async def test_a_task_of_another_installation_is_not_touched(store: Store, forges: Forges):
    await with_task(store, installation=8)
    body = payload("created", issue=issue(), comment=comment("/agent stop"))
    assert await decided(store, forges, "issue_comment", body) == Nothing(
        "the task began under another installation of the App"
    )
    assert forges.asked == []


async def test_a_repository_out_of_reach_is_nothing(store: Store, forges: Forges):
    forges.gone = True
    action = await decided(store, forges, "issues", LABELLED)
    assert isinstance(action, Nothing)
    assert "no access" in action.reason
