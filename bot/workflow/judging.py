"""Asks the policy: gathers the facts of a change and puts the question. The rules are in `policies/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.custody.faults import OverLimit
from bot.domain.change import ChangedPath, FileMode, TreeEntry
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.event import Actor
from bot.domain.ids import BlobId, CommitId, TreeId
from bot.domain.plan import Plan
from bot.domain.pull import Approval, Snapshot
from bot.domain.repository import LandingMode
from bot.policy.engine import REPOSITORY_POLICY_PATH, Policies
from bot.policy.facts import Approvers, ChangeFacts, MayApprove, MayLand, MayPublish, MayStore, Person
from bot.policy.flags import Flag, Weight, denied, merged, to_name
from bot.policy.paths import flags_of
from bot.prompting.flagged import findings
from bot.prompting.secrets import mask_secrets
from bot.stages.approving.quorum import without_owner
from bot.stages.approving.since import changed_since, section
from bot.stages.publishing import names
from bot.workflow.context import TaskContext
from bot.workflow.records import Prepared, PublishOrder, ReviewState

_PEEKED = 5_000_000
_LONGEST_POLICY = 100_000
_NEARBY = re.compile(
    r"://[^\s/:@]{1,100}:[^\s/@]{1,200}@(?=(?:localhost|127\.0\.0\.1|[\w-]+|[\w.-]*example\.\w+)(?:[:/\s\"']|$))"
)
"""Passwords of databases on the developer's own machine are no secrets: the host has no dot, or is an example."""


async def rules(context: TaskContext, base: CommitId) -> Policies:
    """The operator's rules and the repository's own, which may only forbid: as they are at the task's base, never on a branch."""
    operators = context.services.policies
    try:
        given = await context.mirror.file_at(base, REPOSITORY_POLICY_PATH, limit=_LONGEST_POLICY)
    except OverLimit:
        given = b"too long"
    return operators if given is None else operators.tightened(given.decode("utf-8", "replace"))


async def flags_between(context: TaskContext, old: TreeId, new: TreeId) -> tuple[Flag, ...]:
    """Every flag of the change between two trees, from git objects."""
    changes = await context.mirror.diff(old, new)
    before = len(await context.mirror.entries(old))
    contents = await _contents(context, changes)
    found = flags_of(changes, files_before=before, peek=contents.get, limits=context.services.policies.limits)
    return merged((*found, *secret_flags(changes, contents)))


def secret_flags(changes: Sequence[ChangedPath], contents: Mapping[BlobId, bytes]) -> Iterator[Flag]:
    """Paths and added lines that hold a credential in one of its usual forms; nobody can allow that."""
    for change in changes:
        if change.new is None:
            continue
        known = set(_lines(contents, change.old.blob if change.old is not None else None))
        added = [line for line in _lines(contents, change.new.blob) if line not in known]
        texts = (_NEARBY.sub("://", "\n".join(added)), change.path if change.old is None else "")
        if any(mask_secrets(text) != text for text in texts):
            named = mask_secrets(change.path)
            yield Flag("secret", Weight.DENIED, (named,), "The added text holds what looks like a credential.")


def _lines(contents: Mapping[BlobId, bytes], blob: BlobId | None) -> list[str]:
    data = contents.get(blob, b"") if blob is not None else b""
    return [] if b"\0" in data[:8000] else data.decode("utf-8", "replace").splitlines()


async def _contents(context: TaskContext, changes: tuple[ChangedPath, ...]) -> dict[BlobId, bytes]:
    sides = [side for change in changes for side in (change.old, change.new) if side is not None]
    wanted = {side.blob for side in sides if side.mode is not FileMode.GITLINK}
    sizes = await context.mirror.sizes(sorted(wanted)) if wanted else {}
    return await context.mirror.blobs(sorted(blob for blob in wanted if sizes[blob] <= _PEEKED))


async def may_publish(context: TaskContext, order: PublishOrder, branch: str) -> Decision:
    """May the task publish this verified change as a draft?"""
    change, prepared = order.verified.change, order.prepared
    flags = await flags_between(context, change.base_tree, change.tree)
    publisher = await context.publisher()
    paths = tuple(each.path for each in await context.mirror.diff(change.base_tree, change.tree))
    facts = _facts(context, publisher, (branch, prepared.base_ref), paths, flags)
    repository = context.spec.subject.repository.id
    decision = (await rules(context, prepared.base)).decide(MayPublish(context.spec.id, repository, facts))
    return grounded(decision, flags)


async def may_store(context: TaskContext, entries: Sequence[TreeEntry], branch: str, base: CommitId) -> Decision:
    """May the task keep these files on this branch of its repository?"""
    repository = context.spec.subject.repository.id
    sizes = await context.mirror.sizes(sorted({entry.blob for entry in entries}))
    question = MayStore(context.spec.id, repository, repository, branch, len(entries), sum(sizes.values()))
    return (await rules(context, base)).decide(question)


