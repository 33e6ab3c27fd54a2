"""Asks the policy: gathers the facts of a change and puts the question. The rules are in `policies/`."""

from __future__ import annotations

from bot.domain.change import ChangedPath, FileMode
from bot.domain.decision import Decision
from bot.domain.event import Actor
from bot.domain.ids import BlobId, TreeId
from bot.domain.pull import Approval, Snapshot
from bot.domain.repository import LandingMode
from bot.policy.facts import ChangeFacts, MayApprove, MayLand, MayPublish, Person
from bot.policy.flags import Flag, denied, to_name
from bot.policy.paths import flags_of
from bot.workflow.context import TaskContext

_PEEKED = 5_000_000


async def flags_between(context: TaskContext, old: TreeId, new: TreeId) -> tuple[Flag, ...]:
    """Every flag of the change between two trees, from git objects."""
    changes = await context.mirror.diff(old, new)
    before = len(await context.mirror.entries(old))
    contents = await _contents(context, changes)
    return flags_of(changes, files_before=before, peek=contents.get, limits=context.services.policies.limits)


async def _contents(context: TaskContext, changes: tuple[ChangedPath, ...]) -> dict[BlobId, bytes]:
    sides = [side for change in changes for side in (change.old, change.new) if side is not None]
    wanted = {side.blob for side in sides if side.mode is not FileMode.GITLINK}
    sizes = await context.mirror.sizes(sorted(wanted)) if wanted else {}
    return await context.mirror.blobs(sorted(blob for blob in wanted if sizes[blob] <= _PEEKED))


async def may_publish(context: TaskContext, branch: str, base: str, old: TreeId, new: TreeId) -> Decision:
    """May the task publish this verified change as a draft?"""
    flags = await flags_between(context, old, new)
    bot = await context.services.forges.bot()
    paths = tuple(change.path for change in await context.mirror.diff(old, new))
    facts = _facts(context, bot, branch, base, paths, flags)
    repository = context.spec.subject.repository.id
    return context.services.policies.decide(MayPublish(context.spec.id, repository, facts))


def may_approve(context: TaskContext, now: Snapshot, approval: Approval, flags: tuple[Flag, ...]) -> Decision:
    """May this person's approval of this change count?"""
    policies = context.services.policies
    person = Person(approval.reviewer, approval.permission)
    facts = _facts_of(context, now, flags)
    return policies.decide(MayApprove(person, facts, approval.flags, policies.limits.two_person))


def may_land(context: TaskContext, now: Snapshot, approval: Approval | None, flags: tuple[Flag, ...]) -> Decision:
    """May the change be made ready or merged, as approved?"""
    named = approval.flags if approval is not None else ()
    repository = context.spec.subject.repository.id
    facts = _facts_of(context, now, flags)
    question = MayLand(context.spec.id, repository, facts, LandingMode.MERGE, approval is not None, named)
    return context.services.policies.decide(question)


def _facts_of(context: TaskContext, now: Snapshot, flags: tuple[Flag, ...]) -> ChangeFacts:
    paths = tuple(sorted({path for flag in flags for path in flag.paths}))
    return _facts(context, now.pull.author, now.pull.head_ref, now.pull.base_ref, paths, flags)


def _facts(
    context: TaskContext, author: Actor, branch: str, base: str, paths: tuple[str, ...], flags: tuple[Flag, ...]
) -> ChangeFacts:
    return ChangeFacts(
        repository=context.spec.subject.repository.id,
        author=author,
        requester=context.spec.requester,
        branch=branch,
        base=base,
        paths=paths,
        verified=True,
        flags=to_name(flags),
        denied=tuple(flag.name for flag in denied(flags)),
    )
