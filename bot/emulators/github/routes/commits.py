"""Routes of commits and comparisons."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.errors import ApiError, not_found
from bot.emulators.github.gitside import history
from bot.emulators.github.gitside.commits import read_commit, read_commits
from bot.emulators.github.routes.checks import resolve
from bot.emulators.github.routes.paging import cut, paged
from bot.emulators.github.shapes import gitdata, pulls

_R = "/repos/{owner}/{repo}"
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_LISTED_FILES = 300
_LISTED_COMMITS = 250


async def list_commits(call: Call) -> Reply:
    start = await call.bare.resolve(call.query.get("sha") or call.repository.default_branch)
    if start is None:
        if not await call.bare.refs("refs/heads/"):
            raise ApiError(409, "Git Repository is empty.")
        raise not_found()
    path, since = call.query.get("path"), call.query.get("since")
    limits = ["--max-count=10000", *([f"--since={since}"] if since else ())]
    told = await call.bare.text("rev-list", *limits, start, *(("--", path) if path else ()))
    commits = await read_commits(call.bare, told.split())
    return paged(call, [gitdata.commit(call.world, call.repository, item, call.urls) for item in commits])


async def get_commit(call: Call) -> Reply:
    sha = await resolve(call)
    commit = await read_commit(call.bare, sha)
    if "diff" in call.accept:
        text = await history.diff_text(call.bare, commit.parents[0] if commit.parents else _EMPTY_TREE, sha)
        return Reply(raw=text, media_type="application/vnd.github.diff; charset=utf-8")
    if call.accept.endswith("sha"):
        return Reply(raw=sha.encode(), media_type="application/vnd.github.sha; charset=utf-8")
    files = await history.changes(call.bare, commit.parents[0] if commit.parents else _EMPTY_TREE, sha)
    added, deleted = sum(item.additions for item in files), sum(item.deletions for item in files)
    return Reply(
        {
            **gitdata.commit(call.world, call.repository, commit, call.urls),
            "stats": {"total": added + deleted, "additions": added, "deletions": deleted},
            "files": [gitdata.file_change(call.repository, item, sha, call.urls) for item in files[:_LISTED_FILES]],
        }
    )


async def pulls_of_commit(call: Call) -> Reply:
    sha = await resolve(call)
    found = [issue for issue, pull in call.repository.pulls() if sha in (*pull.heads, pull.merge_commit_sha)]
    return paged(call, [pulls.simple(call.repository, issue, call.urls) for issue in found])


async def compare(call: Call) -> Reply:
    """Three dots: from the merge base to the head."""
    left, dots, right = call.values["basehead"].partition("...")
    base = await _side(call, left)
    head = await _side(call, right)
    if not dots or base is None or head is None:
        raise not_found()
    fork = await history.merge_base(call.bare, base, head)
    if fork is None:
        raise ApiError(404, f"No common ancestor between {left} and {right}.")
    if "diff" in call.accept:
        text = await history.diff_text(call.bare, fork, head)
        return Reply(raw=text, media_type="application/vnd.github.diff; charset=utf-8")
    told = await _comparison(call, base, head, fork)
    if "page" not in call.query and "per_page" not in call.query:
        return Reply(told)
    part, headers = cut(call, told["commits"])
    first = call.query.get("page", "1") == "1"
    return Reply({**told, "commits": list(part), "files": told["files"] if first else []}, headers=headers)


async def _side(call: Call, text: str) -> str | None:
    owner, colon, ref = text.partition(":")
    if colon and owner.lower() != call.repository.owner.login.lower():
        return None
    return await call.bare.resolve(ref if colon else text)


async def _comparison(call: Call, base: str, head: str, fork: str) -> dict[str, Any]:
    ahead = await history.between(call.bare, base, head)
    behind = await history.between(call.bare, head, base)
    status = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}.get(
        (bool(ahead), bool(behind)), "diverged"
    )
    files = await history.changes(call.bare, fork, head)
    listed = await read_commits(call.bare, [base, fork, *ahead[:_LISTED_COMMITS]])
    shapes = [gitdata.commit(call.world, call.repository, item, call.urls) for item in listed]
    api = call.urls.repo(call.repository.full_name, f"/compare/{call.values['basehead']}")
    page = call.urls.html(f"{call.repository.full_name}/compare/{call.values['basehead']}")
    return {
        "url": api,
        "html_url": page,
        "permalink_url": call.urls.html(f"{call.repository.full_name}/compare/{base[:7]}...{head[:7]}"),
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "base_commit": shapes[0],
        "merge_base_commit": shapes[1],
        "status": status,
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": shapes[2:],
        "files": [gitdata.file_change(call.repository, item, head, call.urls) for item in files[:_LISTED_FILES]],
    }


HANDLERS: dict[str, Handler] = {
    f"GET {_R}/commits": list_commits,
    f"GET {_R}/commits/{{ref*}}": get_commit,
    f"GET {_R}/commits/{{ref*}}/pulls": pulls_of_commit,
    f"GET {_R}/compare/{{basehead*}}": compare,
}
