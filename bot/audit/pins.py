"""A6: whether shared skills, plugins and actions are pinned; A7: whether their upstreams keep what the pin says. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from bot.audit.facts import PinFacts, Snapshot
from bot.audit.findings import Finding, Severity, unknown
from bot.domain.ids import is_full_object_id


def check_lock(snapshot: Snapshot) -> Iterator[Finding]:
    """A6: source, whole commit id, owner and hash of each line of the lock file."""
    for pin in snapshot.pins or ():
        entry, where = pin.entry, f"pin {pin.entry.name}"
        if not entry.repository:
            yield Finding("A6", Severity.HIGH, where, "names no source", "Write the repository it comes from.")
        if not entry.commit:
            yield Finding("A6", Severity.HIGH, where, "is not pinned", "Pin a whole commit id, 40 characters.")
        elif not is_full_object_id(entry.commit):
            evidence = f"is pinned to {entry.commit}: an abbreviation, a tag or a branch"
            yield Finding("A6", Severity.HIGH, where, evidence, "Pin a whole commit id, 40 characters.")
        if not entry.owner:
            yield Finding("A6", Severity.LOW, where, "has no owner", "Name who answers for it.")
        if not entry.tree:
            yield Finding(
                "A6", Severity.LOW, where, "has no hash", "Write the tree id that `pullwright pin place` prints."
            )
        elif pin.tree.value is not None and pin.tree.value != entry.tree:
            evidence = f"the commit holds {pin.tree.value}, not {entry.tree}"
            yield Finding("A6", Severity.HIGH, where, evidence, "Do not use it before that is explained.")


def check_upstreams(snapshot: Snapshot) -> Iterator[Finding]:
    """A7: refs that are named like a commit, and pins that no branch or tag leads to."""
    for pin in snapshot.pins or ():
        yield from _of_upstream(pin)


def _of_upstream(pin: PinFacts) -> Iterator[Finding]:
    where = f"pin {pin.entry.name}, {pin.entry.repository}"
    if pin.refs:
        yield Finding(
            "A7", Severity.HIGH, where, pin.refs, "Somebody passes a branch or tag for a commit: do not use it."
        )
    if pin.commit:
        yield Finding(
            "A7",
            Severity.HIGH,
            where,
            pin.commit,
            "Pin a commit that a branch or tag of this very repository leads to.",
        )
    if pin.tree.fault:
        yield unknown("A7", where, pin.tree.fault)
