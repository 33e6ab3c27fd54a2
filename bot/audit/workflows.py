"""A8: what workflows of the default branch let somebody do. Pure; the rules are those of zizmor and actionlint that specs/security.md names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from bot.audit.facts import RepositoryFacts, Snapshot, SourceFile
from bot.audit.findings import Finding, Severity, unknown, unread
from bot.audit.triggers import reached_by_bot
from bot.domain.ids import is_full_object_id

WORKFLOW = re.compile(r"\.github/workflows/[^/]+\.ya?ml")
ACTION = re.compile(r"(?:.*/)?action\.ya?ml|\.github/actions/.*\.ya?ml")
_DIGEST = re.compile(r"docker://[^@]+@sha256:[0-9a-f]{64}")
_EXPRESSION = re.compile(r"\$\{\{((?:(?!\$\{\{).){0,2000}?)\}\}", re.DOTALL)
_INDEX = re.compile(r"\[\s*['\"]([\w-]+)['\"]\s*\]")
_EVENT_TEXT = re.compile(
    r"github\.head_ref\b|github\.event\.(?:(?:issue|pull_request|discussion|release)\.(?:title|body|name)"
    r"|(?:comment|review|review_comment)\.body|pull_request\.head\.(?:ref|label|repo\.(?:default_branch|description|homepage))"
    r"|(?:head_commit|commits[^\s|&)]{0,200}?|workflow_run\.head_commit)\.(?:message|author\.(?:name|email)|committer\.(?:name|email))"
    r"|pages[^\s|&)]{0,200}?\.page_name|workflow_run\.(?:head_branch|display_title|head_repository\.description))"
    r"|tojson\(\s*github(?:\.event)?\s*\)",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"github\.event\.(?:pull_request|workflow_run)\.head|github\.head_ref|github\.event\.workflow_run\.head_|refs/pull/"
    r"|github\.event\.(?:number|pull_request\.number|issue\.number)",
    re.IGNORECASE,
)
_HEAD_IN_SHELL = re.compile(
    r"\bgh\s+pr\s+checkout\b|\bgit\s+(?:fetch|pull|checkout)\b[^\n]{0,300}?(?:pull/|head)", re.IGNORECASE
)
_SECRET = re.compile(r"\bsecrets\.([A-Za-z_]\w*)|\b(secrets)\s*\[|\btojson\(\s*(secrets)\s*\)", re.IGNORECASE)
_PRIVILEGED = ("pull_request_target", "workflow_run", "issue_comment")
_CHECKOUT = "actions/checkout@"
_GIVEN = frozenset({"github_token"})
"""Every run has it; how much it may is another question."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step, the job it is of, and the names of environment variables around it that hold text of an event."""

    job: str
    told: Mapping[str, Any]
    tainted: frozenset[str] = frozenset()

    @property
    def uses(self) -> str:
        return _text(self.told.get("uses"))

    @property
    def inputs(self) -> Mapping[str, Any]:
        return _mapping(self.told.get("with"))


def check(snapshot: Snapshot) -> Iterator[Finding]:
    """A8 over every repository."""
    for facts in snapshot.repositories.value:
        yield from unread("A8", facts.name, facts.files)
        for file in facts.files.value:
            if WORKFLOW.fullmatch(file.path) or ACTION.fullmatch(file.path):
                yield from _of_file(facts, file, snapshot.operator.branch_prefix)


def _of_file(facts: RepositoryFacts, file: SourceFile, prefix: str) -> Iterator[Finding]:
    where = f"{facts.name}:{file.path}"
    if file.text.value is None:
        yield unknown("A8", where, file.text.fault or "it was not read")
        return
    try:
        told = yaml.safe_load(file.text.value)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        yield unknown(
            "A8", where, f"it is not YAML ({type(error).__name__})", "Correct the file: nobody can say what it does."
        )
        return
    if not isinstance(told, dict):
        yield unknown("A8", where, "it is no workflow", "Remove the file, or make it one.")
        return
    steps = tuple(_steps(told))
    yield from _unpinned(where, told, steps)
    yield from _event_text(where, steps)
    yield from _credentials(where, steps)
    if WORKFLOW.fullmatch(file.path):
        yield from _head_checkout(where, told, steps)
        yield from _secrets(where, file.text.value, told, prefix, facts.repository.default_branch)


