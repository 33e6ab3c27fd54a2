from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest

from bot.domain.action import Command, CommandMessage, Verb
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.event import ReviewState
from bot.domain.ids import CommentId, CommitId, DeliveryId, RepositoryId, ReviewId, TreeId
from bot.domain.pull import Approval, Owned, Permission, Snapshot
from bot.stages.approving import checks, texts
from bot.stages.approving.checks import Case, Check, Terms, weigh
from bot.stages.approving.gate import NO_REVIEW, approval_from, approval_from_command, decide, flags_in, keeps
from bot.stages.approving.quorum import CHECKS, standing, without_owner
from tests.unit.stages.approving.builders import (
    ADA,
    BOB,
    BOT,
    DIGEST,
    EVE,
    HEAD,
    HEAD_TREE,
    OTHER,
    TERMS,
    approval,
    digest,
    message,
    pull,
    review,
    snapshot,
    with_pull,
)
from tests.unit.stages.approving.ways import FINE, WAYS, Way

RECEIPT: dict[str, Any] = {
    "received_at": "2026-01-01T00:00:01Z",
    "delivery": DeliveryId("d"),
    "policy_digest": "policy-1",
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_way_in_which_something_else_would_land_is_caught(way: Way) -> None:
    decision = decide(way.then, way.now, way.terms)
    assert not decision.allowed
    assert decision.outcome is way.outcome
    assert way.rule in {reason.rule for reason in decision.against()}


@pytest.mark.parametrize("fine", FINE, ids=lambda fine: fine[0])
def test_what_is_fine_passes(fine: tuple[str, Snapshot, Approval, Terms]) -> None:
    _, now, then, terms = fine
    decision = decide(then, now, terms)
    assert decision.allowed, decision.against()


def test_without_an_approval_it_waits_and_says_what_to_type() -> None:
    decision = decide(None, snapshot(reviews=()), TERMS)
    assert decision.outcome is Outcome.WAITING
    assert [reason.rule for reason in decision.against()] == ["approval"]
    assert DIGEST[:12] in decision.against()[0].text


def test_without_an_approval_flags_wait_to_be_named() -> None:
    decision = decide(None, snapshot(flags=("workflows",)), TERMS)
    assert decision.outcome is Outcome.WAITING
    assert {reason.rule for reason in decision.against()} == {"approval", "flags"}


EVIDENCE = {"received_at", "delivery"}
"""Fields of the record that no reading of GitHub can confirm; the store keeps them append-only."""

OTHER_VALUES: dict[str, Any] = {
    "repository": RepositoryId(1),
    "pull_number": 8,
    "review_id": 12,
    "reviewer": BOB,
    "permission": Permission.READ,
    "flags": (),
}


@pytest.mark.parametrize("name", [field.name for field in fields(Approval) if field.name not in EVIDENCE])
def test_flipping_any_field_of_the_record_voids_it(name: str) -> None:
    """`base_sha` alone may differ: then the base moved, and the merge result has to have been tested."""
    now = snapshot(flags=("binary",), verified_trees=(TREE_OF_A_MOVED_BASE,) if name == "base_sha" else ())
    now = replace(now, verified_trees=now.verified_trees or (now.digest.head_tree,))
    record = approval(now, message(body="allow:binary"))
    if name != "base_sha":
        assert decide(record, now, TERMS).allowed
    flipped = replace(record, **{name: OTHER_VALUES.get(name, OTHER)})
    assert not decide(flipped, now, TERMS).allowed


TREE_OF_A_MOVED_BASE = TreeId("7" * 40)


# mutants: a gate with one check gone or weakened must let something through that a way above describes


def survivors(mutant: tuple[Check, ...]) -> list[str]:
    """The ways that the mutated gate lets land."""
    return [way.name for way in WAYS if weigh(Case(way.then, way.now, way.terms), mutant).allowed]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_gate_without_this_check_is_found_out(check: Check) -> None:
    assert survivors(tuple(other for other in CHECKS if other is not check))


def passes(rule: str, *, when: Callable[[Case], bool]) -> Check:
    def check(case: Case) -> Reason:
        return checks.say(rule, holds=when(case), yes="yes", no="no")

    return check


def then_of(case: Case) -> Approval:
    assert case.then is not None
    return case.then


MUTANTS: dict[str, tuple[str, Check]] = {
    "compares only the short digest": (
        "_digest",
        passes("digest", when=lambda c: then_of(c).digest[:12] == c.current.digest.value[:12]),
    ),
    "trusts the digest without the tree": (
        "_digest",
        passes("digest", when=lambda c: then_of(c).digest == c.current.digest.value),
    ),
    "takes GitHub's head without git's": (
        "_head",
        passes("head", when=lambda c: then_of(c).head_sha == c.current.digest.head),
    ),
    "ignores which commit the review was for": (
        "_head",
        passes("head", when=lambda c: then_of(c).head_sha == c.current.pull.head_sha == c.current.digest.head),
    ),
    "compares the base branch with itself": (
        "_base_branch",
        passes("base_branch", when=lambda c: c.current.digest.base_ref == c.current.pull.base_ref),
    ),
    "believes any approving review": (
        "_approved",
        passes("approval", when=lambda c: any(r.state is ReviewState.APPROVED for r in c.current.reviews)),
    ),
    "believes the recorded review without the later ones": (
        "_approved",
        passes(
            "approval",
            when=lambda c: any(
                (r.id, r.reviewer.id, r.state) == (then_of(c).review_id, then_of(c).reviewer.id, ReviewState.APPROVED)
                for r in c.current.reviews
            ),
        ),
    ),
    "takes a comment for the last word": (
        "_no_objection",
        passes(
            "no_objection",
            when=lambda c: (
                ReviewState.CHANGES_REQUESTED not in {r.reviewer.id: r.state for r in c.current.reviews}.values()
            ),
        ),
    ),
    "asks for the permission then, not now": (
        "_reviewer",
        passes("reviewer", when=lambda c: then_of(c).permission.can_write and not then_of(c).reviewer.is_bot),
    ),
    "takes one named flag for all": (
        "_flags",
        passes("flags", when=lambda c: not c.current.flags or bool(set(then_of(c).flags) & set(c.current.flags))),
    ),
    "takes a clean merge for a tested one": (
        "_verified",
        passes("verified", when=lambda c: c.current.merge_tree is not None),
    ),
    "takes the tested head for a tested result": (
        "_verified",
        passes("verified", when=lambda c: c.current.digest.head_tree in c.current.verified_trees),
    ),
    "counts every record as an approval": (
        "enough_approvals",
        passes("approvals", when=lambda c: 1 + len(c.terms.others) >= c.terms.approvals),
    ),
    "takes any approver for a code owner": (
        "code_owners",
        passes("code_owners", when=lambda c: not c.terms.code_owners or c.then is not None),
    ),
    "takes an unreadable file for an empty one": (
        "code_owners",
        passes(
            "code_owners",
            when=lambda c: (
                not c.terms.code_owners or not without_owner(c.current, standing(c.then, c.current, c.terms))
            ),
        ),
    ),
    "compares names instead of numbers": ("_same_pull", passes("same_pull", when=lambda c: c.current.pull.number == 7)),
    "lets merged pull requests through": (
        "is_open",
        passes("pull_open", when=lambda c: c.current.pull.open or c.current.pull.merged),
    ),
    "takes silence of the policy for consent": (
        "policy",
        passes(
            "policy",
            when=lambda c: (
                c.terms.policy_digest == then_of(c).policy_digest
                and (c.terms.policy is None or c.terms.policy.outcome is Outcome.PASSED)
            ),
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_gate_with_this_check_weakened_is_found_out(mutant: str) -> None:
    name, weak = MUTANTS[mutant]
    assert name in {check.__name__ for check in CHECKS}
    assert survivors(tuple(weak if check.__name__ == name else check for check in CHECKS))


def test_the_whole_gate_lets_none_of_them_land() -> None:
    assert survivors(CHECKS) == []


# the record


def refusal(outcome: Approval | Decision) -> set[str]:
    assert isinstance(outcome, Decision)
    assert not outcome.allowed
    return {reason.rule for reason in outcome.against()}


def test_a_review_becomes_the_record_of_what_stood_there() -> None:
    now = snapshot(flags=("binary",))
    record = approval(now, message(body="Good. allow:binary"))
    assert (record.review_commit, record.head_sha, record.base_ref) == (HEAD, HEAD, "main")
    assert (record.digest, record.merge_tree, record.flags) == (DIGEST, now.merge_tree, ("binary",))
    assert (record.permission, record.received_at, record.delivery) == (
        Permission.WRITE,
        "2026-01-01T00:00:01Z",
        "delivery-1",
    )


@pytest.mark.parametrize(
    ("said", "now", "rule"),
    [
        (message(state=ReviewState.COMMENTED), snapshot(), "review_state"),
        (message(state=ReviewState.CHANGES_REQUESTED), snapshot(), "review_state"),
        (message(state=ReviewState.PENDING), snapshot(), "review_state"),
        (message(commit_id=CommitId(OTHER)), snapshot(), "reviewed_commit"),
        (message(commit_id=None), snapshot(), "reviewed_commit"),
        (message(), snapshot(digest=digest(head=CommitId(OTHER))), "reviewed_commit"),
        (message(), with_pull(open=False), "pull_open"),
        (message(), with_pull(merged=True), "pull_open"),
        (message(), with_pull(head_repository=RepositoryId(1)), "head_repository"),
        (message(), with_pull(base_ref="other"), "base_branch"),
        (message(actor=EVE), snapshot(), "reviewer"),
        (message(actor=BOT), snapshot(permissions=((BOT.login, Permission.ADMIN),)), "reviewer"),
        (message(actor=replace(ADA, is_bot=True)), snapshot(), "reviewer"),
        (message(), with_pull(author=ADA), "reviewer"),
        (message(), snapshot(permissions=()), "reviewer"),
        (message(), snapshot(flags=("workflows",)), "flags"),
        (message(body="> allow:workflows"), snapshot(flags=("workflows",)), "flags"),
        (message(), snapshot(merge_tree=None), "merge"),
    ],
)
def test_what_is_no_approval_says_why(said, now: Snapshot, rule: str) -> None:
    assert rule in refusal(approval_from(now, said, **RECEIPT))


def test_whoever_has_to_name_a_flag_reads_which_files_it_is_about() -> None:
    about = tuple(Reason(name, Outcome.WAITING, f"{name}: `logo.png`: why") for name in ("binary", "symlink"))
    now = snapshot(flags=("binary", "symlink"), findings=about)
    refused = approval_from(now, message(body="allow:binary"), **RECEIPT)
    assert isinstance(refused, Decision)
    assert [reason.children for reason in refused.against()] == [about[1:]]
    assert "`logo.png`" in texts.comment(refused, digest=DIGEST)
    assert "`logo.png`" in texts.summary(refused, DIGEST)


def test_what_is_wrong_is_said_before_what_is_awaited() -> None:
    decision = decide(None, snapshot(reviews=(), verified_trees=(), failed_trees=(HEAD_TREE,)), TERMS)
    assert texts.title(decision).startswith("What would land, tree ")
    assert texts.next_steps(decision)[0].startswith("Push a correction")


def test_flags_named_earlier_count_too() -> None:
    outcome = approval_from(snapshot(flags=("binary",)), message(), **RECEIPT, flags=("binary",))
    assert isinstance(outcome, Approval)


def test_two_approvals_that_arrive_swapped_each_bind_to_their_own_commit() -> None:
    for_old = message(commit_id=CommitId(OTHER))
    assert refusal(approval_from(snapshot(), for_old, **RECEIPT)) == {"reviewed_commit"}


def typed(argument: str, verb: Verb = Verb.APPROVE, *flags: str, by=ADA) -> CommandMessage:
    return CommandMessage(by, Command(verb, argument, tuple(flags)), CommentId(1))


@pytest.mark.parametrize("argument", [DIGEST[:12], DIGEST, DIGEST[:12].upper(), f" {DIGEST[:20]} "])
def test_typing_the_digest_approves_the_change_it_names(argument: str) -> None:
    now = snapshot(reviews=(), flags=("binary",))
    record = approval_from_command(now, typed(argument, Verb.APPROVE, "allow:binary"), **RECEIPT)
    assert isinstance(record, Approval)
    assert record.review_id == NO_REVIEW
    assert decide(record, now, TERMS).allowed


@pytest.mark.parametrize("argument", ["", DIGEST[:11], "0" * 12, DIGEST + "0", DIGEST[:12] + " x", "main"])
def test_any_other_word_approves_nothing(argument: str) -> None:
    assert refusal(approval_from_command(snapshot(), typed(argument), **RECEIPT)) == {"typed_digest"}


def test_other_commands_and_other_people_approve_nothing() -> None:
    assert refusal(approval_from_command(snapshot(), typed(DIGEST, Verb.RUN), **RECEIPT)) == {"typed_digest"}
    assert refusal(approval_from_command(snapshot(), typed(DIGEST, by=EVE), **RECEIPT)) == {"reviewer"}


def test_a_typed_approval_falls_with_a_later_objection_of_the_same_person() -> None:
    record = approval_from_command(snapshot(reviews=()), typed(DIGEST), **RECEIPT)
    assert isinstance(record, Approval)
    later = snapshot(reviews=(review(state=ReviewState.CHANGES_REQUESTED),))
    assert not decide(record, later, TERMS).allowed


def test_flags_are_words_of_their_own() -> None:
    assert flags_in("allow:binary, allow:lockfile\nshallow:x allow:Nope http://allow:y\n> allow:quoted") == (
        "binary",
        "lockfile",
    )


def test_the_pull_request_is_named_in_the_decision() -> None:
    assert decide(approval(), snapshot(pull=pull()), TERMS).subject == "pull request #7"


# several approvals


BOTH = snapshot(reviews=(review(), review(BOB, id=501)))
BOBS = approval(BOTH, message(actor=BOB, review_id=ReviewId(501)))
TWO = replace(TERMS, approvals=2)


def test_two_people_are_two_approvals_and_one_person_twice_is_one() -> None:
    assert decide(approval(), BOTH, replace(TWO, others=(BOBS,))).allowed
    again = replace(approval(), review_id=ReviewId(500), received_at="later")
    decision = decide(approval(), BOTH, replace(TWO, others=(again,)))
    assert [reason.text for reason in decision.against()] == ["1 of 2 people have approved."]
    assert keeps(decision)


def test_an_approval_that_only_waits_for_others_is_kept_and_a_void_one_is_not() -> None:
    assert keeps(decide(approval(), BOTH, TWO))
    rule = Decision("p", (Reason("pay-needs-two", Outcome.REFUSED, "Two for pay."),))
    assert keeps(decide(approval(), BOTH, replace(TERMS, policy=rule)))
    assert not keeps(decide(approval(), BOTH, replace(TERMS, policy_digest="policy-2")))
    assert not keeps(decide(approval(), snapshot(reviews=()), TWO))


def test_only_rules_that_ask_for_others_wait_instead_of_forbidding() -> None:
    more = Reason("land-needs-more-approvals", Outcome.REFUSED, "More.")
    frozen = Reason("frozen", Outcome.REFUSED, "No.")
    assert decide(approval(), BOTH, replace(TERMS, policy=Decision("p", (more,)))).outcome is Outcome.WAITING
    assert decide(approval(), BOTH, replace(TERMS, policy=Decision("p", (more, frozen)))).outcome is Outcome.REFUSED


def test_the_gate_names_the_owners_that_are_needed_and_the_paths() -> None:
    owned = Owned(("@carl", "@shop/pay"), tuple(f"pay/{n}.py" for n in range(5)))
    decision = decide(None, snapshot(owned=(owned,), reviews=()), replace(TERMS, code_owners=True))
    texts = [reason.text for reason in decision.against() if reason.rule == "code_owners"]
    assert texts == [
        "Still needed: an approval by `@carl` or `@shop/pay` for `pay/0.py`, `pay/1.py`, `pay/2.py` and 2 more."
    ]
