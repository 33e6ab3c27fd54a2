"""Pull requests, reviews and review comments as JSON."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.clock import stamp, stamp_or_none
from bot.emulators.github.records import Issue, Label, Pull, Repository, Review, ReviewComment
from bot.emulators.github.shapes.issues import association
from bot.emulators.github.shapes.people import label, rollup, user, user_or_none
from bot.emulators.github.shapes.repositories import repository as repository_shape
from bot.emulators.github.urls import Urls


def pull(repository: Repository, item: Issue, urls: Urls) -> dict[str, Any]:
    """The full form, with the fields that need computing."""
    facts = _pull(item)
    return {
        **simple(repository, item, urls),
        "labels": [label(one, urls.repo(repository.full_name)) for one in item.labels],
        "merged": facts.merged,
        "mergeable": None if facts.merged or item.state == "closed" else facts.mergeable,
        "rebaseable": None if facts.merged or item.state == "closed" else facts.mergeable,
        "mergeable_state": mergeable_state(repository, item),
        "merged_by": user_or_none(facts.merged_by, urls),
        "comments": len(item.comments),
        "review_comments": len(facts.review_comments),
        "maintainer_can_modify": facts.maintainer_can_modify,
        "commits": facts.statistics.commits,
        "additions": facts.statistics.additions,
        "deletions": facts.statistics.deletions,
        "changed_files": facts.statistics.changed_files,
    }


def mergeable_state(repository: Repository, item: Issue) -> str:
    facts = _pull(item)
    if facts.merged or item.state == "closed" or facts.mergeable is None:
        return "unknown"
    if not facts.mergeable:
        return "dirty"
    if facts.draft:
        return "draft"
    return "blocked" if facts.base_ref in repository.protections else "clean"


def simple(repository: Repository, item: Issue, urls: Urls) -> dict[str, Any]:
    """The form that lists carry."""
    facts = _pull(item)
    page = urls.html(f"{repository.full_name}/pull/{item.number}")
    assignees = [user(person, urls) for person in item.assignees]
    links = _addresses(repository, item, urls)
    return {
        "url": links["self"],
        "id": facts.id,
        "node_id": facts.node_id,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": links["issue"],
        "number": item.number,
        "state": item.state,
        "locked": item.locked,
        "title": item.title,
        "user": user(item.user, urls),
        "body": item.body,
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "closed_at": stamp_or_none(item.closed_at),
        "merged_at": stamp_or_none(facts.merged_at),
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "merge_commit_sha": facts.merge_commit_sha,
        "requested_reviewers": [user(person, urls) for person in facts.requested_reviewers],
        "requested_teams": [],
        "labels": [_listed_label(one, urls.repo(repository.full_name)) for one in item.labels],
        "milestone": None,
        "draft": facts.draft,
        "commits_url": links["commits"],
        "review_comments_url": links["review_comments"],
        "review_comment_url": links["review_comment"],
        "comments_url": links["comments"],
        "statuses_url": links["statuses"],
        "head": _side(facts.head_repository, facts.head_ref, facts.head_sha, urls),
        "base": _side(repository, facts.base_ref, facts.base_sha, urls),
        "_links": {name: {"href": address} for name, address in links.items()},
        "author_association": association(repository, item.user),
        "auto_merge": None,
        "active_lock_reason": None,
    }


def _listed_label(one: Label, repository_url: str) -> dict[str, Any]:
    """GitHub describes the description of a label as text here, and as text or null everywhere else."""
    return {**label(one, repository_url), "description": one.description or ""}


def _pull(item: Issue) -> Pull:
    if item.pull is None:
        raise TypeError("not a pull request")
    return item.pull


def _addresses(repository: Repository, item: Issue, urls: Urls) -> dict[str, str]:
    base = urls.repo(repository.full_name)
    api, issue = f"{base}/pulls/{item.number}", f"{base}/issues/{item.number}"
    return {
        "self": api,
        "html": urls.html(f"{repository.full_name}/pull/{item.number}"),
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{api}/comments",
        "review_comment": f"{base}/pulls/comments{{/number}}",
        "commits": f"{api}/commits",
        "statuses": f"{base}/statuses/{_pull(item).head_sha}",
    }


def _side(repository: Repository, ref: str, sha: str, urls: Urls) -> dict[str, Any]:
    return {
        "label": f"{repository.owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(repository.owner, urls),
        "repo": repository_shape(repository, urls),
    }


def review(repository: Repository, item: Issue, one: Review, urls: Urls) -> dict[str, Any]:
    """One review; `submitted_at` is absent while it is pending. `state` is upper case here, lower in webhooks."""
    page = urls.html(f"{repository.full_name}/pull/{item.number}")
    api = urls.repo(repository.full_name, f"/pulls/{item.number}")
    shape = {
        "id": one.id,
        "node_id": one.node_id,
        "user": user(one.user, urls),
        "body": one.body,
        "state": one.state,
        "html_url": f"{page}#pullrequestreview-{one.id}",
        "pull_request_url": api,
        "author_association": association(repository, one.user),
        "_links": {"html": {"href": f"{page}#pullrequestreview-{one.id}"}, "pull_request": {"href": api}},
        "commit_id": one.commit_id,
    }
    if one.submitted_at is not None:
        shape["submitted_at"] = stamp(one.submitted_at)
    return shape


def review_comment(repository: Repository, one: ReviewComment, urls: Urls) -> dict[str, Any]:
    page = urls.html(f"{repository.full_name}/pull/{one.number}#discussion_r{one.id}")
    parent = urls.repo(repository.full_name, f"/pulls/{one.number}")
    api = urls.repo(repository.full_name, f"/pulls/comments/{one.id}")
    shape: dict[str, Any] = {
        "url": api,
        "pull_request_review_id": one.review_id,
        "id": one.id,
        "node_id": one.node_id,
        "diff_hunk": "@@ -1 +1 @@",
        "path": one.path,
        "commit_id": one.commit_id,
        "original_commit_id": one.commit_id,
        "user": user(one.user, urls),
        "body": one.body,
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.updated_at),
        "html_url": page,
        "pull_request_url": parent,
        "author_association": association(repository, one.user),
        "_links": {"self": {"href": api}, "html": {"href": page}, "pull_request": {"href": parent}},
        "reactions": rollup(one.reactions, api),
        "start_line": None,
        "original_start_line": None,
        "start_side": None,
        "line": one.line,
        "original_line": one.line,
        "side": one.side,
        "position": one.line,
        "original_position": one.line,
        "subject_type": "line" if one.line is not None else "file",
    }
    if one.in_reply_to is not None:
        shape["in_reply_to_id"] = one.in_reply_to
    return shape