async def may_plan(context: TaskContext, prepared: Prepared, plan: Plan) -> Decision:
    """Whether a change of the planned files could be published at all: asked before money is spent on making it."""
    known = {entry.path: entry for entry in await context.mirror.entries(prepared.tree)}
    declared = sorted({file.path for step in plan.steps for file in step.files})
    blank = [TreeEntry(path, FileMode.REGULAR, BlobId("0" * 40)) for path in declared]
    changes = [ChangedPath(entry.path, known.get(entry.path), entry) for entry in blank]
    limits = context.services.policies.limits
    flags = flags_of(changes, files_before=len(known), peek=lambda _: b"", limits=limits)
    branch = names.branch(context.spec.subject.number, context.spec.title, context.spec.id)
    facts = _facts(context, context.spec.requester, (branch, prepared.base_ref), tuple(declared), flags)
    question = MayPublish(context.spec.id, context.spec.subject.repository.id, facts)
    return grounded((await rules(context, prepared.base)).decide(question), flags)


_ABOUT: Mapping[str, Callable[[Flag], bool]] = {
    "nothing-denied": lambda flag: flag.weight is Weight.DENIED,
    "no-workflow-drafts": lambda flag: flag.name == "workflows",
    "flags-need-a-name": lambda flag: flag.weight is Weight.NAMED,
}
"""The rules that speak of a change's flags, by id, and of which."""


def grounded(decision: Decision, flags: tuple[Flag, ...]) -> Decision:
    """The decision with the files that its refusals are about under each."""

    def with_files(reason: Reason) -> Reason:
        about = _ABOUT.get(reason.rule)
        if about is None or reason.outcome is Outcome.PASSED:
            return reason
        return replace(reason, children=findings(flag for flag in flags if about(flag)))

    return replace(decision, reasons=tuple(with_files(reason) for reason in decision.reasons))


@dataclass(frozen=True, slots=True)
class Sight:
    """What is judged: the pull request now, the flags and paths of its change, and the rules that hold for the task."""

    now: Snapshot
    flags: tuple[Flag, ...]
    paths: tuple[str, ...]
    policies: Policies


async def since(context: TaskContext, state: ReviewState, now: Snapshot) -> str:
    """What is different from the change that was approved last; empty while it is the same, or nothing was approved."""
    then = state.approval or state.lapsed
    if then is None or then.digest == now.digest.value:
        return ""
    old_base = await context.mirror.tree_of(then.merge_base)
    old = await context.mirror.human_diff(old_base, then.head_tree)
    new = await context.mirror.human_diff(now.digest.merge_base_tree, now.digest.head_tree)
    return section(then, changed_since(old, new))


async def sight(context: TaskContext, now: Snapshot, policies: Policies) -> Sight:
    """The snapshot with its flags, and everything else that rules may ask about it."""
    old, new = now.digest.merge_base_tree, now.digest.head_tree
    flags = await flags_between(context, old, new)
    paths = tuple(change.path for change in await context.mirror.diff(old, new))
    return Sight(replace(now, flags=to_name(flags), findings=findings(flags)), flags, paths, policies)


def may_approve(context: TaskContext, seen: Sight, approval: Approval) -> Decision:
    """May this person's approval of this change count?"""
    person = Person(approval.reviewer, approval.permission)
    facts = _facts_of(context, seen)
    question = MayApprove(person, facts, approval.flags, seen.policies.limits.two_person)
    return grounded(seen.policies.decide(question), seen.flags)


def asks_for_owners(policies: Policies) -> bool:
    """Whether the operator's limits or the repository's own rules look at code owners."""
    mine = (source.text for source in policies.sources if source.name == REPOSITORY_POLICY_PATH)
    return policies.limits.code_owners or any("missing_owners" in text for text in mine)


def may_land(context: TaskContext, seen: Sight, approval: Approval | None, standing: Sequence[Approval]) -> Decision:
    """May the change be made ready or merged, as approved by these people?"""
    named = approval.flags if approval is not None else ()
    repository = context.spec.subject.repository.id
    facts = _facts_of(context, seen)
    limits = seen.policies.limits
    missing = [path for owned in without_owner(seen.now, standing) for path in owned.paths]
    people = Approvers(
        len(standing), limits.approvals, limits.code_owners, seen.paths if seen.now.owners_fault else tuple(missing)
    )
    question = MayLand(context.spec.id, repository, facts, LandingMode.MERGE, bool(standing), named, people)
    return grounded(seen.policies.decide(question), seen.flags)


def _facts_of(context: TaskContext, seen: Sight) -> ChangeFacts:
    pull = seen.now.pull
    return _facts(context, pull.author, (pull.head_ref, pull.base_ref), seen.paths, seen.flags)


def _facts(
    context: TaskContext, author: Actor, refs: tuple[str, str], paths: tuple[str, ...], flags: tuple[Flag, ...]
) -> ChangeFacts:
    return ChangeFacts(
        repository=context.spec.subject.repository.id,
        author=author,
        requester=context.spec.requester,
        branch=refs[0],
        base=refs[1],
        paths=paths,
        verified=True,
        flags=to_name(flags),
        denied=tuple(flag.name for flag in denied(flags)),
    )
