"""What a moved ref means: push events, pull requests that advance, close or turn out merged, stale approvals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.emulators.github.gitside import history
from bot.emulators.github.gitside.bare import ZERO
from bot.emulators.github.gitside.commits import Draft, read_commits, web_flow, write_commit
from bot.emulators.github.records import Issue, Pull, Statistics
from bot.emulators.github.webhooks.events import Push, Scene, on_pull, on_push, on_review
from bot.emulators.github.world import World

_MOST_COMMITS = 250


@dataclass(frozen=True, slots=True)
class Moved:
    """One ref that changed; ZERO stands for absent."""

    ref: str
    old: str
    new: str


async def after_refs_moved(scene: Scene, moved: Sequence[Moved]) -> None:
    """Called with the repository's lock held, after the refs have their new values."""
    scene.repository.pushed_at = scene.repository.updated_at = scene.world.clock.now()
    for move in moved:
        await _announce(scene, move)
    for move in moved:
        if move.ref.startswith("refs/heads/"):
            await _head_moved(scene, move)
            await _base_moved(scene, move)


async def _announce(scene: Scene, move: Moved) -> None:
    bare = scene.world.bare(scene.repository)
    forced = False
    shas: list[str] = []
    if ZERO not in (move.old, move.new):
        forced = not await history.is_ancestor(bare, move.old, move.new)
        shas = await history.between(bare, move.old, move.new)
    elif move.new != ZERO and await bare.kind(move.new) == "commit":
        shas = [move.new]
    commits = await read_commits(bare, shas[-_MOST_COMMITS:])
    on_push(scene, Push(move.ref, move.old, move.new, forced, commits))


def _open_pulls(scene: Scene) -> list[tuple[Issue, Pull]]:
    return [(issue, pull) for issue, pull in scene.repository.pulls() if issue.state == "open"]


async def _head_moved(scene: Scene, move: Moved) -> None:
    """Pull requests from this branch: into the same repository, or from this fork into its parent."""
    for issue, pull in _open_pulls(scene):
        if _is_head(scene, pull, move):
            await _follow_head(scene, issue, pull, move)
    parent = scene.repository.parent
    if parent is None:
        return
    there = replace(scene, repository=parent)
    async with parent.lock:
        for issue, pull in _open_pulls(there):
            if _is_head(scene, pull, move):
                if move.new != ZERO:
                    await scene.world.bare(parent).borrow(scene.repository.git_dir, move.ref)
                await _follow_head(there, issue, pull, move)


def _is_head(scene: Scene, pull: Pull, move: Moved) -> bool:
    return pull.head_repository is scene.repository and f"refs/heads/{pull.head_ref}" == move.ref


async def _follow_head(scene: Scene, issue: Issue, pull: Pull, move: Moved) -> None:
    if move.new == ZERO:
        close(scene, issue)
        on_pull(scene, "closed", issue)
    elif pull.head_sha != move.new:
        await _synchronize(scene, issue, pull, move)


async def _synchronize(scene: Scene, issue: Issue, pull: Pull, move: Moved) -> None:
    bare = scene.world.bare(scene.repository)
    before, pull.head_sha = pull.head_sha, move.new
    pull.heads.append(move.new)
    pull.last_pusher = scene.sender
    pull.base_sha = await bare.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
    issue.updated_at = scene.world.clock.now()
    await bare.force(f"refs/pull/{issue.number}/head", move.new)
    await refresh(scene.world, scene, issue)
    await _review_fate(scene, issue, pull, before)
    on_pull(scene, "synchronize", issue, before=before, after=move.new)


async def _review_fate(scene: Scene, issue: Issue, pull: Pull, before: str) -> None:
    """Approvals after a push: re-bound when the patch is the same and it was forced, else dismissed if configured."""
    bare = scene.world.bare(scene.repository)
    same = await _same_patch(scene, pull, before)
    if same and scene.world.config.rebind_identical_patch:
        if not await history.is_ancestor(bare, before, pull.head_sha):
            for review in pull.reviews:
                if review.commit_id == before:
                    review.commit_id = pull.head_sha
        return
    rule = scene.repository.protections.get(pull.base_ref)
    if rule and rule.dismiss_stale_reviews_on_push and not same:
        dismiss_approvals(scene, issue)


