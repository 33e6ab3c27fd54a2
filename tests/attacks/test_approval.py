"""Every way to make an approval count for what it was not given for: the product's own review loop against the stand-in."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from bot.custody.digest import digest_of
from bot.domain.action import ReviewMessage
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import UserId
from bot.domain.pull import Approval, Permission
from bot.domain.repository import LandingMode
from bot.policy.engine import Policies
from bot.settings import load_policies
from bot.stages.approving.gate import Terms, approval_from, decide
from tests.attacks.conftest import Control
from tests.histories.history import History, Race, playing
from tests.histories.mutants import MUTANTS
from tests.histories.stage import POLICIES
from tests.unit.stages.approving.builders import ADA, BOB, BOT, TERMS, approval, message, review, snapshot
from tests.unit.stages.approving.ways import WAYS, Way

GOOD = {"feature.py": "good = 7\n"}


@pytest.fixture(scope="module")
def policies() -> Policies:
    return load_policies(POLICIES)


async def approved(history: History) -> str:
    await history.review("robin", "APPROVE", history.pull.head_sha)
    digest = history.oracle.current(history.pull)
    await history.deliver_all()
    return digest


async def asked_to_merge(history: History, digest: str) -> bool:
    """Somebody asks for the merge of what was approved; whether anything landed."""
    await history.say("rosa", "merge", digest)
    await history.deliver_all()
    history.check()
    return history.pull.merged


async def push(history: History) -> None:
    await history.push("rosa", GOOD)


async def push_and_back(history: History) -> None:
    """Away and back: what the product heard of is void, and stays so until somebody approves again."""
    head = history.pull.head_sha
    await history.push("rosa", GOOD)
    await history.deliver_all()
    await history.move("rosa", history.pull.head_ref, head, force=True)


async def failing_base(history: History) -> None:
    await history.move_base("rosa", {"stock.py": "bad = 1\n"})


async def retarget(history: History) -> None:
    await history.retarget("rosa", "decoy")


async def demote(history: History) -> None:
    await history.grade("robin", "read")


async def remove(history: History) -> None:
    await history.grade("robin", "none")


async def dismiss(history: History) -> None:
    await history.dismiss("carl", "robin")


async def object_later(history: History) -> None:
    await history.review("robin", "REQUEST_CHANGES")


VOIDING = {
    "A01-push": push,
    "A01-push-and-back": push_and_back,
    "A01-base-moved-and-fails": failing_base,
    "A01-retarget": retarget,
    "A02-demoted": demote,
    "A02-removed": remove,
    "A03-dismissed": dismiss,
    "A03-changes-requested-later": object_later,
}


@pytest.mark.parametrize("lost", [False, True], ids=["heard", "unheard"])
@pytest.mark.parametrize("act", VOIDING.values(), ids=VOIDING.keys())
async def test_what_voids_an_approval(act: object, lost: bool, policies: Policies, tmp_path: Path, control: Control):
    async with playing(tmp_path / "control", policies=policies) as history:
        control(await asked_to_merge(history, await approved(history)), "left alone, it lands")
    async with playing(tmp_path / "attack", policies=policies) as history:
        digest = await approved(history)
        await act(history)  # type: ignore[operator]
        if lost:
            history.pending.clear()
        assert not await asked_to_merge(history, digest)
        history.races.clear()


async def test_a01_a_review_of_an_older_commit(policies: Policies, tmp_path: Path, control: Control):
    async with playing(tmp_path / "control", LandingMode.MERGE, policies=policies) as history:
        await approved(history)
        control(history.pull.merged, "a review of the head lands it")
    async with playing(tmp_path / "attack", LandingMode.MERGE, policies=policies) as history:
        old = history.pull.head_sha
        await push(history)
        await history.deliver_all()
        await history.review("robin", "APPROVE", old)
        await history.deliver_all()
        history.check()
        assert not history.pull.merged


async def test_a01_retarget_between_the_review_and_its_webhook(policies: Policies, tmp_path: Path):
    async with playing(tmp_path, LandingMode.MERGE, policies=policies) as history:
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.retarget("rosa", "decoy")
        await history.deliver_all()
        history.check()
        assert not history.pull.merged


@pytest.mark.parametrize(
    ("actor", "terms", "permission"),
    [
        (BOT, TERMS, Permission.WRITE),
        (Actor(UserId(77), "other[bot]", is_bot=True), TERMS, Permission.WRITE),
        (ADA, replace(TERMS, two_person=True, requester=ADA), Permission.WRITE),
        (ADA, TERMS, Permission.READ),
        (Actor(UserId(0), "ghost", is_bot=False), TERMS, Permission.NONE),
    ],
    ids=["A02-bot", "A02-other-bot", "A02-requester", "A02-reader", "A02-ghost"],
)
def test_who_cannot_approve(actor: Actor, terms: Terms, permission: Permission, control: Control):
    control(decide(approval(), snapshot(), TERMS).allowed, "a writer's approval counts")
    then = replace(approval(), reviewer=actor)
    now = snapshot(reviews=(review(actor),), permissions=((actor.login, permission),))
    assert not decide(then, now, terms).allowed


@pytest.mark.parametrize("state", [ReviewState.COMMENTED, ReviewState.PENDING, ReviewState.DISMISSED])
def test_a03_other_states_are_no_approval(state: ReviewState, control: Control):
    def made(said: ReviewMessage) -> object:
        return approval_from(snapshot(), said, received_at="", delivery=approval().delivery, policy_digest="policy-1")

    control(isinstance(made(message(state=ReviewState.APPROVED)), Approval), "an approving review is one")
    assert not isinstance(made(message(state=state)), Approval)


@pytest.mark.parametrize("way", [way for way in WAYS if way.name.startswith("A04")], ids=lambda way: way.name)
def test_who_else_has_to_approve(way: Way, control: Control):
    control(decide(way.then, snapshot(), TERMS).allowed, "where nobody else is asked for, it is allowed")
    assert not decide(way.then, way.now, way.terms).allowed


_ALLOWED_TO_DIFFER = {"received_at", "delivery", "base_sha", "permission"}


@pytest.mark.parametrize("name", [one.name for one in fields(Approval) if one.name not in _ALLOWED_TO_DIFFER])
def test_a05_any_field_flipped(name: str, control: Control):
    whole = approval(now=snapshot(flags=("lockfile",)), said=message(body="allow:lockfile"))
    terms = replace(TERMS, policy_digest=whole.policy_digest)
    control(decide(whole, snapshot(flags=("lockfile",)), terms).allowed, "untouched, it counts")
    for flipped in flips(getattr(whole, name)):
        changed: dict[str, Any] = {name: flipped}
        assert not decide(replace(whole, **changed), snapshot(flags=("lockfile",)), terms).allowed, flipped


def flips(value: object) -> list[object]:
    """The value with one thing wrong: each character of a text in turn."""
    if isinstance(value, str):
        return [value[:at] + ("1" if letter == "0" else "0") + value[at + 1 :] for at, letter in enumerate(value)]
    return [BOB if isinstance(value, Actor) else value + 1 if isinstance(value, int) else ()]


def test_a05_no_boundary_can_be_shifted():
    """Where the name of the base ends and the comparison begins is part of what is hashed."""
    whole = "main:100644 100644 a b M"
    assert len({digest_of(whole[:at], whole[at:].encode()) for at in range(len(whole))}) == len(whole)


async def test_a06_a07_the_head_changes_between_the_last_reading_and_the_merge(
    policies: Policies, tmp_path: Path, control: Control
):
    broken, mode, _ = MUTANTS[0]
    async with playing(tmp_path / "control", mode, policies=policies, mutant=broken) as history:
        history.races.append(Race("merge", lambda: push(history)))
        await approved(history)
        control(history.pull.merged, "without the guard, the swapped head lands")
    async with playing(tmp_path / "attack", LandingMode.MERGE, policies=policies) as history:
        history.races.append(Race("merge", lambda: push(history)))
        await approved(history)
        assert not history.pull.merged
        statuses = [one["status"] for one in history.stage.world.journal.entries(0) if one["path"].endswith("/merge")]
        assert statuses == [409]


async def test_a08_what_lands_elsewhere_or_otherwise_is_an_alarm(policies: Policies, tmp_path: Path, control: Control):
    async with playing(tmp_path / "control", LandingMode.MERGE, policies=policies) as history:
        await approved(history)
        control(history.pull.merged and not history.conductor.landed[-1].alarm, "undisturbed, it lands without alarm")
    async with playing(tmp_path / "attack", LandingMode.MERGE, policies=policies) as history:
        history.races.append(Race("merge", lambda: retarget(history)))
        await approved(history)
        history.check()
        assert history.conductor.landed[-1].alarm
        assert history.ending is not None
        assert history.ending.stage.value == "needs_human"


@pytest.mark.parametrize("named", ["", "allow:lockfile"], ids=["A09-not-named", "A09-another-named"])
def test_a_flag_that_is_not_named(named: str, control: Control):
    now = snapshot(flags=("gitattributes",))
    good = approval(now=now, said=message(body="allow:gitattributes"))
    control(decide(good, now, TERMS).allowed, "named, it counts")
    made = approval_from(
        now, message(body=named), received_at="", delivery=good.delivery, policy_digest=good.policy_digest
    )
    assert not isinstance(made, Approval)
    assert not decide(approval(), now, TERMS).allowed


async def test_a10_two_approvals_that_arrive_swapped(policies: Policies, tmp_path: Path, control: Control):
    """One approval for each of two changes, the later told first; then a third change, which nobody approved."""

    async def two_approvals(history: History) -> None:
        await history.review("robin", "APPROVE", history.pull.head_sha)
        first, history.pending = history.pending, []
        await push(history)
        pushed, history.pending = history.pending, []
        await history.review("robin", "APPROVE", history.pull.head_sha)
        history.pending = [*history.pending, *first, *pushed]

    async with playing(tmp_path / "control", LandingMode.MERGE, policies=policies) as history:
        await two_approvals(history)
        await history.deliver_all()
        history.check()
        control(history.pull.merged, "what the later approval was given for lands")
    async with playing(tmp_path / "attack", LandingMode.MERGE, policies=policies) as history:
        await two_approvals(history)
        told, history.pending = history.pending, []
        await history.push("rosa", {"feature.py": "good = 8\n"})
        history.pending = told
        await history.deliver_all()
        history.check()
        assert not history.pull.merged
