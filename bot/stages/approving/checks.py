"""What the gate looks at, one function per question; each answers with one reason.

specs/github.md §3.3 lists how merged content can differ from approved content; every check below closes some of those ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import ReviewId, UserId, short
from bot.domain.pull import Approval, Review, Snapshot

NO_REVIEW = ReviewId(0)
"""Stands for a review where there is none: the approval was given by typing the digest in a comment."""

_DECIDING = frozenset({ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED, ReviewState.DISMISSED})


@dataclass(frozen=True, slots=True)
class Terms:
    """What the operator asks of an approval, and what the policy engine said about landing this change now.

    Without a `policy_digest` the record's own is not compared.
    """

    policy_digest: str | None = None
    requester: Actor | None = None
    two_person: bool = False
    policy: Decision | None = None
    others: tuple[Approval, ...] = ()
    """Records of other people's approvals; each counts only if it holds by itself (`quorum.standing`)."""
    approvals: int = 1
    code_owners: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """What the gate decides on."""

    then: Approval | None
    current: Snapshot
    terms: Terms


Check = Callable[[Case], Reason | None]
"""None: the rules do not ask for it here."""


def weigh(case: Case, checks: Sequence[Check]) -> Decision:
    """The decision of these checks."""
    return Decision(
        f"pull request #{case.current.pull.number}",
        tuple(reason for check in checks if (reason := check(case)) is not None),
    )


def say(rule: str, *, holds: bool, yes: str, no: str) -> Reason:
    """A reason that passes or refuses."""
    return Reason(rule, Outcome.PASSED if holds else Outcome.REFUSED, yes if holds else no)


def code(name: str) -> str:
    """A name from outside as it may stand in a sentence: it formats nothing and calls nobody."""
    return f"`{name.replace('`', chr(39))}`"


def is_open(case: Case) -> Reason:
    """Neither closed nor merged."""
    pull = case.current.pull
    if pull.merged:
        return Reason("pull_open", Outcome.REFUSED, "The pull request is merged already.")
    return say("pull_open", holds=pull.open, yes="The pull request is open.", no="The pull request is closed.")


def _same_pull(case: Case) -> Reason:
    then, pull = case.then, case.current.pull
    same = then is None or (
        (then.repository, then.pull_node_id, then.pull_number) == (case.current.repository, pull.node_id, pull.number)
    )
    no = "The approval belongs to another repository or pull request."
    return say("same_pull", holds=same, yes="Repository and pull request are the approved ones.", no=no)


def head_is_ours(case: Case) -> Reason:
    """No fork: the branch stands where only people of this repository write."""
    ours = case.current.pull.head_repository == case.current.repository
    no = "The branch is in another repository."
    return say("head_repository", holds=ours, yes="The branch is in this repository.", no=no)


def _head(case: Case) -> Reason:
    then, pull = case.then, case.current.pull
    if case.current.digest.head != pull.head_sha:
        read = f"GitHub names {short(pull.head_sha)} as head, but {short(case.current.digest.head)} was compared. Read again."
        return Reason("head", Outcome.REFUSED, read)
    same = then is None or then.review_commit == then.head_sha == pull.head_sha
    no = f"The head is {short(pull.head_sha)} now; the review was for {short(then.review_commit) if then else ''}."
    return say("head", holds=same, yes=f"The head is {short(pull.head_sha)}, as reviewed.", no=no)


def _base_branch(case: Case) -> Reason:
    then, now = case.then, case.current
    same = now.digest.base_ref == now.pull.base_ref and (then is None or then.base_ref == now.pull.base_ref)
    approved = then.base_ref if then else now.digest.base_ref
    no = f"The base branch is {code(now.pull.base_ref)} now; approved was {code(approved)}."
    return say("base_branch", holds=same, yes=f"The base branch is {code(now.pull.base_ref)}.", no=no)


def _merge_base(case: Case) -> Reason:
    then, now = case.then, case.current
    same = then is None or then.merge_base == now.digest.merge_base
    no = f"The change starts from {short(now.digest.merge_base)} now; approved was {short(then.merge_base) if then else ''}."
    return say("merge_base", holds=same, yes=f"The change starts from {short(now.digest.merge_base)}.", no=no)