def triggers(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Events of a workflow with their filters. YAML 1.1 reads the word `on` as true."""
    on = told.get("on", told.get(True))  # type: ignore[call-overload]
    if isinstance(on, str):
        return {on: None}
    if isinstance(on, list):
        return {_text(event): None for event in on}
    return _mapping(on)


def _steps(told: Mapping[str, Any]) -> Iterator[Step]:
    """Of all jobs, or of a composite action."""
    outer = _tainted(told)
    for name, job in _mapping(told.get("jobs")).items():
        around = outer | _tainted(_mapping(job))
        for step in _listed(_mapping(job).get("steps")):
            yield Step(str(name), step, around | _tainted(step))
    for step in _listed(_mapping(told.get("runs")).get("steps")):
        yield Step("the action", step, _tainted(step))


def _unpinned(where: str, told: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[Finding]:
    called = [(str(name), _text(_mapping(job).get("uses"))) for name, job in _mapping(told.get("jobs")).items()]
    used = [*((step.job, step.uses) for step in steps), *called]
    for job, uses in dict.fromkeys(used):
        if uses and not _pinned(uses):
            yield Finding(
                "A8",
                Severity.MEDIUM,
                where,
                f"job {job} uses {uses}: not a whole commit id",
                "Pin the whole commit id (40 characters) and write the version into a comment.",
            )


def _pinned(uses: str) -> bool:
    if uses.startswith("./") or _DIGEST.fullmatch(uses):
        return True
    return is_full_object_id(uses.rpartition("@")[2]) and "@" in uses and not uses.startswith("docker://")


def _head_checkout(where: str, told: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[Finding]:
    event = next((name for name in _PRIVILEGED if name in triggers(told)), None)
    for step in steps if event else ():
        inputs = _plain(f"{_text(step.inputs.get('ref'))} {_text(step.inputs.get('repository'))}")
        fetched = step.uses.lower().startswith(_CHECKOUT) and _HEAD.search(inputs)
        if fetched or _HEAD_IN_SHELL.search(_text(step.told.get("run"))):
            yield Finding(
                "A8",
                Severity.HIGH,
                where,
                f"{event} runs with the repository's rights, and job {step.job} checks out the head of a pull request",
                "Use pull_request, or take nothing but data from the head and run none of it.",
            )


def _event_text(where: str, steps: Sequence[Step]) -> Iterator[Finding]:
    for step in steps:
        script = _text(step.inputs.get("script")) if "github-script@" in step.uses else ""
        for expression in _EXPRESSION.findall(f"{_text(step.told.get('run'))}\n{script}"):
            plain = _plain(expression)
            named = {name.lower() for name in re.findall(r"\benv\.([\w-]+)", plain)}
            if _EVENT_TEXT.search(plain) or named & step.tainted:
                yield Finding(
                    "A8",
                    Severity.HIGH,
                    where,
                    f"job {step.job} puts text of an event into a script: ${{{{{expression.strip()[:80]}}}}}",
                    'Give it to the step as an environment variable and write "$NAME" in the script.',
                )
                break


def _credentials(where: str, steps: Sequence[Step]) -> Iterator[Finding]:
    for step in steps:
        if (
            step.uses.lower().startswith(_CHECKOUT)
            and _text(step.inputs.get("persist-credentials", True)).lower() != "false"
        ):
            yield Finding(
                "A8",
                Severity.LOW,
                where,
                f"job {step.job}: actions/checkout leaves its token in .git/config (persist-credentials)",
                "Set persist-credentials: false, unless a later step has to push.",
            )


def _secrets(where: str, text: str, told: Mapping[str, Any], prefix: str, default: str) -> Iterator[Finding]:
    event = reached_by_bot(triggers(told), prefix, default)
    if event is None:
        return
    named = {next(filter(None, found)) for part in _EXPRESSION.findall(text) for found in _SECRET.findall(_plain(part))}
    reached = sorted(name for name in named if name.lower() not in _GIVEN)
    inherits = any(_mapping(job).get("secrets") == "inherit" for job in _mapping(told.get("jobs")).values())
    if reached or inherits:
        yield Finding(
            "A8",
            Severity.HIGH,
            where,
            f"{event} runs it on {prefix}* before anybody approved, with {', '.join(reached) or 'every secret (inherit)'}",
            f"Leave {prefix}** out of its branches, or move the secrets into an environment that needs an approval.",
        )


def _tainted(told: Mapping[str, Any]) -> frozenset[str]:
    variables = _mapping(told.get("env")).items()
    return frozenset(str(name).lower() for name, value in variables if _EVENT_TEXT.search(_plain(_text(value))))


def _plain(expression: str) -> str:
    """`github['event']` as `github.event`."""
    return _INDEX.sub(r".\1", expression)


def _text(told: Any) -> str:
    """A plain value as text. Anything else is none: written out, a few aliases can be longer than any memory."""
    return str(told) if isinstance(told, str | int | float) else ""


def _mapping(told: Any) -> Mapping[str, Any]:
    return told if isinstance(told, dict) else {}


def _listed(told: Any) -> list[Mapping[str, Any]]:
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
