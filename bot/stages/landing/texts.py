"""What people read of this stage."""

from __future__ import annotations

from bot.domain.ids import CommitId, TreeId, short


def squash_message(title: str, number: int, digest: str, reviewer: str) -> str:
    """The message of the squash commit: ours, never taken from the editable title or body of the pull request."""
    return f"{title} (#{number})\n\nChange digest {digest}, approved by {reviewer}.\n"


def merged(commit: CommitId, tree: TreeId) -> str:
    """The good end."""
    return f"Merged as `{short(commit)}`. Its tree `{tree}` is the one that was tested and approved."


def differs(commit: CommitId, tree: TreeId, expected: TreeId) -> str:
    """The alarm: something landed that nobody approved."""
    return (
        f"**Alarm: the merged commit `{commit}` holds tree `{tree}`, but `{expected}` was approved.** "
        "Somebody has to look at what landed now; consider reverting it."
    )


def elsewhere(base_ref: str, approved: str) -> str:
    """The alarm: it landed on another branch, or nobody can tell where."""
    if base_ref == approved:
        return f"**Alarm: the pull request is merged, but `{approved}` does not hold the merge.** Somebody has to look."
    return (
        f"**Alarm: the change was merged into `{_name(base_ref)}`, but it was approved for `{approved}`.** "
        "The pull request was retargeted at the last moment. Somebody has to look at that branch now; consider reverting."
    )


def another_change(commit: CommitId, digest: str, approved: str) -> str:
    """The alarm: the base was rewritten at the last moment, so that other lines landed with the approved head."""
    return (
        f"**Alarm: the merge `{short(commit)}` brought the change `{short(digest)}`, but `{short(approved)}` was approved.** "
        "The base branch was rewritten at the last moment. Somebody has to look at what landed; consider reverting."
    )


def untested(commit: CommitId, tree: TreeId) -> str:
    """The alarm: the approved change landed on a base that moved at the last moment."""
    return (
        f"**Alarm: the change was merged as `{short(commit)}` on a base that had just moved.** "
        f"The approved change landed, but the checks have not run on the result, tree `{tree}`. Run them now."
    )


def _name(ref: str) -> str:
    return ref.replace("`", "'")


def github_refused(message: str) -> str:
    """GitHub said no at the last moment."""
    return f"GitHub did not merge: {message} Nothing landed; the gate looks again when something changes."
