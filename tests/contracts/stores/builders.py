"""Values for the contract of the stores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbos import DBOS, DBOSPortableJSONSerializer

from bot.domain.action import StartTask
from bot.domain.event import Actor, Subject
from bot.domain.ids import (
    CommitId,
    DeliveryId,
    Digest,
    InstallationId,
    NodeId,
    RepositoryId,
    ReviewId,
    TaskId,
    TreeId,
    UserId,
)
from bot.domain.money import MicroUsd
from bot.domain.pull import Approval, Permission
from bot.domain.repository import RepositoryRef
from bot.domain.spending import Attempt
from bot.providers.store.port import Delivery
from bot.providers.store.sql import Store

BUDGET = MicroUsd(500_000)
ANA = Actor(UserId(7), "ana", is_bot=False)


def configure(url: str) -> None:
    """A durable engine on this database; workflows are registered next, and then it is launched."""
    DBOS(
        config={
            "name": "test",
            "system_database_url": url,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": 0.05,
        }
    )


def subject(number: int = 5, repository: int = 1) -> Subject:
    return Subject(RepositoryRef(RepositoryId(repository), "acme/shop", InstallationId(9)), number, is_pull=False)


def start(trigger: str = "comment:1", number: int = 5, repository: int = 1) -> StartTask:
    return StartTask(subject(number, repository), ANA, trigger, "Fix the sum", "It is wrong.")


def delivery(identifier: str = "d-1", body: bytes = b"{}", event: str = "issues") -> Delivery:
    return Delivery(DeliveryId(identifier), event, body, "2026-11-29T10:00:00+00:00")


def attempt(number: int = 1, reserved: int = 100, task: str = "t", key: str = "plan:1") -> Attempt:
    return Attempt(task, key, number, "claude-x", "high", MicroUsd(reserved))


def approval(digest: str = "a" * 64) -> Approval:
    return Approval(
        repository=RepositoryId(1),
        pull_node_id=NodeId("PR_1"),
        pull_number=12,
        review_id=ReviewId(3),
        reviewer=ANA,
        permission=Permission.WRITE,
        received_at="2026-11-29T10:00:00+00:00",
        delivery=DeliveryId("d-1"),
        review_commit=CommitId("1" * 40),
        head_sha=CommitId("1" * 40),
        base_ref="main",
        base_sha=CommitId("2" * 40),
        merge_base=CommitId("2" * 40),
        digest=Digest(digest),
        head_tree=TreeId("3" * 40),
        merge_tree=TreeId("4" * 40),
        policy_digest="p",
        flags=("workflows",),
    )


async def started(store: Store, *, trigger: str = "comment:1", number: int = 5) -> TaskId:
    spec = await store.tasks.start(start(trigger, number), BUDGET)
    assert spec is not None
    return spec.id


def together(count: int, act: Callable[[int], Any]) -> list[Any]:
    """Run `act` in `count` threads that set off at the same moment."""
    gate = threading.Barrier(count)

    def run(index: int) -> Any:
        gate.wait()
        return act(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
