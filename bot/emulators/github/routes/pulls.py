"""Routes of pull requests but for reviews and merging."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.consequences import compute_mergeable, dismiss_approvals, refresh
from bot.emulators.github.errors import ApiError, custom, forbidden, invalid, unprocessable
from bot.emulators.github.gitside import history
from bot.emulators.github.gitside.commits import read_commits
from bot.emulators.github.records import Issue, Pull, Repository, User
from bot.emulators.github.routes.issues import check_texts, open_issue, set_state
from bot.emulators.github.routes.paging import paged
from bot.emulators.github.routes.scene import scene
from bot.emulators.github.shapes import gitdata, people, pulls
from bot.emulators.github.webhooks.events import on_pull
from bot.emulators.github.world import at_least

_R = "/repos/{owner}/{repo}"
_MOST_FILES = 300
_MOST_LINES = 20_000
_MOST_BYTES = 1024 * 1024
_LISTED_FILES = 3000


async def list_pulls(call: Call) -> Reply:
    found = call.repository.pulls()
    state = call.query.get("state", "open")
    if state != "all":
        found = [(issue, pull) for issue, pull in found if issue.state == state]
    head = call.query.get("head")
    if head:
        found = [(issue, pull) for issue, pull in found if _label(pull).lower() == head.lower()]
    base = call.query.get("base")
    if base:
        found = [(issue, pull) for issue, pull in found if pull.base_ref == base]
    found.sort(key=lambda pair: pair[0].number, reverse=call.query.get("direction", "desc") == "desc")
    return paged(call, [pulls.simple(call.repository, issue, call.urls) for issue, _ in found])


async def create_pull(call: Call) -> Reply:
    title, body = call.body.text("title"), call.body.optional_text("body")
    (source, head), base = _head(call), call.body.text("base")
    check_texts(title, body)
    draft = call.body.flag("draft")
    if draft and not call.repository.drafts_supported:
        raise unprocessable("Draft pull requests are not supported in this repository.")
    head_sha, base_sha = await _tips(call, source, head, base)
    issue = open_issue(call.world, call.repository, call.user, title, body)
    number, node = call.world.ids.new("PR")
    issue.by_app = call.by_app
    issue.pull = Pull(
        id=number,
        node_id=node,
        head_repository=source,
        head_ref=head,
        head_sha=head_sha,
        base_ref=base,
        base_sha=base_sha,
        draft=draft,
        last_pusher=call.user,
        maintainer_can_modify=False,
        heads=[head_sha],
    )
    await call.bare.force(f"refs/pull/{issue.number}/head", head_sha)
    await refresh(call.world, scene(call), issue)
    on_pull(scene(call), "opened", issue)
    shape = pulls.pull(call.repository, issue, call.urls)
    return Reply(shape, 201, headers={"Location": shape["url"]})


def _label(pull: Pull) -> str:
    return f"{pull.head_repository.owner.login}:{pull.head_ref}"


def _head(call: Call) -> tuple[Repository, str]:
    """`branch`, or `owner:branch` of this repository or of a fork of it that the caller may write to."""
    head = call.body.text("head")
    owner, colon, ref = head.partition(":")
    if not colon:
        return call.repository, head
    if owner.lower() == call.repository.owner.login.lower():
        return call.repository, ref
    for fork in call.world.registry.repositories.values():
        if fork.parent is call.repository and fork.owner.login.lower() == owner.lower():
            if call.by_app or not at_least(call.world.role(fork, call.user), "write"):
                break
            return fork, ref
    raise invalid("PullRequest", "head")


async def _tips(call: Call, source: Repository, head: str, base: str) -> tuple[str, str]:
    """The two ends of a new pull request, or the reason why there can be none."""
    head_sha = await call.world.bare(source).ref(f"refs/heads/{head}")
    base_sha = await call.bare.ref(f"refs/heads/{base}")
    if head_sha is None:
        raise invalid("PullRequest", "head")
    if base_sha is None:
        raise invalid("PullRequest", "base")
    if source is not call.repository:
        await call.bare.borrow(source.git_dir, f"refs/heads/{head}")
    for issue, pull in call.repository.pulls():
        same = (pull.head_repository, pull.head_ref, pull.base_ref) == (source, head, base)
        if same and issue.state == "open":
            raise custom("PullRequest", f"A pull request already exists for {_label(pull)}.")
    if await history.merge_base(call.bare, base_sha, head_sha) is None:
        raise custom("PullRequest", f"The {head} branch has no history in common with {base}")
    if await history.is_ancestor(call.bare, head_sha, base_sha):
        raise custom("PullRequest", f"No commits between {base} and {head}")
    return head_sha, base_sha


async def get_pull(call: Call) -> Reply:
    """Asking is what starts the computation of `mergeable`; the first answer is null."""
    issue, pull = call.pull()
    if "diff" in call.accept or "patch" in call.accept:
        return await _diff(call, pull)
    shape = pulls.pull(call.repository, issue, call.urls)
    if pull.mergeable is None and issue.state == "open":
        call.world.start(compute_mergeable(call.world, scene(call), issue))
    return Reply(shape)


async def _fork_point(call: Call, pull: Pull) -> str:
    """Where the diff starts: the merge base with the base branch as it is, or as it was when closed."""
    base = pull.base_sha if pull.merged else await call.bare.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
    return await history.merge_base(call.bare, base, pull.head_sha) or base


async def _diff(call: Call, pull: Pull) -> Reply:
    start = await _fork_point(call, pull)
    files = await history.changes(call.bare, start, pull.head_sha)
    if len(files) > _MOST_FILES:
        raise _too_large(
            f"Sorry, the diff exceeded the maximum number of files ({_MOST_FILES}). Consider using"
            " 'List pull requests files' API or locally cloning the repository instead."
        )
    text = await history.diff_text(call.bare, start, pull.head_sha)
    if text.count(b"\n") > _MOST_LINES or len(text) > _MOST_BYTES:
        raise _too_large(f"Sorry, the diff exceeded the maximum number of lines ({_MOST_LINES})")
    kind = "diff" if "diff" in call.accept else "patch"
    return Reply(raw=text, media_type=f"application/vnd.github.{kind}; charset=utf-8")


def _too_large(message: str) -> ApiError:
    entry = {"resource": "PullRequest", "field": "diff", "code": "too_large"}
    return ApiError(406, message, [entry])


async def update_pull(call: Call) -> Reply:
    """Title, body, state and base. `draft` is no field here: it is ignored, as the service ignores it."""
    issue, pull = call.pull()
    if issue.user is not call.user and not call.has_role("write"):
        raise forbidden("Must have admin rights to Repository.")
    title, body = call.body.optional_text("title"), call.body.optional_text("body")
    check_texts(title, body)
    state = call.body.one_of("state", ("open", "closed"))
    changes: dict[str, Any] = {}
    if title is not None and title != issue.title:
        changes["title"] = {"from": issue.title}
        issue.title = title
    if "body" in call.body and body != issue.body:
        changes["body"] = {"from": issue.body or ""}
        issue.body = body
    base = call.body.optional_text("base")
    if base is not None and base != pull.base_ref:
        changes["base"] = await _retarget(call, issue, pull, base)
    if changes:
        issue.updated_at = call.world.clock.now()
        on_pull(scene(call), "edited", issue, changes=changes)
    if state:
        await _check_reopening(call, issue, pull, state)
        set_state(scene(call), issue, state, None)
    return Reply(pulls.pull(call.repository, issue, call.urls))


async def _retarget(call: Call, issue: Issue, pull: Pull, base: str) -> dict[str, Any]:
    sha = await call.bare.ref(f"refs/heads/{base}")
    if sha is None:
        raise invalid("PullRequest", "base")
    if issue.state != "open":
        raise custom("PullRequest", "Cannot change the base branch of a closed pull request.")
    for other, facts in call.repository.pulls():
        if other.state == "open" and (facts.head_ref, facts.base_ref) == (pull.head_ref, base):
            message = f"A pull request already exists for base branch '{base}' and head branch '{pull.head_ref}'"
            raise custom("PullRequest", message)
    if await history.is_ancestor(call.bare, pull.head_sha, sha):
        raise custom("PullRequest", f"There are no new commits between base branch '{base}' and head branch")
    told = {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}
    rule = call.repository.protections.get(base) or call.repository.protections.get(pull.base_ref)
    pull.base_ref, pull.base_sha = base, sha
    if rule and rule.dismiss_stale_reviews_on_push:
        dismiss_approvals(scene(call), issue)
    await refresh(call.world, scene(call), issue)
    return told


async def _check_reopening(call: Call, issue: Issue, pull: Pull, state: str) -> None:
    if state != "open" or issue.state == "open":
        return
    tip = await call.world.bare(pull.head_repository).ref(f"refs/heads/{pull.head_ref}")
    if tip is None:
        raise custom("PullRequest", "state cannot be changed. The repository that submitted this PR's branch is gone.")
    if tip != pull.head_sha:
        message = f"state cannot be changed. The {pull.head_ref} branch was force-pushed or recreated."
        raise custom("PullRequest", message)


async def list_files(call: Call) -> Reply:
    _, pull = call.pull()
    files = await history.changes(call.bare, await _fork_point(call, pull), pull.head_sha)
    shapes = [gitdata.file_change(call.repository, item, pull.head_sha, call.urls) for item in files[:_LISTED_FILES]]
    return paged(call, shapes)


async def list_commits(call: Call) -> Reply:
    _, pull = call.pull()
    shas = await history.between(call.bare, await _fork_point(call, pull), pull.head_sha)
    commits = await read_commits(call.bare, shas[:250])
    return paged(call, [gitdata.commit(call.world, call.repository, item, call.urls) for item in commits])


def _requested(call: Call, pull: Pull) -> dict[str, Any]:
    return {"users": [people.user(person, call.urls) for person in pull.requested_reviewers], "teams": []}


async def get_requested(call: Call) -> Reply:
    return Reply(_requested(call, call.pull()[1]))


async def request_reviewers(call: Call) -> Reply:
    issue, pull = call.pull()
    wanted: list[User] = []
    for login in call.body.texts("reviewers"):
        person = call.world.find_user(login)
        if person is issue.user:
            raise unprocessable("Review cannot be requested from pull request author.")
        if person is None or not at_least(call.repository.roles.get(person.login.lower(), "none"), "read"):
            raise unprocessable(
                "Reviews may only be requested from collaborators. One or more of the users or teams you"
                f" specified is not a collaborator of the {call.repository.full_name} repository."
            )
        wanted.append(person)
    for person in wanted:
        if person not in pull.requested_reviewers:
            pull.requested_reviewers.append(person)
            on_pull(scene(call), "review_requested", issue, requested_reviewer=people.user(person, call.urls))
    return Reply(pulls.simple(call.repository, issue, call.urls), 201)


async def remove_requested(call: Call) -> Reply:
    issue, pull = call.pull()
    for login in call.body.texts("reviewers"):
        person = call.world.find_user(login)
        if person is not None and person in pull.requested_reviewers:
            pull.requested_reviewers.remove(person)
            on_pull(scene(call), "review_request_removed", issue, requested_reviewer=people.user(person, call.urls))
    return Reply(pulls.simple(call.repository, issue, call.urls))


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/pulls": list_pulls,
    f"POST {_R}/pulls": create_pull,
    f"GET {_R}/pulls/{{number}}": get_pull,
    f"PATCH {_R}/pulls/{{number}}": update_pull,
    f"GET {_R}/pulls/{{number}}/files": list_files,
    f"GET {_R}/pulls/{{number}}/commits": list_commits,
    f"GET {_R}/pulls/{{number}}/requested_reviewers": get_requested,
    f"POST {_R}/pulls/{{number}}/requested_reviewers": request_reviewers,
    f"DELETE {_R}/pulls/{{number}}/requested_reviewers": remove_requested,
}
