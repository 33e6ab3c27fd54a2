"""The gate: would exactly the approved change land? Pure functions of two readings, then and now (design §7).

`approval_from` and `approval_from_command` are the only code that makes an `Approval` (design D15).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.action import CommandMessage, ReviewMessage, Verb
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import SHORT_DIGEST, CommitId, DeliveryId, Digest, ReviewId, short
from bot.domain.pull import Approval, Snapshot
from bot.stages.approving.checks import (
    NO_REVIEW,
    Case,
    Terms,
    code,
    flags_named,
    head_is_ours,
    is_open,
    may_approve,
    mergeable,
    say,
    weigh,
)
from bot.stages.approving.quorum import CHECKS, QUORUM, standing, without_owner

__all__ = [
    "NO_REVIEW",
    "QUORUM",
    "Rule",
    "Terms",
    "approval_from",
    "approval_from_command",
    "as_shown",
    "decide",
    "flags_in",
    "keeps",
    "standing",
    "without_owner",
]

_ALLOW = re.compile(r"(?<![\w:/])allow:([a-z][a-z0-9_]{0,39})\b")
_HEX = re.compile(rf"[0-9a-f]{{{SHORT_DIGEST},64}}")


Rule = Callable[[Approval | None, Snapshot, Terms], Decision]
"""What `decide` is; named so that tests can put a broken gate in its place and see it caught."""


@dataclass(frozen=True, slots=True)
class _Receipt:
    received_at: str
    delivery: DeliveryId
    policy_digest: str


def decide(then: Approval | None, now: Snapshot, terms: Terms | None = None) -> Decision:
    """Whether the pull request may be made ready or merged now. Without an approval it waits for one."""
    return weigh(Case(then, now, terms or Terms()), CHECKS)


def keeps(decision: Decision) -> bool:
    """Whether nothing is wrong with the approval itself: others have to approve too, or a rule about the change forbids it."""
    return all(
        reason.rule in QUORUM or (reason.rule == "policy" and bool(reason.children)) for reason in decision.against()
    )


@dataclass(frozen=True, slots=True)
class _Word:
    """Somebody's approval of a commit, before it is judged."""

    actor: Actor
    review_id: ReviewId
    commit: CommitId | None
    flags: tuple[str, ...]
    given: Reason
    base_ref: str


def approval_from(
    now: Snapshot,
    message: ReviewMessage,
    *,
    received_at: str,
    delivery: DeliveryId,
    policy_digest: str,
    flags: tuple[str, ...] = (),
) -> Approval | Decision:
    """The record of this review, or the reasons why it is not an approval of what stands there now.

    Flags named in the review (`allow:FLAG`) count, and so do those named before in `flags`.
    """
    given = say(
        "review_state",
        holds=message.state is ReviewState.APPROVED,
        yes="The review approves.",
        no=f"The review is {message.state.value}, not an approval.",
    )
    if message.command is not None and not now.digest.value.startswith(message.command.argument):
        text = f"The review names {short(message.command.argument)}, but the change is {short(now.digest.value)}."
        given = Reason("typed_digest", Outcome.REFUSED, text)
    named = tuple(sorted({*flags_in(message.body), *flags}))
    word = _Word(message.actor, message.review_id, message.commit_id, named, given, message.base_ref)
    return _record(now, word, _Receipt(received_at, delivery, policy_digest))


def as_shown(approval: Approval, shown: Digest) -> Approval | Decision:
    """A review stands for what its writer could see. Between a look and its webhook the base may have been rewritten."""
    if approval.digest == shown:
        return approval
    text = f"The change is {short(approval.digest)} now, but {short(shown)} was shown. Look at it and approve again."
    return Decision(f"approval by @{approval.reviewer.login}", (Reason("shown_digest", Outcome.REFUSED, text),))


def approval_from_command(
    now: Snapshot, message: CommandMessage, *, received_at: str, delivery: DeliveryId, policy_digest: str
) -> Approval | Decision:
    """The record of `/agent approve DIGEST`, or the reasons why not. What was approved is what the digest names."""
    typed = message.command.argument.strip().lower()
    right = _HEX.fullmatch(typed) is not None and now.digest.value.startswith(typed)
    given = say(
        "typed_digest",
        holds=right and message.command.verb in {Verb.APPROVE, Verb.MERGE},
        yes=f"The typed digest is the change's, {short(now.digest.value)}.",
        no=f"The change is {short(now.digest.value)}; that is what has to be typed.",
    )
    flags = tuple(sorted({flag.removeprefix("allow:") for flag in message.command.flags}))
    word = _Word(message.actor, NO_REVIEW, now.pull.head_sha, flags, given, now.digest.base_ref)
    return _record(now, word, _Receipt(received_at, delivery, policy_digest))


def flags_in(body: str) -> tuple[str, ...]:
    """The flags a review names with `allow:FLAG`; quoted lines do not count."""
    lines = (line for line in body.splitlines() if not line.lstrip().startswith(">"))
    return tuple(sorted({flag for line in lines for flag in _ALLOW.findall(line)}))


def _record(now: Snapshot, word: _Word, receipt: _Receipt) -> Approval | Decision:
    pull, digest = now.pull, now.digest
    case = Case(None, now, Terms())
    flags = flags_named(word.flags, now, waiting=True)
    who = may_approve(word.actor, now, Terms())
    reasons = (
        word.given,
        is_open(case),
        head_is_ours(case),
        _commit(now, word),
        _base(now, word),
        who,
        flags,
        mergeable(case),
    )
    decision = Decision(f"approval by @{word.actor.login}", reasons)
    if not decision.allowed or now.merge_tree is None or word.commit is None:
        return decision
    return Approval(
        repository=now.repository,
        pull_node_id=pull.node_id,
        pull_number=pull.number,
        review_id=word.review_id,
        reviewer=word.actor,
        permission=now.permission(word.actor.login),
        received_at=receipt.received_at,
        delivery=receipt.delivery,
        review_commit=word.commit,
        head_sha=pull.head_sha,
        base_ref=pull.base_ref,
        base_sha=pull.base_sha,
        merge_base=digest.merge_base,
        digest=digest.value,
        head_tree=digest.head_tree,
        merge_tree=now.merge_tree,
        policy_digest=receipt.policy_digest,
        flags=word.flags,
    )


def _base(now: Snapshot, word: _Word) -> Reason:
    """The review was given for the branch that was compared: a retarget in between makes it another change."""
    ref = now.pull.base_ref
    return say(
        "base_branch",
        holds=word.base_ref == now.digest.base_ref == ref,
        yes=f"The base branch is {code(ref)}.",
        no=f"The base branch is {code(ref)}, but {code(word.base_ref or 'none')} was reviewed. Approve again for this one.",
    )


def _commit(now: Snapshot, word: _Word) -> Reason:
    head = now.pull.head_sha
    seen = short(word.commit) if word.commit else "no commit"
    return say(
        "reviewed_commit",
        holds=word.commit == head == now.digest.head,
        yes=f"The review is for the head, {short(head)}.",
        no=f"The review is for {seen}, but the head is {short(head)}. Look at what changed and approve again.",
    )
