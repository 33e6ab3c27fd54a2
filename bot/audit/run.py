"""Reads one snapshot: the organisation through its port, our own log through its own. The rim; nothing is decided here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from bot.audit import people
from bot.audit.facts import (
    ApprovalFacts,
    BotBranch,
    Host,
    PersonFacts,
    PinFacts,
    PublicRepository,
    Records,
    RepositoryFacts,
    Snapshot,
    SourceFile,
    WorkingCopy,
)
from bot.audit.operator import Operator
from bot.audit.workflows import ACTION, WORKFLOW
from bot.domain.errors import Transient
from bot.domain.ids import RepositoryId
from bot.policy.paths import is_agent_instruction
from bot.providers.organisation.port import NOTHING, Guard, Organisation, Read, Repository, TreeFile
from bot.providers.store.port import ApprovedTask, Log

T = TypeVar("T")
U = TypeVar("U")
_LARGEST = 256 << 10
_AT_ONCE = 6
_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Here:
    """What was read on this machine. None: not asked for."""

    manifest: tuple[Mapping[str, str], tuple[str, ...]]
    copies: tuple[WorkingCopy, ...] | None = None
    pins: tuple[PinFacts, ...] | None = None
    host: Host | None = None
    log: Log | None = None


async def read(name: str, operator: Operator, reader: Organisation, here: Here) -> Snapshot:
    """Everything the checks look at. Raises UserError when the credential is not accepted."""
    listed = await _listed(reader, name)
    members = await reader.members(name)
    repositories = await _each(listed.value, lambda one: _repository(reader, one, operator))
    public = dict.fromkeys([*operator.departed, *operator.agents, *members.value])
    looked_into = operator.gone | operator.bots
    persons = [login for login in public if not login.endswith("[bot]")]
    return Snapshot(
        organisation=name,
        operator=operator,
        manifest=here.manifest,
        repositories=Read(tuple(repositories), listed.fault),
        installations=await reader.installations(name),
        members=members,
        collaborators=await reader.outside_collaborators(name),
        credentials=await reader.credentials(name) if operator.enterprise_cloud else NOTHING,
        log=await reader.log(name, people.LOGGED) if operator.enterprise_cloud else NOTHING,
        people=tuple(await _each(persons, lambda one: _person(reader, one, deep=one.lower() in looked_into))),
        copies=here.copies,
        pins=here.pins,
        host=here.host,
        records=await _records(reader, name, listed.value, here.log) if here.log else None,
    )


async def _listed(reader: Organisation, name: str) -> Read[tuple[Repository, ...]]:
    """A token for chosen repositories lists those, and says nothing of the rest."""
    listed, size = await reader.repositories(name), await reader.size(name)
    if listed.fault or size.value is None:
        return Read(listed.value, listed.fault or f"whether these {len(listed.value)} are all: {size.fault}")
    hidden = size.value - len(listed.value)
    return Read(listed.value, f"the token sees {len(listed.value)} of {size.value} repositories" if hidden > 0 else "")


async def _each(items: Sequence[U], act: Callable[[U], Awaitable[T]]) -> list[T]:
    """A few at once, in order."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(item: U) -> T:
        async with slots:
            return await act(item)

    return list(await asyncio.gather(*(one(item) for item in items)))


async def _repository(reader: Organisation, one: Repository, operator: Operator) -> RepositoryFacts:
    name, branch = one.full_name, one.default_branch
    head = await reader.head(name, branch)
    rules = await reader.rules(name, branch)
    return RepositoryFacts(
        one,
        head=head,
        files=await _files(reader, name, head.value, head.fault),
        rules=rules,
        protection=await reader.protection(name, branch),
        bot_rules=await reader.rules(name, f"{operator.branch_prefix}0-audit"),
        bypass=tuple([(number, await reader.bypass(name, number)) for number in (rules.value or Guard()).rulesets]),
        keys=await reader.deploy_keys(name),
        forks=await reader.forks(name),
        branches=await _branches(reader, one, operator.branch_prefix),
        posts=Read(()) if one.private else await reader.posts(name),
    )


