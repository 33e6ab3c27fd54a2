"""A12-A14: our own log of approvals against what people may do now and what landed; commits of others on the bot's branches. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from bot.audit.facts import ApprovalFacts, RepositoryFacts, Snapshot
from bot.audit.findings import Finding, Severity, unknown, unread

_BACK = timedelta(minutes=5)
_WRITERS = frozenset({"admin", "write"})
_GITHUB = "web-flow"


def check_branches(snapshot: Snapshot) -> Iterator[Finding]:
    """A12: who wrote on branches of the bot, and whether what landed is what was approved."""
    for facts in snapshot.repositories.value:
        yield from unread("A12", f"{facts.name}:{snapshot.operator.branch_prefix}**", facts.branches)
        yield from _strangers(facts, snapshot.operator.bot)
    for one in _records(snapshot):
        yield from _landed(one)


def _strangers(facts: RepositoryFacts, bot: str) -> Iterator[Finding]:
    for one in facts.branches.value:
        where = f"{facts.name}:{one.branch.name}"
        yield from unread("A12", where, one.commits)
        for commit in one.commits.value:
            others = {commit.author or "nobody GitHub knows", commit.committer or "nobody GitHub knows"}
            others -= {name for name in others if name.lower() in {bot.lower(), _GITHUB}}
            if others:
                evidence = f"commit {commit.id[:12]} is by {' and '.join(sorted(others))}"
                yield Finding(
                    "A12", Severity.MEDIUM, where, evidence, "Ask who pushed it; the change needs a review as a whole."
                )


def _landed(one: ApprovalFacts) -> Iterator[Finding]:
    if not one.row.landed:
        return
    approval = one.row.approval
    where = f"{one.repository}#{approval.pull_number}"
    if one.since.fault:
        yield unknown("A12", where, one.since.fault)
    elif approval.merge_tree not in {commit.tree for commit in one.since.value}:
        yield Finding(
            "A12",
            Severity.HIGH,
            where,
            f"no commit of {approval.base_ref} since the approval has the approved tree {approval.merge_tree[:12]}",
            "Compare what was merged with the approved change.",
        )


def check_approvals(snapshot: Snapshot) -> Iterator[Finding]:
    """A13: approvals by people who may no longer write, or who asked for the work themselves."""
    for one in _records(snapshot):
        approval = one.row.approval
        where, who = f"{one.repository}#{approval.pull_number}", approval.reviewer.login
        if one.permission.value is None:
            yield unknown("A13", f"{where}, {who}", one.permission.fault or "GitHub did not say")
        elif one.permission.value not in _WRITERS:
            evidence = f"{who} approved it and has {one.permission.value} there now"
            yield Finding("A13", Severity.MEDIUM, where, evidence, "Have somebody else look at what landed.")
        if approval.reviewer.id == one.row.requester.id:
            evidence = f"{who} asked for the work and approved it"
            yield Finding(
                "A13",
                Severity.LOW,
                where,
                evidence,
                "`two_person = true` in policies/limits.toml asks for another person.",
            )


def check_log(snapshot: Snapshot) -> Iterator[Finding]:
    """A14: the chain of approvals, landed tasks that are missing in it, and a clock that went back."""
    if snapshot.records is None:
        return
    yield from unread("A14", "store", snapshot.records)
    records = snapshot.records.value
    if records.broken_at is not None:
        evidence = f"row {records.broken_at} does not follow from those before it: one was changed or taken out"
        yield Finding(
            "A14",
            Severity.HIGH,
            "log of approvals",
            evidence,
            "Restore the database from before, and find out who wrote to it.",
        )
    for task in records.landed_without:
        yield Finding(
            "A14",
            Severity.HIGH,
            task,
            "landed, and the log has no approval of it",
            "Find out who merged it past the gate.",
        )
    for before, after in _jumps(records.received):
        evidence = f"{after} was stored after {before}: the clock went back"
        yield Finding("A14", Severity.LOW, "deliveries", evidence, "Keep this machine's clock by NTP.")


def _jumps(times: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Moments that come after a later one; a time that cannot be read counts as one."""
    latest: tuple[datetime, str] | None = None
    for text in times:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            yield (latest[1] if latest else "the beginning"), text
            continue
        if latest is not None and moment < latest[0] - _BACK:
            yield latest[1], text
        if latest is None or moment > latest[0]:
            latest = moment, text


def _records(snapshot: Snapshot) -> tuple[ApprovalFacts, ...]:
    return snapshot.records.value.approvals if snapshot.records else ()