async def _same_patch(scene: Scene, pull: Pull, before: str) -> bool:
    bare = scene.world.bare(scene.repository)
    old_base = await history.merge_base(bare, pull.base_sha, before)
    new_base = await history.merge_base(bare, pull.base_sha, pull.head_sha)
    if old_base is None or new_base is None:
        return False
    old = await history.patch_id(bare, old_base, before)
    return bool(old) and old == await history.patch_id(bare, new_base, pull.head_sha)


def dismiss_approvals(scene: Scene, issue: Issue) -> None:
    """GitHub's own dismissal; each one is announced."""
    for review in issue.pull.reviews if issue.pull else ():
        if review.state == "APPROVED":
            review.state = "DISMISSED"
            on_review(scene, "dismissed", issue, review)


async def _base_moved(scene: Scene, move: Moved) -> None:
    bare = scene.world.bare(scene.repository)
    for issue, pull in _open_pulls(scene):
        if f"refs/heads/{pull.base_ref}" != move.ref:
            continue
        if move.new == ZERO:  # a pull request into a branch that is gone is closed
            close(scene, issue)
            on_pull(scene, "closed", issue)
            continue
        pull.mergeable = None
        if await history.is_ancestor(bare, pull.head_sha, move.new):
            settle_merged(scene, issue, pull.head_sha)
            on_pull(scene, "closed", issue)


def settle_merged(scene: Scene, issue: Issue, commit_sha: str) -> None:
    """Record a merge, whoever brought it about."""
    if issue.pull is None:
        raise TypeError("only pull requests merge")
    close(scene, issue)
    issue.pull.merged_at = issue.closed_at
    issue.pull.merged_by = scene.sender
    issue.pull.merge_commit_sha = commit_sha


def close(scene: Scene, issue: Issue) -> None:
    issue.state = "closed"
    issue.closed_at = issue.updated_at = scene.world.clock.now()
    issue.closed_by = scene.sender
    if issue.pull:
        number = issue.number
        scene.world.start(scene.world.bare(scene.repository).drop(f"refs/pull/{number}/merge"))


async def refresh(world: World, scene: Scene, issue: Issue) -> None:
    """Recount a pull request and start computing whether it merges; until that is done `mergeable` is null."""
    pull = issue.pull
    if pull is None:
        return
    bare = world.bare(scene.repository)
    base = await bare.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
    fork = await history.merge_base(bare, base, pull.head_sha) or base
    files = await history.changes(bare, fork, pull.head_sha)
    pull.statistics = Statistics(
        commits=len(await history.between(bare, base, pull.head_sha)),
        additions=sum(item.additions for item in files),
        deletions=sum(item.deletions for item in files),
        changed_files=len(files),
    )
    pull.mergeable = None
    world.start(compute_mergeable(world, scene, issue))


async def compute_mergeable(world: World, scene: Scene, issue: Issue) -> None:
    """Try the merge for real; on success `refs/pull/N/merge` is the result, on conflict it stays what it was."""
    await asyncio.sleep(world.config.mergeable_delay_seconds)
    pull = issue.pull
    bare = world.bare(scene.repository)
    async with scene.repository.lock:
        if pull is None or issue.state != "open" or pull.mergeable is not None:
            return
        head = pull.head_sha
        base = await bare.ref(f"refs/heads/{pull.base_ref}")
        if base is None:
            return
        tree = await history.merged_tree(bare, base, head)
        if tree is None:
            pull.mergeable = False
            return
        author = web_flow(world.clock.now())
        message = f"Merge {head} into {base}"
        pull.merge_commit_sha = await write_commit(bare, Draft(tree, (base, head), message, author, author, sign=True))
        await bare.force(f"refs/pull/{issue.number}/merge", pull.merge_commit_sha)
        pull.mergeable = True