def _digest(case: Case) -> Reason:
    then, now = case.then, case.current
    same = then is None or (then.digest, then.head_tree) == (now.digest.value, now.digest.head_tree)
    no = f"The change is {short(now.digest.value)} now; approved was {short(then.digest) if then else ''}."
    return say("digest", holds=same, yes=f"The change is {short(now.digest.value)}.", no=no)


def _approved(case: Case) -> Reason:
    then = case.then
    if then is None:
        text = f"Waiting for a review: Approve, or `/agent approve {short(case.current.digest.value)}`."
        return Reason("approval", Outcome.WAITING, text)
    by = f"by @{then.reviewer.login}"
    if then.review_id != NO_REVIEW:
        recorded = next((review for review in case.current.reviews if review.id == then.review_id), None)
        if recorded is None or recorded.reviewer.id != then.reviewer.id or recorded.state is not ReviewState.APPROVED:
            return Reason("approval", Outcome.REFUSED, f"The approval {by} does not stand any more.")
    last = latest(case.current.reviews).get(then.reviewer.id)
    stands = last is None if then.review_id == NO_REVIEW else last is not None
    if last is not None:
        stands = last.state is ReviewState.APPROVED
    return say("approval", holds=stands, yes=f"Approved {by}.", no=f"The approval {by} was taken back.")


def latest(reviews: Sequence[Review]) -> dict[UserId, Review]:
    """Each reviewer's standing word: the last review that approves, asks for changes or was dismissed."""
    return {review.reviewer.id: review for review in reviews if review.state in _DECIDING}


def _no_objection(case: Case) -> Reason:
    against = sorted(
        review.reviewer.login
        for review in latest(case.current.reviews).values()
        if review.state is ReviewState.CHANGES_REQUESTED and case.current.permission(review.reviewer.login).can_write
    )
    no = f"Changes are requested by {', '.join(f'@{login}' for login in against)}."
    return say("no_objection", holds=not against, yes="Nobody asks for changes.", no=no)


def _reviewer(case: Case) -> Reason:
    if case.then is None:
        return Reason("reviewer", Outcome.PASSED, "Nobody has approved yet.")
    return may_approve(case.then.reviewer, case.current, case.terms)


def may_approve(actor: Actor, now: Snapshot, terms: Terms) -> Reason:
    """Whether this person's word counts: a person, not the bot, not the author, able to write now."""
    who = f"@{actor.login}"
    wrong = ""
    if actor.is_bot or actor.id == now.bot.id:
        wrong = f"{who} is not a person."
    elif actor.id == now.pull.author.id:
        wrong = f"{who} is the author of the pull request."
    elif not now.permission(actor.login).can_write:
        wrong = f"{who} has no write permission."
    elif terms.two_person and terms.requester is not None and actor.id == terms.requester.id:
        wrong = f"{who} asked for this change; here a second person has to approve."
    return say("reviewer", holds=not wrong, yes=f"{who} may approve.", no=wrong)


def _permission_then(case: Case) -> Reason:
    could = case.then is None or (case.then.permission.can_write and not case.then.reviewer.is_bot)
    no = "The approval was given without write permission."
    return say("permission_then", holds=could, yes="The approval was given with write permission.", no=no)


def _flags(case: Case) -> Reason:
    if case.then is None:
        return flags_named((), case.current, waiting=True)
    return flags_named(case.then.flags, case.current, waiting=False)


def flags_named(named: Sequence[str], now: Snapshot, *, waiting: bool) -> Reason:
    """Whether the reviewer named everything in the change that must be named; if not, in which files it is."""
    needed = now.flags
    missing = sorted(set(needed) - set(named))
    if not needed:
        return Reason("flags", Outcome.PASSED, "Nothing in the change has to be named.")
    if not missing:
        return Reason("flags", Outcome.PASSED, f"The reviewer named {', '.join(sorted(needed))}.")
    words = " ".join(f"allow:{flag}" for flag in missing)
    text = f"The change touches {', '.join(missing)}. A reviewer who agrees writes `{words}` in the approval."
    outcome = Outcome.WAITING if waiting else Outcome.REFUSED
    return Reason("flags", outcome, text, tuple(each for each in now.findings if each.rule in missing))


