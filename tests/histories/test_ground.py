"""What takes the ground from under a task: each delivery through the product's own router and store, on the stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.domain.action import ClosedMessage
from bot.domain.event import Closing
from bot.domain.ids import DeliveryId, TaskId
from bot.domain.repository import LandingMode
from bot.domain.task import Ending, Stage, TaskSpec
from bot.emulators.github.installing import change_installation
from bot.emulators.github.urls import Urls
from bot.emulators.github.webhooks.events import Scene, on_installation, on_issue, on_repository
from bot.providers.journal.direct import DirectJournal
from bot.providers.store.port import Delivery
from bot.providers.store.sql import open_store, sqlite_url
from bot.workflow import intake
from bot.workflow.onboarding import Arrival
from bot.workflow.records import Envelope
from bot.workflow.services import Services
from tests.histories.history import History
from tests.histories.stage import HistoryStage, Mutant, staged

URLS = Urls("http://stand-in")


@dataclass
class Office:
    """The router's hands, and what it was asked to pass on."""

    stage: HistoryStage
    services: Services
    started: list[TaskSpec] = field(default_factory=list)
    sent: list[tuple[TaskId, Envelope]] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    summarised: list[Arrival] = field(default_factory=list)
    seen: int = 0

    async def start(self, spec: TaskSpec) -> None:
        self.started.append(spec)

    async def send(self, task: TaskId, envelope: Envelope) -> None:
        self.sent.append((task, envelope))

    async def onboard(self, _delivery: DeliveryId, arrival: Arrival) -> None:
        self.arrived.append(arrival)

    async def summarise(self, _cause: str, arrival: Arrival) -> None:
        self.summarised.append(arrival)

    async def ask(self, who: str, method: str, path: str, body: Any = None) -> Any:
        answer = await self.stage.people.request(
            method, path, json=body, headers={"Authorization": f"Bearer token-{who}", "User-Agent": who}
        )
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else {}

    @property
    def here(self) -> str:
        return f"/repos/{self.stage.repository.full_name}"

    async def deliver(self) -> list[str]:
        """Everything that happened since, through the router; its notes."""
        await self.stage.world.settle()
        log = self.stage.world.courier.log
        notes = []
        for one in log[self.seen :]:
            stored = Delivery(DeliveryId(one.guid), one.event, one.body, "2026-11-29T00:00:00Z")
            await self.services.deliveries.accept(stored)
            post = intake.Post(start=self.start, send=self.send, onboard=self.onboard, summarise=self.summarise)
            notes.append(await intake.route(stored.id, services=self.services, journal=DirectJournal(), post=post))
        self.seen = len(log)
        return notes

    async def ending(self) -> Ending | None:
        record = await self.services.tasks.get(self.started[0].id)
        assert record is not None
        return record.ending

    def said(self, number: int = 1) -> str:
        return "\n".join(comment.body for comment in self.stage.repository.issues[number].comments)


@asynccontextmanager
async def office(root: Path, body: str = "/agent run") -> AsyncIterator[Office]:
    """A task that was just started, by a label or by this comment."""
    async with staged(root / "world", Mutant()) as stage:
        store = open_store(sqlite_url(root / "store.db"))
        services = replace(
            stage.services,
            deliveries=store.deliveries,
            tasks=store.tasks,
            approvals=store.approvals,
            ledger=store.ledger,
            requests=store.requests,
        )
        made = Office(stage, services)
        try:
            await made.ask("rosa", "POST", f"{made.here}/issues", {"title": "Sell"})
            if body:
                await made.ask("rosa", "POST", f"{made.here}/issues/1/comments", {"body": body})
            else:
                await made.ask("rosa", "POST", f"{made.here}/issues/1/labels", {"labels": ["agent"]})
            await made.deliver()
            assert len(made.started) == 1
            yield made
        finally:
            store.database.close()


def repository_event(action: str) -> Any:
    def act(made: Office) -> None:
        stage = made.stage
        on_repository(Scene(stage.world, stage.repository, stage.world.user("carl"), URLS), action)

    return act


def installation_event(action: str) -> Any:
    def act(made: Office) -> None:
        asked = {"repository": made.stage.repository.full_name}
        assert change_installation(made.stage.world, action, asked, URLS)

    return act


async def archive(made: Office) -> None:
    await made.ask("carl", "PATCH", made.here, {"archived": True})


GROUND = [
    (repository_event("transferred"), "transferred to another owner"),
    (repository_event("deleted"), "was deleted"),
    (repository_event("publicized"), "made public"),
    (archive, "was archived"),
    (installation_event("deleted"), "was uninstalled"),
    (installation_event("removed"), "taken out of the App's installation"),
]


