"""Who has to have approved, beyond the one whose record is looked at: enough people, and code owners of what changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.decision import Outcome, Reason
from bot.domain.pull import Approval, Owned, Snapshot
from bot.stages.approving.checks import ALONE, PERSONAL, Case, Check, Terms, code, policy, say, weigh

_SHOWN_PATHS = 3
QUORUM = frozenset({"approvals", "code_owners"})


def standing(then: Approval | None, now: Snapshot, terms: Terms) -> tuple[Approval, ...]:
    """The approvals that hold by themselves now, one for each person, the one looked at first."""
    records = (*((then,) if then is not None else ()), *terms.others)
    found: dict[int, Approval] = {}
    for record in records:
        same_rules = terms.policy_digest in {None, record.policy_digest}
        if same_rules and weigh(Case(record, now, replace(terms, others=(), policy=None)), PERSONAL).allowed:
            found.setdefault(record.reviewer.id, record)
    return tuple(found.values())


def enough_approvals(case: Case) -> Reason | None:
    """As many people as the rules ask for; one is asked for anyway."""
    needed = case.terms.approvals
    given = len(standing(case.then, case.current, case.terms))
    if needed == 1:
        return None
    outcome = Outcome.PASSED if given >= needed else Outcome.WAITING
    return Reason("approvals", outcome, f"{given} of {needed} people have approved.")


def code_owners(case: Case) -> Reason | None:
    """Of each changed path that has code owners, by the base's own file, one has approved."""
    now = case.current
    if not case.terms.code_owners:
        return None
    if now.owners_fault:
        return Reason(
            "code_owners", Outcome.REFUSED, f"Nobody can tell who owns the changed paths: {now.owners_fault}."
        )
    missing = without_owner(now, standing(case.then, now, case.terms))
    lines = tuple(_needed(owned) for owned in missing)
    if len(lines) == 1:
        return lines[0]
    outcome = Outcome.REFUSED if any(line.outcome is Outcome.REFUSED for line in lines) else Outcome.WAITING
    if lines:
        return Reason("code_owners", outcome, "Code owners have to approve:", lines)
    return say("code_owners", holds=True, yes="A code owner approved each path that has some.", no="")


def without_owner(now: Snapshot, approvals: Iterable[Approval]) -> tuple[Owned, ...]:
    """The groups of changed paths of which none of these people is a code owner."""
    approved = {record.reviewer.login.lower() for record in approvals}
    return tuple(owned for owned in now.owned if not approved & set(owned.people))


def _needed(owned: Owned) -> Reason:
    who = " or ".join(code(owner) for owner in owned.owners)
    paths = ", ".join(code(path) for path in owned.paths[:_SHOWN_PATHS])
    more = len(owned.paths) - _SHOWN_PATHS
    text = f"Still needed: an approval by {who} for {paths}{f' and {more} more' if more > 0 else ''}."
    if owned.unknown:
        return Reason("code_owners", Outcome.REFUSED, f"{text} {owned.unknown}")
    return Reason("code_owners", Outcome.WAITING, text)


CHECKS: tuple[Check, ...] = (*ALONE, enough_approvals, code_owners, policy)
"""The whole gate."""