def mergeable(case: Case) -> Reason:
    """No conflict, by git's own merge; and with the same base, the approved result."""
    then, now = case.then, case.current
    if now.merge_tree is None:
        return Reason("merge", Outcome.REFUSED, f"The change conflicts with {code(now.pull.base_ref)}.")
    still = then is None or then.base_sha != now.pull.base_sha or then.merge_tree == now.merge_tree
    no = "The base is the same, but the merge gives another tree than was approved."
    return say("merge", holds=still, yes=f"It merges cleanly as tree {short(now.merge_tree)}.", no=no)


def base_moved(then: Approval | None, now: Snapshot) -> bool:
    """Whether what lands is more than the head: the base has commits that the tested head does not have."""
    return now.pull.base_sha != now.digest.merge_base or (then is not None and then.base_sha != now.pull.base_sha)


def _verified(case: Case) -> Reason:
    now = case.current
    if now.merge_tree is not None and now.merge_tree in now.verified_trees:
        return Reason(
            "verified", Outcome.PASSED, f"Tree {short(now.merge_tree)}, which would land, passed every check."
        )
    if now.merge_tree is not None and now.merge_tree in now.failed_trees:
        text = f"What would land, tree {short(now.merge_tree)}, does not pass the checks."
        return Reason("verified", Outcome.REFUSED, text)
    if base_moved(case.then, now):
        text = f"{code(now.pull.base_ref)} moved on; the checks have not run on the merge result yet."
        return Reason("verified", Outcome.WAITING, text)
    if now.digest.head_tree in now.verified_trees:
        return Reason("verified", Outcome.PASSED, f"Tree {short(now.digest.head_tree)} passed every check.")
    if now.digest.head_tree in now.failed_trees:
        text = f"Tree {short(now.digest.head_tree)} does not pass the checks."
        return Reason("verified", Outcome.REFUSED, text)
    return Reason("verified", Outcome.WAITING, f"Tree {short(now.digest.head_tree)} has not been checked yet.")


_PATIENT = frozenset({"land-needs-more-approvals", "land-needs-code-owners"})
"""Rules that only ask for somebody else's approval, too."""


def policy(case: Case) -> Reason:
    then, terms = case.then, case.terms
    if then is not None and terms.policy_digest not in {None, then.policy_digest}:
        return Reason("policy", Outcome.REFUSED, "The rules changed since the approval.")
    if terms.policy is None:
        return Reason("policy", Outcome.PASSED, "The rules are those of the approval.")
    texts = {
        Outcome.PASSED: "The rules allow it.",
        Outcome.WAITING: "The rules ask for more.",
        Outcome.REFUSED: "The rules forbid it.",
    }
    outcome = Outcome.REFUSED if not terms.policy.reasons else terms.policy.outcome
    if outcome is Outcome.REFUSED and {reason.rule for reason in terms.policy.reasons} <= _PATIENT:
        outcome = Outcome.WAITING if terms.policy.reasons else outcome
    return Reason("policy", outcome, texts[outcome], terms.policy.reasons)


ALONE: tuple[Check, ...] = (
    is_open,
    _same_pull,
    head_is_ours,
    _head,
    _base_branch,
    _merge_base,
    _digest,
    _approved,
    _no_objection,
    _reviewer,
    _permission_then,
    _flags,
    mergeable,
    _verified,
)
"""What has to hold of the pull request and of the approval that is looked at."""

PERSONAL: tuple[Check, ...] = (
    _same_pull,
    _head,
    _base_branch,
    _merge_base,
    _digest,
    _approved,
    _reviewer,
    _permission_then,
    _flags,
)
"""What has to hold of each approval that counts."""
