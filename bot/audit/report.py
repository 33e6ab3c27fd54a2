"""What people and programs read of an audit, and its exit code. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict

from bot.audit.checks import CHECKS, Audit
from bot.audit.findings import Severity
from bot.prompting.secrets import mask_secrets

LIMITS = (
    "private gists and private repositories of others are not visible",
    "deleted repositories are gone",
    "nobody looks at what a picture shows",
)
"""What no audit of this kind can see (specs/security.md §8)."""

_MARKS = {Severity.HIGH: "✗", Severity.MEDIUM: "✗", Severity.UNKNOWN: "?", Severity.LOW: "·"}


def exit_code(audit: Audit) -> int:
    """0 when nothing was found and everything could be read; else that of the worst finding."""
    return max((int(one.severity) for one in audit.findings), default=0)


def told(audit: Audit, *, as_json: bool) -> str:
    """The report. As JSON it is one object, on one line."""
    return _for_programs(audit) if as_json else _for_people(audit)


def _for_programs(audit: Audit) -> str:
    findings = [
        {**asdict(one), "severity": one.severity.name.lower(), "evidence": mask_secrets(one.evidence)}
        for one in audit.findings
    ]
    return json.dumps(
        {
            "organisation": audit.organisation,
            "exit": exit_code(audit),
            "findings": findings,
            "checked": audit.checked,
            "not_checked": [asdict(one) for one in audit.not_checked],
            "limits": LIMITS,
            "instruction_files": dict(audit.instruction_files),
        }
    )


def _for_people(audit: Audit) -> str:
    titles = {check.id: check.title for check in CHECKS}
    lines = []
    for one in audit.findings:
        lines.append(
            f"{_MARKS[one.severity]} {one.severity.name.lower():<7} {one.check:<3} {_plain(one.target)}: {_plain(mask_secrets(one.evidence))}"
        )
        lines.append(f"              → {one.fix}")
    counts = {severity: sum(one.severity is severity for one in audit.findings) for severity in reversed(Severity)}
    summary = ", ".join(f"{number} {severity.name.lower()}" for severity, number in counts.items() if number)
    lines += [
        "",
        f"{audit.organisation}: {summary or 'nothing found'} in {len(audit.checked)} of {len(CHECKS)} checks.",
    ]
    lines += ["", "Not checked by this version or without more input:"]
    lines += [f"  {one.check:<3} {titles[one.check]}: {one.why}" for one in audit.not_checked]
    lines += ["", "Not visible to any audit: " + "; ".join(LIMITS) + "."]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Names come from elsewhere: nothing of them reaches the terminal as a command."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)
