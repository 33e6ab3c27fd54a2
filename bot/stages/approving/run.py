"""Reads everything the gate decides on, afresh: GitHub's own state, and git objects fetched by full id."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from bot.custody.digest import change_digest
from bot.custody.faults import OverLimit, UpstreamFault
from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.domain.change import ChangeDigest
from bot.domain.errors import Transient
from bot.domain.event import Actor, ReviewState
from bot.domain.ids import CommitId, RepositoryId, TreeId
from bot.domain.pull import Owned, Permission, PullRequest, Review, Snapshot
from bot.policy.owners import LONGEST, PLACES, read_owners
from bot.providers.forge.port import Forge, ForgeGone, ForgeRefused

_MOVED = frozenset({"ref_moved", "commit_absent"})
_COUNTING = frozenset({ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED})


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """What does not change while a task lives: which pull request, who the bot is, which trees passed."""

    repository: RepositoryId
    number: int
    bot: Actor
    verified_trees: tuple[TreeId, ...]
    failed_trees: tuple[TreeId, ...] = ()
    people: tuple[str, ...] = ()
    """Logins whose permission is read besides the reviewers'."""
    code_owners: bool = False
    """Whether the rules ask for code owners."""


async def look(view: Viewpoint, *, forge: Forge, mirror: Mirror, upstream: Upstream) -> Snapshot:
    """A snapshot for the gate. Raises ForgeGone when pull request or base branch are gone, Transient when GitHub is."""
    pull = await forge.pull(view.number)
    reviews = await forge.reviews(view.number)
    pull = await with_fresh_base(pull, forge)
    await fetch_head(mirror, upstream, pull)
    digest = await change_digest(mirror, pull.base_ref, pull.base_sha, pull.head_sha)
    approvers = {*view.people, *(review.reviewer.login for review in reviews if review.state is ReviewState.APPROVED)}
    owned: tuple[tuple[Owned, ...], str] = ((), "")
    if view.code_owners:
        owned = await owners_of(digest, pull.base_sha, approvers, forge=forge, mirror=mirror)
    return Snapshot(
        repository=view.repository,
        pull=pull,
        reviews=reviews,
        permissions=await _permissions(forge, reviews, view.people),
        digest=digest,
        merge_tree=await mirror.merge_tree(pull.base_sha, pull.head_sha),
        bot=view.bot,
        verified_trees=view.verified_trees,
        failed_trees=view.failed_trees,
        owned=owned[0],
        owners_fault=owned[1],
    )


async def owners_of(
    change: ChangeDigest, base: CommitId, approvers: AbstractSet[str], *, forge: Forge, mirror: Mirror
) -> tuple[tuple[Owned, ...], str]:
    """The changed paths that have code owners by the base's own file, and which approvers are owners; or why nobody can tell."""
    place, text = "", b""
    for path in PLACES:
        try:
            found = await mirror.file_at(base, path, limit=LONGEST)
        except OverLimit:
            return (), f"`{path}` is longer than GitHub reads"
        if found is not None:
            place, text = path, found
            break
    owners = read_owners(text.decode("utf-8", "replace"))
    if owners.faults:
        return (), f"`{place}`, line {owners.faults[0].line}: {owners.faults[0].message}"
    changes = await mirror.diff(change.merge_base_tree, change.head_tree)
    groups = owners.groups(each.path for each in changes)
    members = _Members(forge)
    return tuple([await _owned(names, paths, approvers, members) for names, paths in groups.items()]), ""


async def _owned(
    names: tuple[str, ...], paths: tuple[str, ...], approvers: AbstractSet[str], members: _Members
) -> Owned:
    people: set[str] = set()
    unknown: list[str] = []
    for name in names:
        if "/" in name and name.startswith("@"):
            people |= {login.lower() for login in sorted(approvers) if await members.on(name[1:], login)}
            unknown += [f"`{name}`: {members.unreadable}."] if members.unreadable else []
        elif name.startswith("@"):
            people |= {login.lower() for login in approvers if login.lower() == name[1:].lower()}
        else:
            unknown.append(f"Whose address `{name}` is cannot be told; name the account instead.")
    resolvable = len(unknown) < len(names)
    return Owned(names, paths, tuple(sorted(people)), "" if resolvable else " ".join(unknown))


class _Members:
    """Who is on which team, asked once for each; `unreadable` says why that cannot be told."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._known: dict[tuple[str, str], bool] = {}
        self.unreadable = ""

    async def on(self, team: str, login: str) -> bool:
        key = (team.lower(), login.lower())
        if self.unreadable:
            return False
        if key not in self._known:
            try:
                self._known[key] = await self._forge.on_team(team, login)
            except (ForgeGone, ForgeRefused):
                self.unreadable = "the App may not read who is on a team (permission `members: read`)"
                return False
        return self._known[key]


async def fetch_head(mirror: Mirror, upstream: Upstream, pull: PullRequest) -> None:
    """Head and base of the pull request into the mirror. Transient when one of them moved since it was read: read again."""
    refs = {f"refs/pull/{pull.number}/head": pull.head_sha}
    try:
        await mirror.fetch(upstream, commits=(pull.base_sha,), refs=refs)
    except UpstreamFault as fault:
        if fault.rule not in _MOVED:
            raise
        raise Transient(f"the pull request moved while it was read ({fault})", 0.5) from fault


async def with_fresh_base(pull: PullRequest, forge: Forge) -> PullRequest:
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