async def _files(reader: Organisation, name: str, head: str | None, fault: str) -> Read[tuple[SourceFile, ...]]:
    """The files that some check looks at; a repository without a commit has none."""
    if head is None:
        return Read((), "" if fault.startswith("409") else fault)
    listing = await reader.tree(name, head)
    wanted = [one for one in listing.value if _looked_at(one.path)]
    return Read(tuple([await _file(reader, name, one) for one in wanted]), listing.fault)


def _looked_at(path: str) -> bool:
    return bool(WORKFLOW.fullmatch(path) or ACTION.fullmatch(path)) or is_agent_instruction(path)


async def _file(reader: Organisation, name: str, one: TreeFile) -> SourceFile:
    if not one.regular:
        return SourceFile(one.path, one.blob, Read(None, "it is a link or a submodule"))
    if one.size > _LARGEST:
        return SourceFile(one.path, one.blob, Read(None, f"it has {one.size:,} bytes, more than {_LARGEST:,}"))
    data = await reader.blob(name, one.blob)
    text = None if data.value is None else data.value.decode("utf-8", "replace")
    return SourceFile(one.path, one.blob, Read(text, data.fault))


async def _branches(reader: Organisation, one: Repository, prefix: str) -> Read[tuple[BotBranch, ...]]:
    found = await reader.branches(one.full_name, prefix)
    branches = []
    for branch in found.value:
        beyond = await reader.commits_beyond(one.full_name, one.default_branch, branch.name)
        branches.append(BotBranch(branch, beyond))
    return Read(tuple(branches), "" if found.fault.startswith("409") else found.fault)


async def _person(reader: Organisation, login: str, *, deep: bool) -> PersonFacts:
    listed = await reader.user_repositories(login)
    shown = []
    for one in listed.value:
        paths: Read[tuple[str, ...] | None] = Read(None)
        if deep:
            tree = await reader.tree(one.full_name, one.default_branch)
            empty = tree.fault.startswith("409")
            paths = Read(tuple(file.path for file in tree.value), "" if empty else tree.fault)
        shown.append(PublicRepository(one, paths))
    return PersonFacts(login, Read(tuple(shown), listed.fault), await reader.gists(login))


async def _records(reader: Organisation, name: str, listed: Sequence[Repository], log: Log) -> Read[Records]:
    """The log, and of each task's last approval what GitHub says of it now."""
    try:
        rows, broken = await log.approvals(), await log.broken_at()
        bare, received = await log.landed_without(), await log.received()
    except (Transient, ValueError) as error:
        return Read(Records(), str(error))
    names = {one.id: one.full_name for one in listed}
    newest = {row.task: row for row in rows if _here(row, name, names)}
    approvals = await _each(list(newest.values()), lambda row: _approval(reader, row, names))
    return Read(Records(tuple(approvals), broken, tuple(bare), received))


def _here(row: ApprovedTask, organisation: str, names: Mapping[RepositoryId, str]) -> bool:
    owner = row.repository.partition("/")[0]
    return row.approval.repository in names or owner.lower() == organisation.lower()


async def _approval(reader: Organisation, row: ApprovedTask, names: Mapping[RepositoryId, str]) -> ApprovalFacts:
    name = names.get(row.approval.repository, row.repository)
    permission = await reader.permission(name, row.approval.reviewer.login)
    if not row.landed:
        return ApprovalFacts(row, name, permission)
    since = await reader.commits_since(name, row.approval.base_ref, _earlier(row.approval.received_at))
    return ApprovalFacts(row, name, permission, since)


def _earlier(moment: str) -> str:
    """An hour before, for clocks that differ."""
    try:
        return (datetime.fromisoformat(moment) - _SKEW).isoformat().replace("+00:00", "Z")
    except ValueError:
        return "1970-01-01T00:00:00Z"
