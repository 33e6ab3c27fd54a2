"""`policies/cases/*`: facts and the expected answer, in TOML, YAML or JSON. Each file is a test; `pullwright policy check` runs them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.event import Actor
from bot.domain.ids import RepositoryId, TaskId, UserId
from bot.domain.pull import Permission
from bot.domain.repository import LandingMode
from bot.policy.engine import Policies
from bot.policy.facts import (
    Approvers,
    ChangeFacts,
    MayApprove,
    MayLand,
    MayPublish,
    MayStart,
    MayStore,
    Person,
    Question,
)

_AUTHOR, _REQUESTER, _OTHER = UserId(1), UserId(2), UserId(3)


@dataclass(frozen=True, slots=True)
class Case:
    """One question with the answer that is right: allowed or not, and the rules that make it so (sorted)."""

    about: str
    question: Question
    allowed: bool | None
    because: tuple[str, ...]
    repository_policy: str | None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Person(_Strict):
    permission: Permission = Field(default=Permission.WRITE, strict=False)
    bot: bool = False
    same_as: Literal["author", "requester", "nobody"] = "nobody"


class _Change(_Strict):
    repository: int = 42
    branch: str = "agent/7-fix"
    base: str = "main"
    paths: list[str] = ["src/a.py"]
    flags: list[str] = []
    denied: list[str] = []
    verified: bool = True


class _File(_Strict):
    about: str = ""
    asks: Literal["start", "publish", "approve", "land", "store"]
    expect: Literal["allowed", "denied"] | None = None
    because: list[str] = []
    person: _Person = _Person()
    change: _Change = _Change()
    named: list[str] = []
    fork: bool = False
    two_person: bool = False
    approved: bool = True
    approvals: int = 1
    approvals_needed: int = 1
    code_owners: bool = False
    missing_owners: list[str] = []
    mode: LandingMode = Field(default=LandingMode.MERGE, strict=False)
    repository_policy: str | None = None


def read_case(text: str, *, form: str = "toml") -> Case:
    """The case in this text; `form` is toml, yml, yaml or json. Raises ValueError with a sentence when it is none."""
    try:
        return case_of(_READERS[form](text))
    except (tomllib.TOMLDecodeError, yaml.YAMLError, json.JSONDecodeError) as error:
        raise ValueError(f"this is no {form.upper()}: {' '.join(str(error).split())}") from None
    except KeyError:
        raise ValueError(f"a case is TOML, YAML or JSON, not {form}") from None


def case_of(told: object) -> Case:
    """The case in these values. Without `expect` it only asks. Raises ValueError with a sentence when it is none."""
    try:
        file = _File.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'the case'}: {first['msg']}") from None
    allowed = None if file.expect is None else file.expect == "allowed"
    return Case(file.about, _question(file), allowed, tuple(file.because), file.repository_policy)


_READERS: Mapping[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "yml": yaml.safe_load,
    "yaml": yaml.safe_load,
    "json": json.loads,
}


def _question(file: _File) -> Question:
    identifier = {"author": _AUTHOR, "requester": _REQUESTER, "nobody": _OTHER}[file.person.same_as]
    person = Person(Actor(identifier, "somebody", file.person.bot), file.person.permission)
    change = ChangeFacts(
        repository=RepositoryId(file.change.repository),
        author=Actor(_AUTHOR, "pullwright[bot]", is_bot=True),
        requester=Actor(_REQUESTER, "requester", is_bot=False),
        branch=file.change.branch,
        base=file.change.base,
        paths=tuple(file.change.paths),
        verified=file.change.verified,
        flags=tuple(file.change.flags),
        denied=tuple(file.change.denied),
    )
    task, home, named = TaskId("task"), RepositoryId(42), tuple(file.named)
    match file.asks:
        case "start":
            return MayStart(person, home, file.fork)
        case "publish":
            return MayPublish(task, home, change)
        case "approve":
            return MayApprove(person, change, named, file.two_person)
        case "land":
            people = Approvers(file.approvals, file.approvals_needed, file.code_owners, tuple(file.missing_owners))
            return MayLand(task, home, change, file.mode, file.approved, named, people)
        case "store":
            return MayStore(task, home, change.repository, change.branch, len(change.paths), 1_000)
        case _:
            assert_never(file.asks)


def ruled(case: Case, policies: Policies) -> Policies:
    """These rules with the repository's own ones that the case brings."""
    return policies if case.repository_policy is None else policies.tightened(case.repository_policy)


def differs(case: Case, policies: Policies) -> str | None:
    """None when the policies answer as the case says; else what they answer instead."""
    decision = ruled(case, policies).decide(case.question)
    because = tuple(sorted(reason.rule for reason in decision.reasons))
    if decision.allowed == case.allowed and because == tuple(sorted(case.because)):
        return None
    return f"{'allowed' if decision.allowed else 'denied'} because {', '.join(because)}"
