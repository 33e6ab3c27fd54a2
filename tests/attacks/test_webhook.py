"""Attacks on the door and on who is heard (W01-W08, J01, J03): over a real socket, into a real store, up to the decision.

Each attack is a good delivery but for one thing, and the good delivery is sent beside it as the control.
"""

from __future__ import annotations

import gzip
import json
import resource
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import uvicorn

from bot.domain.action import Action, Answer, Nothing, StartTask, TellTask
from bot.domain.errors import UserError
from bot.domain.ids import DeliveryId, InstallationId
from bot.domain.money import MicroUsd
from bot.domain.pull import Permission
from bot.providers.store.port import Delivery
from bot.providers.store.sql import Store, open_store, sqlite_url
from bot.stages.intake.decide import IntakeSettings
from bot.stages.intake.run import decide_delivery
from bot.stages.intake.signature import signature
from bot.web.app import WebSettings, build
from tests.attacks.conftest import Control
from tests.unit.stages.intake.builders import ANA, ISSUE, comment, issue, payload, pull, user
from tests.unit.stages.intake.forges import Forges

SECRET = "a secret for attacks"
LABELLED = payload("labeled", issue=issue(), label={"name": "agent"})
RAW = json.dumps(LABELLED).encode()
GOOD = "the good delivery beside it is taken"


@dataclass
class Door:
    """The product's door on a loopback port, and the store behind it."""

    port: int
    store: Store

    async def accept(self, delivery: Delivery) -> bool:
        return await self.store.deliveries.accept(delivery)

    def send(self, body: bytes = RAW, headers: Mapping[str, str | None] | None = None) -> int:
        """The status of a delivery; `headers` replace or, with None, remove those of a good one."""
        good: dict[str, str | None] = {
            "content-type": "application/json",
            "x-github-event": "issues",
            "x-github-delivery": str(uuid4()),
            "x-hub-signature-256": signature(SECRET, body),
        }
        given = {name: value for name, value in (good | dict(headers or {})).items() if value is not None}
        return httpx.post(f"http://127.0.0.1:{self.port}/webhook", content=body, headers=given, timeout=20).status_code

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.settimeout(20)
        return connection

    def head(self, *lines: str, body: bytes = b"{}") -> bytes:
        """The head of a well-signed request, to be followed by whatever the attack sends."""
        fixed = (
            "POST /webhook HTTP/1.1",
            "Host: pullwright.test",
            "Content-Type: application/json",
            "X-GitHub-Event: issues",
            "X-GitHub-Delivery: d-1",
            f"X-Hub-Signature-256: {signature(SECRET, body)}",
        )
        return "\r\n".join([*fixed, *lines, "", ""]).encode()


def status_of(connection: socket.socket) -> int:
    return int(connection.recv(4096).split(b" ", 2)[1])


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    store = open_store(sqlite_url(tmp_path / "store.db"))
    opened = Door(0, store)
    settings = WebSettings(secrets=(SECRET,), tasks=store.tasks, ledger=store.ledger, body_seconds=0.5)
    with serving(uvicorn.Config(build(opened, settings), port=0, log_config=None, lifespan="off")) as port:
        opened.port = port
        yield opened
    store.close()


@contextmanager
def serving(config: uvicorn.Config) -> Iterator[int]:
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


class TestW01Signatures:
    @pytest.mark.parametrize(
        "header",
        [
            None,
            "",
            signature("guess", RAW),
            signature("", RAW),
            "sha1=" + "0" * 40,
            signature(SECRET, RAW).upper(),
            signature(SECRET, RAW)[:-2],
            signature(SECRET, RAW) * 2,
        ],
    )
    async def test_nobody_gets_in_without_githubs_signature(self, door: Door, header: str | None, control: Control):
        assert door.send(headers={"x-hub-signature-256": header}) == 401
        assert await door.store.deliveries.unfinished() == ()
        control(door.send() == 202, GOOD)

    @pytest.mark.parametrize("secrets", [(), ("",), (" ",), (SECRET, "")])
    def test_an_empty_secret_is_no_secret(self, door: Door, secrets: tuple[str, ...]):
        with pytest.raises(UserError, match="No webhook secret"):
            build(door, WebSettings(secrets=secrets, tasks=door.store.tasks, ledger=door.store.ledger))

    def test_a_sha1_signature_does_not_stand_in(self, door: Door):
        assert door.send(headers={"x-hub-signature-256": None, "x-hub-signature": "sha1=" + "0" * 40}) == 401


