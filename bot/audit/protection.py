"""A10: what GitHub itself enforces on the default branch and on the bot's branches; A11: what Apps may. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bot.audit.facts import RepositoryFacts, Snapshot
from bot.audit.findings import Finding, Severity, fix_of, unknown, unread
from bot.providers.organisation.port import Guard, Installation, RequiredCheck

GATE = "pullwright/gate"
_LEVELS = {"read": 1, "write": 2, "admin": 3}
_MISSING = (
    ("pull_request", Severity.HIGH, "no pull request is required", "Require a pull request before merging."),
    ("approvals", Severity.HIGH, "no approving review is required", "Require at least one approval."),
    (
        "dismiss_stale",
        Severity.MEDIUM,
        "a push leaves approvals standing",
        "Dismiss stale approvals when commits are pushed.",
    ),
    ("last_push", Severity.MEDIUM, "whoever pushed last may approve", "Require approval of the most recent push."),
    ("code_owners", Severity.LOW, "code owners need not review", "Require review from code owners."),
)


def check_rules(snapshot: Snapshot) -> Iterator[Finding]:
    """A10 over every repository that is not archived."""
    for facts in snapshot.repositories.value:
        if not facts.repository.archived:
            yield from _of_repository(facts, snapshot)


def combined(rules: Guard, classic: Guard | None) -> Guard:
    """Rulesets and classic protection hold at once: the stricter of each."""
    if classic is None:
        return rules
    return replace(
        rules,
        pull_request=rules.pull_request or classic.pull_request,
        approvals=max(rules.approvals, classic.approvals),
        dismiss_stale=rules.dismiss_stale or classic.dismiss_stale,
        last_push=rules.last_push or classic.last_push,
        code_owners=rules.code_owners or classic.code_owners,
        checks=rules.checks + classic.checks,
        creation=rules.creation or classic.creation,
        update=rules.update or classic.update,
    )


def _of_repository(facts: RepositoryFacts, snapshot: Snapshot) -> Iterator[Finding]:
    where = f"{facts.name}:{facts.repository.default_branch}"
    rules, classic = facts.rules.value, facts.protection.value
    if rules is None:
        yield unknown("A10", where, facts.rules.fault or "GitHub did not say")
    elif facts.protection.fault:
        lacking = [evidence for _, _, evidence, _ in _missing(rules)]
        lacking += [finding.evidence for finding in _gate(where, rules.checks, snapshot.app)]
        if lacking:
            why = f"by rulesets alone {', '.join(lacking)}; classic protection: {facts.protection.fault}"
            yield unknown("A10", where, why, fix_of(facts.protection.fault))
    else:
        guard = combined(rules, classic)
        for _, severity, evidence, fix in _missing(guard):
            yield Finding("A10", severity, where, evidence, fix)
        yield from _gate(where, guard.checks, snapshot.app)
    yield from _bypass(where, facts, snapshot)
    yield from _bot_branches(facts, snapshot.operator.branch_prefix)


def _missing(guard: Guard) -> list[tuple[str, Severity, str, str]]:
    """Without a required pull request, what it would have to be like is not listed."""
    lacking = [row for row in _MISSING if not getattr(guard, row[0])]
    return lacking[:1] if not guard.pull_request else lacking


def _gate(where: str, checks: tuple[RequiredCheck, ...], app: Installation | None) -> Iterator[Finding]:
    found = [one for one in checks if one.context == GATE]
    if not found:
        evidence = f"{GATE} is no required check: whoever may write can merge past the approval"
        fix = f"Make {GATE} a required status check, with the App as its source."
        yield Finding("A10", Severity.HIGH, where, evidence, fix)
    elif all(one.app is None for one in found):
        fix = "Choose the App as the source of this check."
        yield Finding("A10", Severity.MEDIUM, where, f"anybody may report {GATE}", fix)
    elif app is not None and all(one.app != app.app for one in found):
        fix = "Choose this App as the source of the check."
        yield Finding("A10", Severity.HIGH, where, f"{GATE} is to be reported by another App ({found[0].app})", fix)


def _bypass(where: str, facts: RepositoryFacts, snapshot: Snapshot) -> Iterator[Finding]:
    app = snapshot.app
    around = [(f"ruleset {number}", read) for number, read in facts.bypass]
    for rules, read in around:
        yield from unread("A10", f"{where}, who may bypass {rules}", read)
    actors = [(rules, one) for rules, read in around for one in read.value]
    actors += [("classic protection", one) for one in (facts.protection.value or Guard()).bypass]
    for rules, actor in actors:
        if actor.kind != "Integration":
            continue
        if app is None and snapshot.installations.fault:
            why = f"App {actor.actor} may bypass {rules}, and which App is ours could not be read"
            yield unknown("A10", where, why, "Look whether it is the bot's App.")
        elif app is not None and actor.actor in {str(app.app), app.slug}:
            fix = "Take the App out of the bypass list: it needs no exception on this branch."
            yield Finding("A10", Severity.HIGH, where, f"the App may bypass {rules}", fix)


def _bot_branches(facts: RepositoryFacts, prefix: str) -> Iterator[Finding]:
    where, rules = f"{facts.name}:{prefix}**", facts.bot_rules.value
    if rules is None:
        yield unknown("A10", where, facts.bot_rules.fault or "GitHub did not say")
    elif not (rules.creation and rules.update):
        yield Finding(
            "A10",
            Severity.MEDIUM,
            where,
            "people may create or push to branches of the bot",
            f"Add a ruleset for {prefix}** that restricts creations and updates, with the App alone in its bypass list.",
        )


def check_apps(snapshot: Snapshot) -> Iterator[Finding]:
    """A11: the bot's installation against app.yml, and every other App against the operator's list."""
    yield from unread("A11", snapshot.organisation, snapshot.installations)
    allowed = {slug.lower() for slug in snapshot.operator.allowed_apps}
    for one in snapshot.installations.value:
        if one is snapshot.app:
            yield from _wider(one, snapshot)
        elif one.slug.lower() not in allowed:
            levels = ", ".join(f"{name}:{level}" for name, level in one.permissions) or "nothing"
            yield Finding(
                "A11",
                Severity.MEDIUM,
                f"{snapshot.organisation}, App {one.slug}",
                f"is installed and on no list; it has {levels}",
                "Remove it, or add its slug to allowed_apps.",
            )


def _wider(app: Installation, snapshot: Snapshot) -> Iterator[Finding]:
    permissions, events = snapshot.manifest
    where = f"{snapshot.organisation}, App {app.slug}"
    for name, level in app.permissions:
        if _LEVELS.get(level, 9) > _LEVELS.get(permissions.get(name, ""), 0):
            yield Finding(
                "A11",
                Severity.HIGH,
                where,
                f"has {name}:{level}; app.yml asks for {permissions.get(name, 'nothing of it')}",
                "Take the permission away in the App's settings.",
            )
    for event in sorted(set(app.events) - set(events)):
        yield Finding(
            "A11", Severity.LOW, where, f"is sent {event}; app.yml does not ask for it", "Unsubscribe the App from it."
        )
