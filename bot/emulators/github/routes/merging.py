"""Merging a pull request: every refusal first, then a real three-way merge, then a compare-and-swap on the base."""

from __future__ import annotations

from dataclasses import dataclass

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.config import Protection
from bot.emulators.github.consequences import Moved, after_refs_moved, settle_merged
from bot.emulators.github.errors import ApiError, forbidden, not_accessible, not_found
from bot.emulators.github.gitside import history
from bot.emulators.github.gitside.bare import ZERO, is_sha
from bot.emulators.github.gitside.commits import Draft, Identity, read_commit, read_commits, web_flow, write_commit
from bot.emulators.github.records import CheckRun, Issue, Pull, Review, User
from bot.emulators.github.routes.issues import close_mentioned
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.webhooks.events import on_pull
from bot.emulators.github.world import at_least

_R = "/repos/{owner}/{repo}/pulls/{number}"
_REFUSED_METHOD = {
    "merge": "Merge commits are not allowed on this repository.",
    "squash": "Squash merges are not allowed on this repository.",
    "rebase": "Rebase merges are not allowed on this repository.",
}
_BASE_MODIFIED = "Base branch was modified. Review and try the merge again."
_HEAD_MODIFIED = "Head branch was modified. Review and try the merge again."


@dataclass(frozen=True, slots=True)
class _Merge:
    """One attempt, from the base tip it saw."""

    issue: Issue
    pull: Pull
    method: str
    base: str
    title: str
    message: str


async def is_merged(call: Call) -> Reply:
    if not call.pull()[1].merged:
        raise not_found()
    return Reply(status=204)


