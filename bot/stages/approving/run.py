"""Reads everything the gate decides on, afresh: GitHub's own state, and git objects fetched by full id."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.custody.digest import change_digest
from bot.custody.faults import UpstreamFault
from bot.custody.mirror import Mirror, Upstream
from bot.domain.errors import Transient
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import RepositoryId, TreeId
from bot.domain.pull import Permission, PullRequest, Review, Snapshot
from bot.providers.forge.port import Forge, ForgeGone

_MOVED = frozenset({"ref_moved", "commit_absent"})
_COUNTING = frozenset({ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED})


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """What does not change while a task lives: which pull request, who the bot is, which trees passed."""

    repository: RepositoryId
    number: int
    bot: Actor
    verified_trees: tuple[TreeId, ...]
    people: tuple[str, ...] = ()
    """Logins whose permission is read besides the reviewers'."""


async def look(view: Viewpoint, *, forge: Forge, mirror: Mirror, upstream: Upstream) -> Snapshot:
    """A snapshot for the gate. Raises ForgeGone when pull request or base branch are gone, Transient when GitHub is."""
    pull = await forge.pull(view.number)
    reviews = await forge.reviews(view.number)
    pull = await _with_fresh_base(pull, forge)
    await fetch_head(mirror, upstream, pull)
    digest = await change_digest(mirror, pull.base_ref, pull.base_sha, pull.head_sha)
    return Snapshot(
        repository=view.repository,
        pull=pull,
        reviews=reviews,
        permissions=await _permissions(forge, reviews, view.people),
        digest=digest,
        merge_tree=await mirror.merge_tree(pull.base_sha, pull.head_sha),
        bot=view.bot,
        verified_trees=view.verified_trees,
    )


async def fetch_head(mirror: Mirror, upstream: Upstream, pull: PullRequest) -> None:
    """Head and base of the pull request into the mirror. Transient when one of them moved since it was read: read again."""
    refs = {f"refs/pull/{pull.number}/head": pull.head_sha}
    try:
        await mirror.fetch(upstream, commits=(pull.base_sha,), refs=refs)
    except UpstreamFault as fault:
        if fault.rule not in _MOVED:
            raise
        raise Transient(f"the pull request moved while it was read ({fault})", 0.5) from fault


async def _with_fresh_base(pull: PullRequest, forge: Forge) -> PullRequest:
    """`base.sha` of the API may lag behind the branch; the gate decides on the tip."""
    tip = await forge.branch_head(pull.base_ref)
    if tip is None:
        raise ForgeGone(f"the base branch {pull.base_ref} does not exist any more")
    return replace(pull, base_sha=tip)


async def _permissions(
    forge: Forge, reviews: tuple[Review, ...], people: tuple[str, ...]
) -> tuple[tuple[str, Permission], ...]:
    logins = sorted({*people, *(review.reviewer.login for review in reviews if review.state in _COUNTING)})
    return tuple([(login, await forge.permission(login)) for login in logins])