class TestW02OtherBytes:
    @pytest.mark.parametrize(
        "signed",
        [
            json.dumps(LABELLED, separators=(",", ":")).encode(),
            json.dumps(LABELLED, indent=1).encode(),
            RAW.decode().encode("utf-16"),
            b"\xef\xbb\xbf" + RAW,
            RAW + b"\n",
        ],
    )
    def test_the_signature_is_over_the_very_bytes(self, door: Door, signed: bytes, control: Control):
        control(signed != RAW and door.send(RAW) == 202, GOOD)
        assert door.send(RAW, {"x-hub-signature-256": signature(SECRET, signed)}) == 401


class TestW03Size:
    def test_a_body_above_the_limit_is_refused_by_its_length(self, door: Door, control: Control):
        large = json.dumps(LABELLED | {"padding": "x" * (8 * 1024 * 1024)}).encode()
        control(door.send(large) == 202, "a large delivery below the limit is taken")
        with door.connect() as connection:
            connection.sendall(door.head(f"Content-Length: {26 * 1024 * 1024}"))
            assert status_of(connection) == 413

    def test_an_endless_body_is_cut_off(self, door: Door):
        chunk = b"%x\r\n%b\r\n" % (2**20, b"x" * 2**20)
        with door.connect() as connection:
            connection.sendall(door.head("Transfer-Encoding: chunked"))
            try:
                for _ in range(200):
                    connection.sendall(chunk)
            except OSError:
                pass
            else:
                pytest.fail("it went on reading")
        assert door.send() == 202

    def test_a_packed_body_is_refused(self, door: Door):
        assert door.send(gzip.compress(RAW), {"content-encoding": "gzip"}) == 415

    def test_a_slow_body_is_refused_and_others_are_served_meanwhile(self, door: Door):
        with door.connect() as connection:
            connection.sendall(door.head("Content-Length: 2") + b"{")
            assert door.send() == 202
            assert status_of(connection) == 408

    def test_a_thousand_idle_connections_keep_nobody_out(self, door: Door):
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(1000, soft // 2 - 100)
        with ExitStack() as idle:
            for _ in range(count):
                idle.enter_context(door.connect())
            assert door.send() == 202


class TestW04Json:
    @pytest.mark.parametrize(
        "body",
        [
            b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
            b"[" * 100_000,
            RAW[:-1] + b', "action": "closed"}',
            RAW[:-1] + b', "n": 1e400}',
            RAW[:-1] + b', "n": NaN}',
            RAW[:-1] + b', "s": "\\ud800"}',
            RAW[:-1] + b', "n": ' + b"9" * 5_000 + b"}",
            b"[%b]" % RAW,
            b"payload=%7B%7D",
        ],
    )
    async def test_what_two_readers_could_read_differently_is_refused(self, door: Door, body: bytes, control: Control):
        assert door.send(body) == 400
        assert await door.store.deliveries.unfinished() == ()
        control(door.send(RAW) == 202, GOOD)

    @pytest.mark.parametrize(
        "wrong", [{"issue": 5}, {"sender": []}, {"repository": None}, {"label": "agent"}, {"action": {}}]
    )
    async def test_wrong_types_are_ignored(self, door: Door, wrong: dict[str, Any]):
        assert door.send(json.dumps(LABELLED | wrong).encode()) == 202
        assert await door.store.deliveries.unfinished() == ()


class TestW05Replay:
    async def test_the_same_delivery_and_the_same_body_count_once(self, door: Door, control: Control):
        for identifier in ("d-1", "d-1", "d-2", "d-3"):
            assert door.send(headers={"x-github-delivery": identifier}) == 202
        assert await door.store.deliveries.unfinished() == (DeliveryId("d-1"),)
        assert door.send(RAW + b" ", {"x-github-delivery": "d-4"}) == 202
        control(len(await door.store.deliveries.unfinished()) == 2, "another body under another number counts")

    async def test_a_body_kept_back_for_a_year_counts_no_more(self, door: Door):
        door.send(headers={"x-github-delivery": "d-1"})
        await door.store.deliveries.finish(DeliveryId("d-1"), "done")
        assert await door.store.deliveries.purge(before="2999-01-01") == 1
        door.send(headers={"x-github-delivery": "d-2"})
        assert await door.store.deliveries.unfinished() == ()

    async def test_twins_with_different_ids_start_one_task(self, door: Door):
        """One comment, told in two deliveries whose bodies differ."""
        twins = [payload("created", issue=issue(), comment=comment(), twin=number) for number in (1, 2)]
        first, racing = [await decided(door.store, Forges(), twin, "issue_comment") for twin in twins]
        assert isinstance(first, StartTask)
        assert isinstance(racing, StartTask)
        assert await door.store.tasks.start(first, MicroUsd(1)) is not None
        assert await door.store.tasks.start(racing, MicroUsd(1)) is None
        assert isinstance(await decided(door.store, Forges(), twins[1], "issue_comment"), Nothing)


async def decided(store: Store, forges: Forges, body: dict[str, Any], event: str = "issues") -> Action:
    delivery = Delivery(DeliveryId("d"), event, json.dumps(body).encode(), "2026-11-29T10:00:00+00:00")
    return await decide_delivery(delivery, forges=forges, tasks=store.tasks, settings=IntakeSettings())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(sqlite_url(tmp_path / "store.db"))
    yield opened
    opened.close()


def saying(body: str, sender: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return payload("created", issue=issue(), comment=comment(body, **changes), sender=sender or user())


class TestW06ConfusedDeputy:
    async def begun(self, store: Store) -> None:
        assert await store.tasks.start(StartTask(ISSUE, ANA, "t", "t", "r"), MicroUsd(1)) is not None

    async def test_another_installation_does_not_reach_the_task(self, store: Store, control: Control):
        await self.begun(store)
        stop = saying("/agent stop")
        control(
            isinstance(await decided(store, Forges(), stop, "issue_comment"), TellTask), "from its own, it is heard"
        )
        foreign = stop | {"installation": {"id": 10}}
        assert isinstance(await decided(store, Forges(), foreign, "issue_comment"), Nothing)

    async def test_a_repository_is_known_by_number_not_by_name(self, store: Store):
        await self.begun(store)
        renamed = saying("/agent stop") | {"repository": {"id": 1, "full_name": "acme/renamed"}}
        assert isinstance(await decided(store, Forges(), renamed, "issue_comment"), TellTask)
        namesake = saying("/agent run") | {"repository": {"id": 2, "full_name": "acme/shop"}}
        action = await decided(store, Forges(), namesake, "issue_comment")
        assert isinstance(action, StartTask)
        assert action.subject.repository.id == 2

    async def test_a_repository_the_installation_does_not_cover_is_nothing(self, store: Store):
        assert isinstance(await decided(store, Forges(gone=True), LABELLED), Nothing)

    async def test_a_delivery_that_is_not_to_the_app_is_nothing(self, store: Store):
        hook = {name: value for name, value in LABELLED.items() if name != "installation"}
        assert isinstance(await decided(store, Forges(), hook), Nothing)


class TestW07Bots:
    US = user("pullwright[bot]", 99, "Bot")
    OTHER = user("helper[bot]", 50, "Bot")

    @pytest.mark.parametrize(
        "body",
        [
            saying("/agent run", US),
            saying("/agent run", user("pullwright", 99)),
            saying("/agent run", performed_via_github_app={"id": 4242}),
            saying("/agent run", OTHER),
            saying("/agent nonsense", OTHER),
            saying("/agent run\n/agent stop", OTHER),
        ],
    )
    async def test_no_bot_is_heard_or_answered(self, store: Store, body: dict[str, Any], control: Control):
        forges = Forges({"helper[bot]": Permission.ADMIN, "pullwright[bot]": Permission.ADMIN, "ana": Permission.ADMIN})
        assert isinstance(await decided(store, forges, body, "issue_comment"), Nothing)
        assert forges.asked == []
        heard = await decided(store, forges, saying("/agent run"), "issue_comment")
        control(isinstance(heard, StartTask), "from a person, the same words start a task")

    async def test_a_loop_of_fifty_reviews_by_a_bot_says_nothing(self, store: Store):
        begun = await store.tasks.start(StartTask(ISSUE, ANA, "t", "t", "r"), MicroUsd(1))
        assert begun is not None
        await store.tasks.published(begun.id, 12, "1" * 40)
        for number in range(50):
            review = {
                "id": number + 1,
                "state": "changes_requested",
                "commit_id": "1" * 40,
                "body": "/agent fix",
                "user": self.OTHER,
            }
            body = payload("submitted", pull_request=pull(), review=review, sender=self.OTHER)
            assert isinstance(await decided(store, Forges(), body, "pull_request_review"), Nothing)

    async def test_a_label_by_a_bot_starts_nothing(self, store: Store):
        assert isinstance(await decided(store, Forges(), LABELLED | {"sender": self.OTHER}), Nothing)


class TestW08Rights:
    @pytest.mark.parametrize("permission", [Permission.READ, Permission.NONE])
    async def test_a_label_by_somebody_below_write_starts_nothing(
        self, store: Store, permission: Permission, control: Control
    ):
        """Triage can label, and reads as `read` at the permission endpoint; a deleted user reads as `none`."""
        assert await decided(store, Forges({"ana": permission}), LABELLED) == Answer(ISSUE, "refused")
        allowed = await decided(store, Forges({"ana": Permission.WRITE}), LABELLED)
        control(isinstance(allowed, StartTask), "with the right to write, the label starts a task")

    async def test_j01_a_strangers_trigger_word_is_inert(self, store: Store, control: Control):
        """At most a reaction for a reader, nothing for somebody without access."""
        from_a_writer = await decided(
            store, Forges({"eve": Permission.WRITE}), saying("/agent run", user("eve", 66)), "issue_comment"
        )
        control(isinstance(from_a_writer, StartTask), "from a writer, the same words start a task")
        for text in ("/agent run", "/agent merge 0123456789ab", "/agent stop"):
            body = saying(text, user("eve", 66))
            assert isinstance(await decided(store, Forges(), body, "issue_comment"), Nothing)
            action = await decided(store, Forges({"eve": Permission.READ}), body, "issue_comment")
            assert isinstance(action, Answer)
            assert (action.topic, action.comment_id) == ("refused", 31)

    async def test_j03_the_text_of_the_trigger_counts_not_a_later_edit(self, store: Store, control: Control):
        """Edits of issue and comment are ignored; what starts carries the text of the labelled payload."""
        action = await decided(store, Forges(), LABELLED)
        assert isinstance(action, StartTask)
        assert action.request == "1 + 1 = 3"
        later = await decided(
            store, Forges(), payload("labeled", issue=issue(body="new text"), label={"name": "agent"})
        )
        control(isinstance(later, StartTask) and later.request == "new text", "the text at the label is what is taken")
        for event, body in (
            ("issues", payload("edited", issue=issue(body="rm -rf /"), changes={"body": {"from": "x"}})),
            ("issue_comment", payload("edited", issue=issue(), comment=comment("/agent run"), changes={})),
        ):
            assert isinstance(await decided(store, Forges(), body, event), Nothing)

    async def test_a_task_is_not_moved_to_another_installation_by_a_label(self, store: Store):
        other = replace(ISSUE, repository=replace(ISSUE.repository, installation_id=InstallationId(10)))
        assert await store.tasks.start(StartTask(other, ANA, "t", "t", "r"), MicroUsd(1)) is not None
        assert isinstance(await decided(store, Forges(), LABELLED), Nothing)
