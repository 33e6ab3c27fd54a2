"""Publishes through the Git Data API. Each function looks before it acts, so that it may be repeated after any crash."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.custody.mirror import EMPTY_TREE, Mirror
from bot.domain.change import FileMode, TreeEntry
from bot.domain.errors import CustodyError
from bot.domain.ids import CommentId, CommitId, TreeId
from bot.domain.pull import PullRequest
from bot.domain.verdict import VerifiedChange
from bot.providers.forge.port import CheckReport, Comment, CommitRecord, Forge, ForgeRefused, NewPull

NOT_READY = "not ready"
"""The label in place of a draft."""


@dataclass(frozen=True, slots=True)
class PublishedCommit:
    """The commit on the bot's branch, with the tree GitHub reports for it. `moved`: it is somebody else's, ours is not there."""

    commit: CommitId
    tree: TreeId
    moved: bool = False


async def publish_commit(
    verified: VerifiedChange, *, forge: Forge, mirror: Mirror, branch: str, parent: CommitId, message: str
) -> PublishedCommit:
    """The verified tree as a commit on `branch`, after `parent`; or, `moved`, what somebody else pushed there meanwhile.

    Raises CustodyError unless GitHub's tree id is the tested one.
    """
    change = verified.change
    head = await forge.branch_head(branch)
    if head is not None:
        record = await forge.commit(head)
        if record.tree == change.tree and record.parents == (parent,):
            return PublishedCommit(record.id, record.tree)
        if head != parent:
            return PublishedCommit(record.id, record.tree, moved=True)
    parent_tree = await mirror.tree_of(parent)
    paths = await mirror.diff(parent_tree, change.tree)
    put = tuple(path.new for path in paths if path.new is not None)
    removed = tuple(path.path for path in paths if path.new is None)
    await _send_blobs(forge, mirror, put)
    tree = await forge.create_tree(parent_tree, put, removed)
    if tree != change.tree:
        raise CustodyError(f"GitHub made tree {tree} of the tested tree {change.tree}; nothing was published")
    record = await forge.create_commit(message, tree, (parent,))
    if record.tree != change.tree:
        raise CustodyError(f"the commit holds tree {record.tree}, not the tested {change.tree}; nothing was published")
    if head is None:
        await forge.create_branch(branch, record.id)
    else:
        return await _advance(forge, branch, record)
    return PublishedCommit(record.id, record.tree)


async def _advance(forge: Forge, branch: str, ours: CommitRecord) -> PublishedCommit:
    """Fast-forward only; refused, the branch is looked at once more."""
    try:
        await forge.advance_branch(branch, ours.id)
    except ForgeRefused:
        head = await forge.branch_head(branch)
        if head is None or head == ours.parents[0]:
            raise
        theirs = await forge.commit(head)
        return PublishedCommit(theirs.id, theirs.tree, moved=theirs.id != ours.id)
    return PublishedCommit(ours.id, ours.tree)


async def _send_blobs(forge: Forge, mirror: Mirror, put: tuple[TreeEntry, ...]) -> None:
    wanted = dict.fromkeys(entry.blob for entry in put if entry.mode is not FileMode.GITLINK)
    contents = await mirror.blobs(wanted)
    for blob in wanted:
        got = await forge.create_blob(contents[blob])
        if got != blob:
            raise CustodyError(f"GitHub stored blob {got} for our {blob}")


async def publish_artefacts(
    entries: tuple[TreeEntry, ...], *, forge: Forge, mirror: Mirror, branch: str, message: str
) -> CommitId:
    """A commit that holds just these files, on a branch without any history of the repository; the one there already if it is alike."""
    tree = await mirror.write_tree(EMPTY_TREE, put=entries)
    head = await forge.branch_head(branch)
    if head is not None and (await forge.commit(head)).tree == tree:
        return head
    await _send_blobs(forge, mirror, entries)
    made = await forge.create_tree(EMPTY_TREE, entries, ())
    if made != tree:
        raise CustodyError(f"GitHub made tree {made} of the artefacts' tree {tree}; nothing was stored")
    record = await forge.create_commit(message, tree, () if head is None else (head,))
    if head is None:
        await forge.create_branch(branch, record.id)
    else:
        await forge.advance_branch(branch, record.id)
    return record.id


async def open_draft(forge: Forge, new: NewPull) -> PullRequest:
    """The draft pull request of the branch: the one that is open already, or a new one."""
    existing = await forge.find_pull(new.head, new.base)
    if existing is not None:
        return existing
    try:
        return await forge.create_pull(new)
    except ForgeRefused as refusal:
        appeared = await forge.find_pull(new.head, new.base)
        if appeared is not None:
            return appeared
        if not (new.draft and "draft" in refusal.message.lower()):
            raise
    return await _without_draft(forge, replace(new, draft=False))


async def _without_draft(forge: Forge, new: NewPull) -> PullRequest:
    """Some plans have no drafts in private repositories: a label says what the draft would have said, and the check stays red."""
    pull = await forge.create_pull(new)
    await forge.add_label(pull.number, NOT_READY)
    return pull


async def take_back(forge: Forge, pull: PullRequest) -> None:
    """Back to a draft, so that nobody merges it by mistake; where there are no drafts, by the label."""
    if pull.draft:
        return
    try:
        await forge.convert_to_draft(pull.node_id)
    except ForgeRefused:
        await forge.add_label(pull.number, NOT_READY)


async def post_sticky(forge: Forge, number: int, *, bot_login: str, marker: str, body: str) -> CommentId:
    """Edit our one comment that carries `marker`, or create it. Comments of others that carry it are not ours."""
    existing = await find_own(forge, number, bot_login=bot_login, marker=marker)
    if existing is None:
        return (await forge.create_comment(number, body)).id
    if existing.body != body:
        await forge.update_comment(existing.id, body)
    return existing.id


async def find_own(forge: Forge, number: int, *, bot_login: str, marker: str) -> Comment | None:
    """Our own comment whose first line is `marker`."""
    for comment in await forge.comments(number):
        if comment.author.login == bot_login and comment.body.startswith(marker):
            return comment
    return None


async def report_check(forge: Forge, report: CheckReport) -> None:
    """Create the check run on this head or bring the existing one up to date."""
    existing = await forge.find_check(report.head, report.name)
    await forge.report_check(report, existing)
