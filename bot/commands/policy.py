"""Checks the operator's rules, runs their cases, and explains one decision: which rules made it, where they stand, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.domain.change import ChangedPath, FileMode, TreeEntry
from bot.domain.decision import Decision, Outcome
from bot.domain.errors import UserError
from bot.domain.ids import BlobId
from bot.policy.cases import Case, case_of, differs, read_case, ruled
from bot.policy.engine import Policies
from bot.policy.flags import denied, to_name
from bot.policy.limits import Limits
from bot.policy.paths import flags_of
from bot.settings import load_policies

ACTIONS = {
    "start": "start",
    "publish": "publish",
    "approve": "approve",
    "land": "land",
    "StartTask": "start",
    "PublishDraft": "publish",
    "ApproveChange": "approve",
    "LandChange": "land",
}
_PEOPLE = ("person", "bot", "author", "requester")
_HOW = "PRINCIPAL is person:write, bot:write, author:write, requester:admin, person:read, person:none or task."
_NOTHING = BlobId("0" * 40)


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with the rules, and the cases that are answered otherwise than they say."""

    faults: tuple[str, ...]
    cases: int
    differing: tuple[str, ...]

    @property
    def fine(self) -> bool:
        return not self.faults and not self.differing


def check(directory: Path) -> Checked:
    """The rules of this directory, and its cases tried on them."""
    policies = load_policies(directory)
    faults = tuple(str(fault) for fault in policies.faults)
    files = sorted(
        path for path in (directory / "cases").glob("*") if path.suffix in {".toml", ".yml", ".yaml", ".json"}
    )
    differing = []
    for path in () if faults else files:
        try:
            case = read_case(path.read_text("utf-8"), form=path.suffix[1:])
        except (OSError, ValueError) as error:
            differing.append(f"cases/{path.name}: {error}")
            continue
        answer = "it expects nothing: `expect` is missing" if case.allowed is None else differs(case, policies)
        if answer is not None:
            differing.append(f"cases/{path.name}: {answer}")
    return Checked(faults, len(files), tuple(differing))


def told_check(checked: Checked, directory: Path, *, as_json: bool) -> str:
    """For people, or for programs."""
    if as_json:
        return json.dumps(
            {
                "policies": str(directory),
                "faults": list(checked.faults),
                "cases": checked.cases,
                "differing": list(checked.differing),
            }
        )
    if not checked.fine:
        return "\n".join((*checked.faults, *checked.differing))
    return f"The policies are valid. {checked.cases} cases are answered as they say."


@dataclass(frozen=True, slots=True)
class Explained:
    """One decision with the rules that made it; `case` brings what it should be, where that is said."""

    case: Case
    decision: Decision
    policies: Policies

    @property
    def as_expected(self) -> bool | None:
        """Whether the answer is the case's; None when the case only asks."""
        return None if self.case.allowed is None else differs(self.case, self.policies) is None


def explain(policies: Policies, case: Case) -> Explained:
    """The decision on a case's question, under these rules and the repository's own that the case brings."""
    rules = ruled(case, policies)
    return Explained(case, rules.decide(case.question), policies)


def asked(words: Sequence[str], limits: Limits, repository: Path | None) -> Case:
    """What the arguments ask: a case file, or three words, which may stand in one with `/` between. Raises UserError."""
    parts = words[0].split("/", 2) if len(words) == 1 and not Path(words[0]).exists() else list(words)
    if (len(parts) == 3 and parts[1] in ACTIONS) or len(words) == 3:
        case = case_from(parts, limits)
    elif len(words) == 1:
        case = case_in(Path(words[0]))
    else:
        raise UserError("Give one case file, or PRINCIPAL ACTION RESOURCE.", _HOW)
    if repository is None:
        return case
    try:
        return replace(case, repository_policy=repository.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{repository} cannot be read: {error}.") from error


def case_in(path: Path) -> Case:
    """The case in a file. Raises UserError when it is none."""
    try:
        return read_case(path.read_text("utf-8"), form=path.suffix[1:].lower())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is no case: {error}.", "policies/cases/ has examples.") from error


def case_from(words: Sequence[str], limits: Limits) -> Case:
    """PRINCIPAL ACTION RESOURCE as a case: the flags of a change are those its paths alone raise. Raises UserError."""
    principal, action, resource = words
    asks = ACTIONS.get(action)
    if asks is None:
        raise UserError(f"There is no action {action!r}.", f"The actions are {', '.join(ACTIONS)}.")
    told: dict[str, object] = {"asks": asks}
    kind, _, permission = principal.partition(":")
    if kind in _PEOPLE and asks in {"start", "approve"}:
        same = kind if kind in {"author", "requester"} else "nobody"
        told["person"] = {"permission": permission or "write", "bot": kind == "bot", "same_as": same}
    elif kind != "task" or asks in {"start", "approve"}:
        raise UserError(
            f"{principal!r} cannot ask for {action}.", f"People start and approve, a task publishes and lands. {_HOW}"
        )
    if asks == "start":
        told["fork"] = resource == "fork"
    else:
        paths = [path.strip() for path in resource.split(",") if path.strip()]
        flags = flags_of([_modified(path) for path in paths], files_before=1_000, peek=lambda _: b"", limits=limits)
        told["change"] = {
            "paths": paths,
            "flags": list(to_name(flags)),
            "denied": [flag.name for flag in denied(flags)],
        }
    try:
        return case_of(told)
    except ValueError as error:
        raise UserError(f"That cannot be asked: {error}.", _HOW) from error


def _modified(path: str) -> ChangedPath:
    side = TreeEntry(path, FileMode.REGULAR, _NOTHING)
    return ChangedPath(path, side, side)


def told_explanation(explained: Explained, *, as_json: bool) -> str:
    """The answer and each rule that made it, with its place."""
    rules = ruled(explained.case, explained.policies)
    places = {statement.name or statement.place: statement for statement in rules.statements}
    decision = explained.decision
    answer = "allowed" if decision.allowed else "denied"
    if as_json:
        listed = [
            {
                "rule": reason.rule,
                "effect": "permit" if reason.outcome is Outcome.PASSED else "forbid",
                "place": places[reason.rule].place if reason.rule in places else None,
                "reason": reason.text,
            }
            for reason in decision.reasons
        ]
        return json.dumps(
            {
                "action": decision.subject,
                "decision": answer,
                "because": listed,
                "as_expected": explained.as_expected,
                "policy_digest": rules.digest,
            }
        )
    lines = [f"{decision.subject}: {answer}"]
    for reason in decision.reasons:
        place = f" ({places[reason.rule].place})" if reason.rule in places and places[reason.rule].name else ""
        lines.append(f"  {reason.rule}{place}: {reason.text}")
    if explained.as_expected is False:
        lines.append("  The case expects another answer.")
    return "\n".join(lines)
