"""Every check of specs/security.md §8: what it is called, its rule, and whether this audit had what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bot.audit import gitconfig, host, instructions, people, pins, protection, records, workflows
from bot.audit.facts import Snapshot
from bot.audit.findings import Finding, unread

Rule = Callable[[Snapshot], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """`needs` says what was missing so that it could not be checked; empty: it was."""

    id: str
    title: str
    rule: Rule
    needs: Callable[[Snapshot], str] = lambda _snapshot: ""


@dataclass(frozen=True, slots=True)
class NotChecked:
    """What this audit did not look at, and why."""

    check: str
    why: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The result, worst first."""

    organisation: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    not_checked: tuple[NotChecked, ...]
    instruction_files: Mapping[str, str]


def _departed(snapshot: Snapshot) -> str:
    return "" if snapshot.operator.departed else "nobody who left is named (departed)"


def _copies(snapshot: Snapshot) -> str:
    return "" if snapshot.copies is not None else "no working copy is named (working_copies)"


def _pins(snapshot: Snapshot) -> str:
    return "" if snapshot.pins is not None else "no lock file is named (lock_file)"


def _floors(snapshot: Snapshot) -> str:
    return "" if snapshot.operator.floors else "no floor is named (floors)"


def _store(snapshot: Snapshot) -> str:
    return "" if snapshot.records is not None else "this machine has no store (PULLWRIGHT_HOME, DATABASE_URL)"


def _audit_log(snapshot: Snapshot) -> str:
    return "" if snapshot.operator.enterprise_cloud else "there is no audit log (enterprise_cloud = false)"


CHECKS = (
    Check("A1", "pictures that people and agents put in public", people.check_media),
    Check("A2", "forks that should not be there", people.check_forks),
    Check(
        "A3", "repositories that changed their visibility, or that agents created", people.check_visibility, _audit_log
    ),
    Check("A4", "what people who left still hold", people.check_departed, _departed),
    Check("A5", "instructions to agents", instructions.check),
    Check("A6", "skills and plugins that are not pinned", pins.check_lock, _pins),
    Check("A7", "upstreams that do not keep what a pin says", pins.check_upstreams, _pins),
    Check("A8", "workflows", workflows.check),
    Check("A9", "versions below the fleet's floor", host.check_versions, _floors),
    Check("A10", "rules of branches", protection.check_rules),
    Check("A11", "what Apps may", protection.check_apps),
    Check("A12", "commits of others, and merges that are not what was approved", records.check_branches),
    Check("A13", "who approved", records.check_approvals, _store),
    Check("A14", "the log of approvals", records.check_log, _store),
    Check("A15", "sandboxes of this machine, and where they may send", host.check_sandboxes),
    Check("A16", "working copies", gitconfig.check, _copies),
    Check("A17", "pictures in what agents wrote", people.check_posts),
)

PARTS: tuple[NotChecked, ...] = (
    NotChecked("A1", "co-author trailers and media inside other repositories: names, contents and gists are looked at"),
    NotChecked("A2", "personal repositories that share root commits with the organisation's without being forks"),
    NotChecked("A4", "tokens that nobody had to authorise: GitHub lists only those for single sign-on"),
    NotChecked("A12", "pull requests whose branch is gone"),
    NotChecked(
        "A17", "comments on lines of pull requests: issues, pull requests and the comments on them are looked at"
    ),
    NotChecked("A5", "whether a change had a review: it is compared with the last report (last_report)"),
)
"""What §8 asks for and no version of this command does yet."""


def audited(snapshot: Snapshot, last: Mapping[str, str] | None = None) -> Audit:
    """Every check that can be made. `last`: instruction files of an earlier report."""
    missing = {check.id: check.needs(snapshot) for check in CHECKS}
    findings = [*unread("A0", snapshot.organisation, snapshot.repositories)]
    for check in CHECKS:
        if not missing[check.id]:
            findings += check.rule(snapshot)
    left = [NotChecked(name, why) for name, why in missing.items() if why]
    if snapshot.records is None:
        left.append(NotChecked("A12", f"merges against their approvals: {_store(snapshot)}"))
    if last is None:
        left.append(NotChecked("A5", "what changed since the last report: none is named (last_report)"))
    else:
        findings += instructions.changed(snapshot, last)
    ordered = sorted(dict.fromkeys(findings), key=lambda one: (-one.severity, int(one.check[1:]), one))
    return Audit(
        snapshot.organisation,
        tuple(ordered),
        tuple(check.id for check in CHECKS if not missing[check.id]),
        (*left, *PARTS),
        instructions.instruction_files(snapshot),
    )
