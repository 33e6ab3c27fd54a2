"""The questions one can ask the policy, and how they look to Cedar. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, assert_never

from bot.domain.event import Actor
from bot.domain.ids import RepositoryId, TaskId
from bot.domain.pull import Permission
from bot.domain.repository import LandingMode

NAMESPACE = "Pullwright"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, with the permission read just now."""

    actor: Actor
    permission: Permission


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """A change and where it goes. `flags` are those to be named, `denied` those nobody can allow (`policy/flags.py`)."""

    repository: RepositoryId
    author: Actor
    requester: Actor
    branch: str
    base: str
    paths: tuple[str, ...]
    verified: bool
    flags: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MayStart:
    """May this person start a task here?"""

    person: Person
    repository: RepositoryId
    fork: bool = False


@dataclass(frozen=True, slots=True)
class MayPublish:
    """May this task publish this change as a draft?"""

    task: TaskId
    task_repository: RepositoryId
    change: ChangeFacts


@dataclass(frozen=True, slots=True)
class MayApprove:
    """May this person approve this change, having named these flags?"""

    person: Person
    change: ChangeFacts
    named: tuple[str, ...] = ()
    two_person: bool = False


@dataclass(frozen=True, slots=True)
class Approvers:
    """How many people's approval counts, and how many have to; of `missing_owners` (paths) no code owner has approved yet."""

    given: int = 1
    needed: int = 1
    code_owners: bool = False
    missing_owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MayLand:
    """May this task make this change ready, or merge it?"""

    task: TaskId
    task_repository: RepositoryId
    change: ChangeFacts
    mode: LandingMode
    approved: bool
    named: tuple[str, ...] = ()
    approvals: Approvers = Approvers()


@dataclass(frozen=True, slots=True)
class MayStore:
    """May this task keep what its checks left to be seen, on this branch of this repository?"""

    task: TaskId
    task_repository: RepositoryId
    repository: RepositoryId
    branch: str
    files: int
    bytes: int


Question = MayStart | MayPublish | MayApprove | MayLand | MayStore


class Uid(TypedDict):
    type: str
    id: str


class Entity(TypedDict):
    uid: Uid
    attrs: dict[str, object]
    parents: list[Uid]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as Cedar takes it."""

    action: str
    principal: Uid
    resource: Uid
    context: dict[str, object]
    entities: tuple[Entity, ...]

    @property
    def request(self) -> dict[str, object]:
        action: Uid = {"type": f"{NAMESPACE}::Action", "id": self.action}
        return {"principal": self.principal, "action": action, "resource": self.resource, "context": self.context}


def ask(question: Question) -> Asked:
    """The question in Cedar's terms."""
    match question:
        case MayStart(person, repository, fork):
            where = _uid("Repository", repository)
            known = (_person(person), _entity(where))
            return Asked("StartTask", _uid("User", person.actor.id), where, {"fork": fork}, known)
        case MayPublish(task, home, change):
            return Asked("PublishDraft", _uid("Task", task), _CHANGE, {}, (*_change(change), _task(task, home)))
        case MayApprove(person, change, named, two_person):
            context: dict[str, object] = {"named": sorted(set(named)), "two_person": two_person}
            entities = (*_change(change, person), _person(person))
            return Asked("ApproveChange", _uid("User", person.actor.id), _CHANGE, context, entities)
        case MayLand(task, home, change, mode, approved, named, approvals):
            context = {
                "named": sorted(set(named)),
                "approved": approved,
                "mode": mode.value,
                "approvals": approvals.given if approved else 0,
                "approvals_needed": approvals.needed,
                "code_owners": approvals.code_owners,
                "missing_owners": sorted(set(approvals.missing_owners)),
            }
            return Asked("LandChange", _uid("Task", task), _CHANGE, context, (*_change(change), _task(task, home)))
        case MayStore(task, home, repository, branch, files, size):
            where = _uid("Repository", repository)
            context = {"branch": branch, "files": files, "bytes": size}
            homes = (_entity(_uid("Repository", home)),) if home != repository else ()
            return Asked(
                "StoreArtefacts", _uid("Task", task), where, context, (_entity(where), *homes, _task(task, home))
            )
        case _:
            assert_never(question)


def _uid(kind: str, identifier: object) -> Uid:
    return {"type": f"{NAMESPACE}::{kind}", "id": str(identifier)}


_CHANGE = _uid("Change", "this")


def _ref(uid: Uid) -> dict[str, Uid]:
    return {"__entity": uid}


def _entity(uid: Uid, attrs: dict[str, object] | None = None, *parents: Uid) -> Entity:
    return {"uid": uid, "attrs": attrs or {}, "parents": list(parents)}


def _person(person: Person) -> Entity:
    attrs: dict[str, object] = {"bot": person.actor.is_bot, "permission": person.permission.value}
    return _entity(_uid("User", person.actor.id), attrs)


def _task(task: TaskId, home: RepositoryId) -> Entity:
    return _entity(_uid("Task", task), {"repository": _ref(_uid("Repository", home))})


def _change(change: ChangeFacts, asking: Person | None = None) -> tuple[Entity, ...]:
    """The change, its repository, and the people it names; of those who do not ask, no permission is claimed."""
    where = _uid("Repository", change.repository)
    attrs: dict[str, object] = {
        "author": _ref(_uid("User", change.author.id)),
        "requester": _ref(_uid("User", change.requester.id)),
        "branch": change.branch,
        "base": change.base,
        "touches": touched(change.paths),
        "files": len(change.paths),
        "flags": sorted(set(change.flags)),
        "denied": sorted(set(change.denied)),
        "verified": change.verified,
    }
    others = {actor.id: actor for actor in (change.author, change.requester)}
    people = [_person(Person(actor, Permission.NONE)) for actor in others.values() if not _is(actor, asking)]
    return (_entity(_CHANGE, attrs, where), _entity(where), *people)


def _is(actor: Actor, person: Person | None) -> bool:
    return person is not None and person.actor.id == actor.id


def touched(paths: tuple[str, ...]) -> list[str]:
    """Every path and every directory above one, as policies name them."""
    found = set(paths)
    for path in paths:
        parts = path.split("/")
        found.update("/".join(parts[:end]) for end in range(1, len(parts)))
    return sorted(found)