@pytest.mark.parametrize(("act", "words"), GROUND, ids=[words for _, words in GROUND])
async def test_a_task_ends_at_once_when_its_ground_is_gone_and_says_why(act: Any, words: str, tmp_path: Path):
    async with office(tmp_path) as made:
        done = act(made)
        if done is not None:
            await done
        await made.deliver()
        ending = await made.ending()
        assert ending is not None
        assert ending.stage is Stage.CANCELLED
        assert words in ending.reason
        assert [type(envelope.message) for _, envelope in made.sent] == [ClosedMessage]


async def test_a_suspended_installation_ends_its_tasks(tmp_path: Path):
    async with office(tmp_path) as made:
        made.stage.installation.suspended_at = made.stage.world.clock.now()
        on_installation(made.stage.world, made.stage.installation, "suspend", made.stage.world.user("carl"), URLS)
        await made.deliver()
        ending = await made.ending()
        assert ending is not None
        assert "suspended" in ending.reason


async def test_a_rename_and_another_default_branch_leave_the_task_alone(tmp_path: Path):
    async with office(tmp_path) as made:
        await made.ask("carl", "PATCH", made.here, {"name": "renamed"})
        repository_event("edited")(made)
        notes = await made.deliver()
        assert await made.ending() is None
        assert any("a repository is known by its number" in note for note in notes)
        await made.ask("rosa", "POST", f"{made.here}/issues/1/comments", {"body": "/agent status"})
        await made.deliver()
        assert "Waiting for its turn" in made.said()


@pytest.mark.parametrize(
    ("closing", "words"),
    [
        (Closing.ISSUE_CLOSED, "issue was closed"),
        (Closing.ISSUE_DELETED, "deleted"),
        (Closing.ISSUE_TRANSFERRED, "moved"),
    ],
)
async def test_a_closed_deleted_or_transferred_issue_ends_its_task_at_once(
    closing: Closing, words: str, tmp_path: Path
):
    async with office(tmp_path) as made:
        action = closing.value.removeprefix("issue_")
        if closing is Closing.ISSUE_CLOSED:
            await made.ask("rosa", "PATCH", f"{made.here}/issues/1", {"state": "closed"})
        else:
            scene = Scene(made.stage.world, made.stage.repository, made.stage.world.user("rosa"), URLS)
            on_issue(scene, action, made.stage.repository.issues[1])
        await made.deliver()
        ending = await made.ending()
        assert ending is not None
        assert words in ending.reason


async def test_the_label_taken_off_before_the_work_began_takes_the_request_back(tmp_path: Path):
    async with office(tmp_path, body="") as made:
        await made.ask("rosa", "DELETE", f"{made.here}/issues/1/labels/agent")
        await made.deliver()
        ending = await made.ending()
        assert ending is not None
        assert "nothing was spent" in ending.reason


async def test_the_label_taken_off_later_stops_nothing_and_that_is_said(tmp_path: Path):
    async with office(tmp_path, body="") as made:
        await made.services.tasks.move(made.started[0].id, Stage.CODING)
        await made.ask("rosa", "DELETE", f"{made.here}/issues/1/labels/agent")
        await made.deliver()
        assert await made.ending() is None
        assert "I go on" in made.said()


async def test_e16_the_trigger_comment_deleted_lets_the_task_go_on_and_that_is_said(tmp_path: Path):
    async with office(tmp_path) as made:
        comment = made.stage.repository.issues[1].comments[0]
        await made.ask("rosa", "DELETE", f"{made.here}/issues/comments/{comment.id}")
        await made.deliver()
        assert await made.ending() is None
        assert "I go on with what it said then" in made.said()
        other = await made.ask("rosa", "POST", f"{made.here}/issues/1/comments", {"body": "Hm."})
        await made.ask("rosa", "DELETE", f"{made.here}/issues/comments/{other['id']}")
        await made.deliver()
        assert made.said().count("I go on") == 1


async def test_another_repositorys_tasks_go_on(tmp_path: Path):
    async with office(tmp_path) as made:
        made.stage.installation.repository_ids.add(made.stage.repository.id + 1)
        made.stage.repository.id += 1
        repository_event("deleted")(made)
        made.stage.repository.id -= 1
        assert await made.deliver() == ["told 0 tasks: deleted"]
        assert await made.ending() is None


async def test_a_deleted_base_branch_closes_the_pull_request_and_the_task_says_so(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        history = History(stage, LandingMode.READY)
        await history.begin()
        await history.deliver_all()
        await history.ask(
            "carl",
            "POST",
            f"{history.here}/git/refs",
            {"ref": "refs/heads/gone", "sha": stage.git.refs["refs/heads/main"]},
        )
        await history.retarget("rosa", "gone")
        await history.deliver_all()
        await history.ask("carl", "DELETE", f"{history.here}/git/refs/heads/gone")
        await history.deliver_all()
        assert history.ending is not None
        assert history.ending.stage is Stage.CANCELLED
        await history.close()