async def merge(call: Call) -> Reply:
    issue, pull = call.pull()
    method = call.body.one_of("merge_method", tuple(_REFUSED_METHOD), "merge") or "merge"
    await _refuse(call, issue, pull, method)
    base = await call.bare.ref(f"refs/heads/{pull.base_ref}")
    if base is None:
        raise ApiError(405, "Pull Request is not mergeable")
    title, message = await _words(call, issue, pull, method, base)
    attempt = _Merge(issue, pull, method, base, title, message)
    sha = await _build(call, attempt)
    if call.world.faults.base_moves(call.path):
        await _move_base(call, pull, base)
    if sha is None:
        raise ApiError(405, "Pull Request is not mergeable")
    if not await call.bare.move(f"refs/heads/{pull.base_ref}", sha, base):
        raise ApiError(405, _BASE_MODIFIED)
    await _finish(call, attempt, sha)
    return Reply({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


async def _refuse(call: Call, issue: Issue, pull: Pull, method: str) -> None:
    wanted = call.body.optional_text("sha")
    if wanted is not None and not is_sha(wanted):
        raise ApiError(422, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    if issue.state != "open" or pull.merged:
        raise ApiError(405, "Pull Request is not mergeable")
    if wanted is not None and wanted != pull.head_sha:
        raise ApiError(409, _HEAD_MODIFIED)
    if pull.draft:
        raise ApiError(405, "Pull Request is still a draft")
    if method not in call.repository.merge_methods:
        raise ApiError(405, _REFUSED_METHOD[method])
    rule = call.repository.protections.get(pull.base_ref)
    if rule is not None:
        _refuse_by_rules(call, pull, rule, method)
    await _refuse_workflows(call, pull)


def _refuse_by_rules(call: Call, pull: Pull, rule: Protection, method: str) -> None:
    violations: list[str] = []
    if rule.merge_queue:
        violations.append("Changes must be made through the merge queue")
    if method not in rule.allowed_merge_methods:
        violations.append(_REFUSED_METHOD[method])
    verdicts = _verdicts(call, pull)
    if any(review.state == "CHANGES_REQUESTED" for review in verdicts):
        violations.append("Changes were requested by a reviewer with write access.")
    counting = [review for review in verdicts if _counts(pull, rule, review)]
    missing = rule.required_approving_review_count
    if len(counting) < missing:
        noun = "review is" if missing == 1 else "reviews are"
        violations.append(f"At least {missing} approving {noun} required by reviewers with write access.")
    passed = {check.name for check in _green(call, pull.head_sha)}
    passed |= {
        item.context for item in call.repository.statuses if item.sha == pull.head_sha and item.state == "success"
    }
    violations += [
        f'Required status check "{name}" is expected.' for name in rule.required_status_checks if name not in passed
    ]
    if violations:
        raise ApiError(405, "Repository rule violations found\n\n" + "\n\n".join(violations) + "\n\n")


def _green(call: Call, sha: str) -> list[CheckRun]:
    latest = {check.name: check for check in call.repository.checks if check.head_sha == sha}
    return [check for check in latest.values() if check.conclusion in {"success", "neutral", "skipped"}]


def _verdicts(call: Call, pull: Pull) -> list[Review]:
    """The latest verdict of everybody with write access; plain comments don't replace one."""
    latest: dict[User, Review] = {}
    for review in pull.reviews:
        if review.state in {"APPROVED", "CHANGES_REQUESTED", "DISMISSED"}:
            latest[review.user] = review
    return [review for user, review in latest.items() if at_least(call.world.role(call.repository, user), "write")]


def _counts(pull: Pull, rule: Protection, review: Review) -> bool:
    if review.state != "APPROVED":
        return False
    return not (rule.require_last_push_approval and review.user is pull.last_pusher)


async def _refuse_workflows(call: Call, pull: Pull) -> None:
    if not call.by_app or call.actor.may("workflows", "write"):
        return
    path = await history.touched_workflows(call.bare, pull.head_sha, f"refs/heads/{pull.base_ref}")
    if path:
        raise forbidden(
            f"refusing to allow a GitHub App to create or update workflow `{path}` without `workflows` permission"
        )


async def _words(call: Call, issue: Issue, pull: Pull, method: str, base: str) -> tuple[str, str]:
    """Title and message: what the caller says, else what GitHub makes of the editable title and the commits."""
    owner = pull.head_repository.owner.login
    if method == "squash":
        title = f"{issue.title} (#{issue.number})"
        shas = await history.between(call.bare, base, pull.head_sha)
        parts = [commit.message.strip() for commit in await read_commits(call.bare, shas)]
        message = "\n\n".join(f"* {part}" for part in parts) if len(parts) > 1 else ""
    else:
        title = f"Merge pull request #{issue.number} from {owner}/{pull.head_ref}"
        message = issue.title
    title = call.body.optional_text("commit_title", title) or title
    given = call.body.optional_text("commit_message")
    return title, message if given is None else given


async def _build(call: Call, attempt: _Merge) -> str | None:
    """The new tip of the base, not yet pointed at; None on conflict."""
    now = call.world.clock.now()
    own = Identity(call.user.login, call.user.email, now)
    if attempt.method == "rebase":
        return await _replayed(call, attempt)
    tree = await history.merged_tree(call.bare, attempt.base, attempt.pull.head_sha)
    if tree is None:
        return None
    parents: tuple[str, ...] = (attempt.base, attempt.pull.head_sha)
    if attempt.method == "squash":
        author = attempt.issue.user
        own = Identity(author.login, author.email, now)
        parents = (attempt.base,)
    text = f"{attempt.title}\n\n{attempt.message}".rstrip("\n") + "\n"
    return await write_commit(call.bare, Draft(tree, parents, text, own, web_flow(now), sign=True))


async def _replayed(call: Call, attempt: _Merge) -> str | None:
    tip = attempt.base
    for sha in await history.between(call.bare, attempt.base, attempt.pull.head_sha):
        if len((await read_commit(call.bare, sha)).parents) > 1:
            return None
        moved = await history.replay(call.bare, sha, tip, web_flow(call.world.clock.now()))
        if moved is None:
            return None
        tip = moved
    return tip


async def _finish(call: Call, attempt: _Merge, sha: str) -> None:
    """The pull request is closed before the push is announced, so that it is not seen as merged by the push."""
    place = scene(call)
    pull, issue = attempt.pull, attempt.issue
    settle_merged(place, issue, sha)
    on_pull(place, "closed", issue)
    await after_refs_moved(place, [Moved(f"refs/heads/{pull.base_ref}", attempt.base, sha)])
    if pull.base_ref == call.repository.default_branch:
        close_mentioned(place, f"{issue.body or ''}\n{attempt.title}\n{attempt.message}")
    if call.repository.delete_branch_on_merge and pull.head_repository is call.repository:
        await call.bare.drop(f"refs/heads/{pull.head_ref}")
        await after_refs_moved(place, [Moved(f"refs/heads/{pull.head_ref}", pull.head_sha, ZERO)])


async def _move_base(call: Call, pull: Pull, base: str) -> None:
    """The misfortune `base_moves`: somebody else's commit lands between the merge and the swap."""
    tip = await read_commit(call.bare, base)
    now = web_flow(call.world.clock.now())
    sha = await write_commit(call.bare, Draft(tip.tree, (base,), "Somebody else's commit\n", now, now))
    await call.bare.move(f"refs/heads/{pull.base_ref}", sha, base)
    await after_refs_moved(scene(call), [Moved(f"refs/heads/{pull.base_ref}", base, sha)])


async def update_branch(call: Call) -> Reply:
    """Merge the base into the head: a new head that nobody has reviewed. Apps are not let in here."""
    issue, pull = call.pull()
    if call.by_app or pull.head_repository is not call.repository:
        raise not_accessible()
    expected = call.body.optional_text("expected_head_sha")
    if expected is not None and expected != pull.head_sha:
        raise ApiError(422, "expected head sha didn\u2019t match current head ref.")
    base = await call.bare.ref(f"refs/heads/{pull.base_ref}")
    if issue.state != "open" or base is None or await history.is_ancestor(call.bare, base, pull.head_sha):
        raise ApiError(422, "There are no new commits on the base branch.")
    tree = await history.merged_tree(call.bare, pull.head_sha, base)
    if tree is None:
        raise ApiError(422, "merge conflict between base and head")
    now = call.world.clock.now()
    author = Identity(call.user.login, call.user.email, now)
    text = f"Merge branch '{pull.base_ref}' into {pull.head_ref}\n"
    draft = Draft(tree, (pull.head_sha, base), text, author, web_flow(now), sign=True)
    sha = await write_commit(call.bare, draft)
    old, name = pull.head_sha, f"refs/heads/{pull.head_ref}"
    if not await call.bare.move(name, sha, old):
        raise ApiError(422, "Head branch was modified.")
    await after_refs_moved(scene(call), [Moved(name, old, sha)])
    url = call.urls.repo(call.repository.full_name, f"/pulls/{issue.number}")
    return Reply({"message": "Updating pull request branch.", "url": url}, 202)


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/merge": is_merged,
    f"PUT {_R}/merge": merge,
    f"PUT {_R}/update-branch": update_branch,
}
