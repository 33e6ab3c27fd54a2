"""Acts on an approval: draft → ready → merged. Everything is read again immediately before each act."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.custody.digest import change_digest
from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.domain.decision import Decision
from bot.domain.errors import Transient
from bot.domain.ids import CommitId, TreeId
from bot.domain.pull import Approval, Snapshot
from bot.domain.repository import LandingMode
from bot.providers.forge.port import Forge, ForgeRefused
from bot.stages.landing import texts

_BEHIND = 30

Look = Callable[[], Awaitable[Snapshot]]
Decide = Callable[[Snapshot], Decision]


@dataclass(frozen=True, slots=True)
class Landing:
    """What became of it. `decision` is the gate's last word; `merged` names the commit that landed, `alarm` that it is wrong."""

    decision: Decision
    ready: bool = False
    merged: CommitId | None = None
    merged_tree: TreeId | None = None
    note: str = ""
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class LandingWork:
    """What to land: the approval (only `stages/approving` builds one), how far to go, the title of the squash commit."""

    approval: Approval
    mode: LandingMode
    title: str
    not_ready: str = ""
    """The label that stands for a draft where there are none."""


async def land(
    work: LandingWork, *, forge: Forge, mirror: Mirror, upstream: Upstream, look: Look, decide: Decide
) -> Landing:
    """Mark ready and, when asked for, merge. A refusal of the gate or of GitHub is a value.

    It looks again after marking ready, for whatever happened just before: the caller makes a draft of it again.
    """
    where = _Where(forge, mirror, upstream)
    now = await look()
    if now.pull.merged:
        return await _verify(work, decide(now), where, await _found(where, work.approval), now)
    decision = decide(now)
    if not decision.allowed:
        return Landing(decision)
    if now.pull.draft:
        await forge.mark_ready(now.pull.node_id)
    elif work.not_ready:
        await forge.remove_label(now.pull.number, work.not_ready)
    now = await look()
    decision = decide(now)
    if not decision.allowed:
        return Landing(decision)
    if work.mode is LandingMode.READY:
        return Landing(decision, ready=True)
    message = texts.squash_message(work.title, now.pull.number, work.approval.digest, work.approval.reviewer.login)
    subject, _, body = message.partition("\n\n")
    landed: CommitId | None
    try:
        landed = await forge.merge(now.pull.number, head=work.approval.head_sha, title=subject, message=body)
    except ForgeRefused as refusal:
        return Landing(decision, ready=True, note=texts.github_refused(refusal.message))
    except Transient:
        if not (await forge.pull(now.pull.number)).merged:
            raise
        landed = await _found(where, work.approval)
    return await _verify(work, decision, where, landed, now)


@dataclass(frozen=True, slots=True)
class _Where:
    forge: Forge
    mirror: Mirror
    upstream: Upstream


async def _verify(
    work: LandingWork, decision: Decision, where: _Where, landed: CommitId | None, now: Snapshot
) -> Landing:
    """Compare what landed with what was approved, from git objects, and where it landed: no guard of GitHub's covers the branch."""
    approval = work.approval
    base_ref = (await where.forge.pull(approval.pull_number)).base_ref
    if base_ref != approval.base_ref or landed is None:
        note = texts.elsewhere(base_ref, approval.base_ref)
        return Landing(decision, ready=True, merged=landed or approval.head_sha, note=note, alarm=True)
    await where.mirror.fetch(where.upstream, commits=(landed,))
    record = await where.forge.commit(landed)
    tree = await where.mirror.tree_of(landed)
    expected = await where.mirror.merge_tree(record.parents[0], approval.head_sha) if record.parents else None
    note = texts.merged(landed, tree)
    other = await _another_change(where, approval, landed, record.parents)
    if other:
        note = texts.another_change(landed, other, approval.digest)
    elif tree != record.tree or tree != expected:
        note = texts.differs(landed, tree, expected or approval.merge_tree)
    elif tree not in now.verified_trees:
        note = texts.untested(landed, tree)
    alarm = note != texts.merged(landed, tree)
    return Landing(decision, ready=True, merged=landed, merged_tree=tree, note=note, alarm=alarm)


async def _another_change(where: _Where, approval: Approval, landed: CommitId, parents: tuple[CommitId, ...]) -> str:
    """The digest of what the merge brought, when a base that was rewritten made another change of it."""
    if not parents or landed == approval.head_sha:
        return ""
    if await where.mirror.merge_base(parents[0], approval.head_sha) == approval.merge_base:
        return ""
    brought = await change_digest(where.mirror, approval.base_ref, parents[0], approval.head_sha)
    return "" if brought.value == approval.digest else brought.value


async def _found(where: _Where, approval: Approval) -> CommitId | None:
    """The merge nobody told us the id of: the newest commit of the base, behind at most a few others, that has the change.

    None as well when the base is gone, renamed or deleted.
    """
    tip = await where.forge.branch_head(approval.base_ref)
    if tip is None:
        return None
    await where.mirror.fetch(where.upstream, commits=(tip,))
    commit = tip
    for _ in range(_BEHIND):
        record = await where.forge.commit(commit)
        if (
            record.message.partition("\n")[0].endswith(f"(#{approval.pull_number})")
            or approval.head_sha in {*record.parents, record.id}
            or record.tree == approval.merge_tree
        ):
            return commit
        if not record.parents:
            break
        commit = record.parents[0]
    return None
