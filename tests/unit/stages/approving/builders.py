"""A pull request that everything is right with, at the approval and now; tests change one thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bot.domain.action import ReviewMessage
from bot.domain.change import ChangeDigest
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import CommitId, DeliveryId, Digest, NodeId, RepositoryId, ReviewId, TreeId, UserId
from bot.domain.pull import Approval, Permission, PullRequest, Review, Snapshot
from bot.stages.approving.checks import Terms
from bot.stages.approving.gate import approval_from

ADA = Actor(UserId(1), "ada", is_bot=False)
BOB = Actor(UserId(2), "bob", is_bot=False)
EVE = Actor(UserId(3), "eve", is_bot=False)
BOT = Actor(UserId(99), "pullwright[bot]", is_bot=True)

HEAD, BASE = CommitId("a" * 40), CommitId("b" * 40)
HEAD_TREE, BASE_TREE = TreeId("c" * 40), TreeId("d" * 40)
DIGEST = Digest("1234567890ab" + "e" * 52)
OTHER = "f" * 40
TERMS = Terms(policy_digest="policy-1", requester=BOB)


def pull(**changes: Any) -> PullRequest:
    plain = PullRequest(
        number=7,
        node_id=NodeId("PR_7"),
        open=True,
        draft=True,
        merged=False,
        author=BOT,
        head_ref="pullwright/7-fix",
        head_sha=HEAD,
        head_repository=RepositoryId(42),
        base_ref="main",
        base_sha=BASE,
        mergeable=True,
        title="Fix it",
        body="",
        url="https://example.org/pull/7",
    )
    return replace(plain, **changes)


def review(by: Actor = ADA, state: ReviewState = ReviewState.APPROVED, *, id: int = 500) -> Review:  # noqa: A002
    return Review(ReviewId(id), by, state, HEAD, "2026-01-01T00:00:00Z")


def digest(**changes: Any) -> ChangeDigest:
    return replace(ChangeDigest(DIGEST, "main", BASE, HEAD, BASE_TREE, HEAD_TREE), **changes)


def snapshot(**changes: Any) -> Snapshot:
    plain = Snapshot(
        repository=RepositoryId(42),
        pull=pull(),
        reviews=(review(),),
        permissions=(("ada", Permission.WRITE), ("bob", Permission.WRITE), ("eve", Permission.READ)),
        digest=digest(),
        merge_tree=HEAD_TREE,
        bot=BOT,
        verified_trees=(HEAD_TREE,),
    )
    return replace(plain, **changes)


def with_pull(**changes: Any) -> Snapshot:
    return snapshot(pull=pull(**changes))


def message(**changes: Any) -> ReviewMessage:
    return replace(ReviewMessage(ADA, ReviewId(500), ReviewState.APPROVED, HEAD, "Looks right.", "main"), **changes)


def approval(now: Snapshot | None = None, said: ReviewMessage | None = None) -> Approval:
    made = approval_from(
        now or snapshot(),
        said or message(),
        received_at="2026-01-01T00:00:01Z",
        delivery=DeliveryId("delivery-1"),
        policy_digest="policy-1",
    )
    assert isinstance(made, Approval), made
    return made
