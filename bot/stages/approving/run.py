"""Reads everything the gate decides on, afresh: GitHub's own state, and git objects fetched by full id."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.custody.digest import change_digest
from bot.custody.mirror import Mirror, Upstream
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import RepositoryId, TreeId
from bot.domain.pull import Permission, PullRequest, Review, Snapshot
from bot.providers.forge.port import Forge, ForgeGone

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
    refs = {f"refs/pull/{view.number}/head": pull.head_sha}
    await mirror.fetch(upstream, commits=(pull.base_sha,), refs=refs)
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
