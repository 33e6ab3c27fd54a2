"""The ways of specs/github.md §3.3 in which merged content can differ from approved content, where the gate can see them.

Each is (approval, what stands there now, terms, the rule that catches it). Not decidable from two readings, and caught elsewhere:
2 push between gate and merge (`sha` guard of the merge call), 10 message from title and body (landing passes its own),
17 view that ignores white space (the digest ignores no white space), 20 somebody else's merge afterwards (landing compares).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.event import ReviewState
from bot.domain.ids import CommitId, Digest, NodeId, RepositoryId, ReviewId, TreeId
from bot.domain.pull import Approval, Owned, Permission, Snapshot
from bot.stages.approving.checks import Terms
from tests.unit.stages.approving.builders import (
    ADA,
    BASE,
    BOB,
    BOT,
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

MOVED = CommitId(OTHER)
MERGED_TREE = TreeId("9" * 40)
NEAR = Digest("1234567890ab" + "0" * 52)
"""Another digest that begins like the approved one."""


@dataclass(frozen=True)
class Way:
    """What is different now, and which rule has to catch it."""

    name: str
    rule: str
    now: Snapshot
    then: Approval = field(default_factory=approval)
    terms: Terms = TERMS
    outcome: Outcome = Outcome.REFUSED


def flagged(way: int, *flags: str) -> Way:
    named = approval(said=message(body="fine, allow:lockfile"))
    return Way(f"{way} not named: {', '.join(flags)}", "flags", snapshot(flags=flags), then=named)


def another(way: str, **changes: object) -> Way:
    return Way(way, "digest", snapshot(digest=digest(**changes)))


def reviews_now(name: str, rule: str, *reviews: object, **permissions: Permission) -> Way:
    known = {"ada": Permission.WRITE, "bob": Permission.WRITE, **permissions}
    return Way(name, rule, snapshot(reviews=reviews, permissions=tuple(known.items())))


PAY = Owned(("@bob", "@shop/pay"), ("pay/rates.py",))
OWNERS = replace(TERMS, code_owners=True)
BOBS = replace(approval(), reviewer=BOB, review_id=ReviewId(501))

WAYS: tuple[Way, ...] = (
    Way("1 a new push", "head", snapshot(pull=pull(head_sha=MOVED), digest=digest(head=MOVED))),
    Way("1 a push that GitHub tells of before git has it", "head", with_pull(head_sha=MOVED)),
    Way(
        "3 the review was for a head that is not the recorded one",
        "head",
        snapshot(),
        replace(approval(), review_commit=MOVED),
    ),
    Way("4 force-push with the same content", "head", snapshot(pull=pull(head_sha=MOVED), digest=digest(head=MOVED))),
    Way("5 base retargeted", "base_branch", snapshot(pull=pull(base_ref="release"), digest=digest(base_ref="release"))),
    Way("5 base retargeted, digest of the old one", "base_branch", with_pull(base_ref="release")),
    Way(
        "6 base moved, merge result not tested",
        "verified",
        snapshot(pull=pull(base_sha=MOVED), merge_tree=MERGED_TREE),
        outcome=Outcome.WAITING,
    ),
    Way(
        "6 base moved back to the tested tree's base, result differs",
        "merge",
        snapshot(merge_tree=MERGED_TREE, verified_trees=(HEAD_TREE, MERGED_TREE)),
    ),
    Way(
        "7 merge base changed",
        "merge_base",
        snapshot(
            pull=pull(base_sha=MOVED),
            digest=digest(merge_base=MOVED),
            merge_tree=HEAD_TREE,
            verified_trees=(HEAD_TREE,),
        ),
    ),
    another("8 base merged into head with an extra edit", value=Digest("2" * 64)),
    another("8 a digest that begins like the approved one", value=NEAR),
    another("9 other tree under the same digest", head_tree=TreeId(OTHER)),
    flagged(11, "gitattributes"),
    flagged(12, "binary", "lockfile"),
    flagged(13, "gitmodules"),
    flagged(14, "lfs_pointer"),
    flagged(15, "symlink"),
    flagged(15, "executable"),
    another("16 a rename with edits", value=Digest("3" * 64)),
    flagged(18, "hidden_characters"),
    Way("19 tree that failed a check", "verified", snapshot(verified_trees=(), failed_trees=(HEAD_TREE,))),
    Way(
        "19 tree that has not been checked",
        "verified",
        snapshot(verified_trees=(TreeId(OTHER),)),
        outcome=Outcome.WAITING,
    ),
    Way(
        "6 base moved, what would land fails a check",
        "verified",
        snapshot(pull=pull(base_sha=MOVED), merge_tree=MERGED_TREE, failed_trees=(MERGED_TREE,)),
    ),
    Way("20 merged by somebody else", "pull_open", with_pull(open=False, merged=True)),
    reviews_now("21 reviewer lost the permission", "reviewer", review(), ada=Permission.READ),
    reviews_now("21 reviewer was removed", "reviewer", review(), ada=Permission.NONE),
    reviews_now("21 review dismissed", "approval", review(state=ReviewState.DISMISSED)),
    reviews_now("21 review gone", "approval"),
    reviews_now("21 another review under the same id", "approval", review(BOB)),
    reviews_now(
        "21 the reviewer asks for changes later",
        "approval",
        review(),
        review(state=ReviewState.CHANGES_REQUESTED, id=501),
        ada=Permission.WRITE,
    ),
    reviews_now(
        "21 the reviewer's later approval dismissed", "approval", review(), review(state=ReviewState.DISMISSED, id=501)
    ),
    reviews_now(
        "21 somebody else who may write asks for changes",
        "no_objection",
        review(),
        review(BOB, ReviewState.CHANGES_REQUESTED, id=501),
    ),
    reviews_now(
        "21 a comment does not withdraw an objection",
        "no_objection",
        review(BOB, ReviewState.CHANGES_REQUESTED, id=499),
        review(),
        review(BOB, ReviewState.COMMENTED, id=501),
    ),
    Way(
        "22 same name, other repository",
        "same_pull",
        snapshot(repository=RepositoryId(43), pull=pull(head_repository=RepositoryId(43))),
    ),
    Way("22 same number, other pull request", "same_pull", with_pull(node_id=NodeId("PR_8"))),
    Way("22 other number", "same_pull", with_pull(number=8)),
    Way("22 head in a fork", "head_repository", with_pull(head_repository=RepositoryId(7))),
    Way("22 head repository deleted", "head_repository", with_pull(head_repository=None)),
    flagged(23, "workflows"),
    Way(
        "24 stacked: the base is another branch",
        "base_branch",
        snapshot(pull=pull(base_ref="stack"), digest=digest(base_ref="stack")),
    ),
    Way("25 closed", "pull_open", with_pull(open=False)),
    Way("A02 approver is the bot", "reviewer", snapshot(), replace(approval(), reviewer=replace(ADA, id=BOT.id))),
    Way("A02 approver is another bot", "reviewer", snapshot(), replace(approval(), reviewer=replace(ADA, is_bot=True))),
    Way("A02 approver is the author", "reviewer", with_pull(author=ADA)),
    Way(
        "A02 approver is the requester where two are asked",
        "reviewer",
        snapshot(),
        terms=replace(TERMS, requester=ADA, two_person=True),
    ),
    Way(
        "A02 approved without permission then",
        "permission_then",
        snapshot(),
        replace(approval(), permission=Permission.READ),
    ),
    Way("A05 the rules changed", "policy", snapshot(), terms=replace(TERMS, policy_digest="policy-2")),
    Way(
        "the policy forbids",
        "policy",
        snapshot(),
        terms=replace(TERMS, policy=Decision("p", (Reason("frozen", Outcome.REFUSED, "No landing on Fridays."),))),
    ),
    Way("the policy says nothing", "policy", snapshot(), terms=replace(TERMS, policy=Decision("p", ()))),
    Way(
        "A04 a code owner is missing",
        "code_owners",
        snapshot(owned=(PAY, Owned(("@ada",), ("a.py",), ("ada",)))),
        terms=OWNERS,
        outcome=Outcome.WAITING,
    ),
    Way(
        "A04 the code owner's approval is for another head",
        "code_owners",
        snapshot(owned=(replace(PAY, people=("bob",)),), reviews=(review(), review(BOB, id=501))),
        terms=replace(OWNERS, others=(replace(BOBS, head_sha=MOVED),)),
        outcome=Outcome.WAITING,
    ),
    Way(
        "A04 whether the approver is an owner cannot be told",
        "code_owners",
        snapshot(owned=(replace(PAY, unknown="`@shop/pay`: the App may not read it."),)),
        terms=OWNERS,
    ),
    Way("A04 the file cannot be read", "code_owners", snapshot(owners_fault="`CODEOWNERS`, line 3: no"), terms=OWNERS),
    Way(
        "A04 one approval where two are asked for",
        "approvals",
        snapshot(),
        terms=replace(TERMS, approvals=2),
        outcome=Outcome.WAITING,
    ),
    Way(
        "A04 the second approval was taken back",
        "approvals",
        snapshot(reviews=(review(), review(BOB, ReviewState.DISMISSED, id=501))),
        terms=replace(TERMS, approvals=2, others=(BOBS,)),
        outcome=Outcome.WAITING,
    ),
    Way("conflict", "merge", snapshot(merge_tree=None)),
)

FINE: tuple[tuple[str, Snapshot, Approval, Terms], ...] = (
    ("nothing changed", snapshot(), approval(), TERMS),
    ("no longer a draft", with_pull(draft=False), approval(), TERMS),
    (
        "base moved and the result was tested",
        snapshot(pull=pull(base_sha=MOVED), merge_tree=MERGED_TREE, verified_trees=(HEAD_TREE, MERGED_TREE)),
        approval(),
        TERMS,
    ),
    (
        "GitHub bound the review to another commit, which is not looked at",
        snapshot(reviews=(replace(review(), commit_id=None),)),
        approval(),
        TERMS,
    ),
    (
        "a reader asks for changes",
        snapshot(reviews=(review(), review(replace(BOB, login="eve"), ReviewState.CHANGES_REQUESTED, id=2))),
        approval(),
        TERMS,
    ),
    (
        "an objection that became an approval",
        snapshot(reviews=(review(BOB, ReviewState.CHANGES_REQUESTED, id=2), review(), review(BOB, id=3))),
        approval(),
        TERMS,
    ),
    (
        "an objection that was dismissed",
        snapshot(reviews=(review(), review(BOB, ReviewState.DISMISSED, id=2))),
        approval(),
        TERMS,
    ),
    ("approved twice", snapshot(reviews=(review(), review(id=501))), approval(), TERMS),
    (
        "commented after approving",
        snapshot(reviews=(review(), review(state=ReviewState.COMMENTED, id=501))),
        approval(),
        TERMS,
    ),
    (
        "the requester approves where one person is enough",
        snapshot(),
        approval(),
        replace(TERMS, requester=ADA),
    ),
    (
        "every flag was named",
        snapshot(flags=("workflows", "binary")),
        approval(said=message(body="I read it.\nallow:workflows allow:binary")),
        TERMS,
    ),
    ("more flags named than needed", snapshot(), approval(said=message(body="allow:symlink")), TERMS),
    (
        "the policy allows",
        snapshot(),
        approval(),
        replace(TERMS, policy=Decision("p", (Reason("ok", Outcome.PASSED, "Fine."),))),
    ),
    (
        "a code owner approved, the newest approval is by somebody else",
        snapshot(owned=(replace(PAY, people=("bob",)),), reviews=(review(BOB, id=501), review())),
        approval(),
        replace(OWNERS, others=(BOBS,)),
    ),
    ("code owners are not asked for", snapshot(owned=(PAY,), owners_fault="no"), approval(), TERMS),
    (
        "two approvals where two are asked for",
        snapshot(reviews=(review(BOB, id=501), review())),
        approval(),
        replace(TERMS, approvals=2, others=(BOBS,)),
    ),
    ("policy digest unknown to the caller", snapshot(), approval(), replace(TERMS, policy_digest=None)),
    ("approved by typing the digest", snapshot(reviews=()), replace(approval(), review_id=ReviewId(0)), TERMS),
)

assert BASE != HEAD
