"""Issues and their comments as JSON."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.clock import stamp, stamp_or_none
from bot.emulators.github.records import Comment, Issue, Repository, User
from bot.emulators.github.shapes.people import label, rollup, user, user_or_none
from bot.emulators.github.urls import Urls


def association(repository: Repository, person: User) -> str:
    if person is repository.owner:
        return "OWNER"
    role = repository.roles.get(person.login.lower(), "none")
    return {"admin": "MEMBER", "maintain": "MEMBER", "write": "COLLABORATOR", "triage": "COLLABORATOR"}.get(
        role, "NONE"
    )


def issue(repository: Repository, item: Issue, urls: Urls) -> dict[str, Any]:
    """One issue; a pull request carries the extra key by which clients tell it apart."""
    base = urls.repo(repository.full_name)
    api = f"{base}/issues/{item.number}"
    kind = "pull" if item.pull else "issues"
    assignees = [user(person, urls) for person in item.assignees]
    shape: dict[str, Any] = {
        "url": api,
        "repository_url": base,
        "labels_url": f"{api}/labels{{/name}}",
        "comments_url": f"{api}/comments",
        "events_url": f"{api}/events",
        "html_url": urls.html(f"{repository.full_name}/{kind}/{item.number}"),
        "id": item.id,
        "node_id": item.node_id,
        "number": item.number,
        "title": item.title,
        "user": user(item.user, urls),
        "labels": [label(one, base) for one in item.labels],
        "state": item.state,
        "locked": item.locked,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": None,
        "comments": len(item.comments),
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "closed_at": stamp_or_none(item.closed_at),
        "author_association": association(repository, item.user),
        "active_lock_reason": None,
        "body": item.body,
        "closed_by": user_or_none(item.closed_by, urls),
        "reactions": rollup(item.reactions, api),
        "timeline_url": f"{api}/timeline",
        "performed_via_github_app": None,
        "state_reason": item.state_reason,
    }
    if item.pull:
        shape["draft"] = item.pull.draft
        shape["pull_request"] = _pull_link(repository, item, urls)
    return shape


def _pull_link(repository: Repository, item: Issue, urls: Urls) -> dict[str, Any]:
    page = urls.html(f"{repository.full_name}/pull/{item.number}")
    return {
        "url": urls.repo(repository.full_name, f"/pulls/{item.number}"),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "merged_at": stamp_or_none(item.pull.merged_at if item.pull else None),
    }


def comment(repository: Repository, item: Comment, urls: Urls, *, app: dict[str, Any] | None = None) -> dict[str, Any]:
    """One comment of an issue or pull request; `app` is set when an App wrote it."""
    base = urls.repo(repository.full_name)
    subject = repository.issues[item.number]
    kind = "pull" if subject.pull else "issues"
    api = f"{base}/issues/comments/{item.id}"
    return {
        "url": api,
        "html_url": urls.html(f"{repository.full_name}/{kind}/{item.number}#issuecomment-{item.id}"),
        "issue_url": f"{base}/issues/{item.number}",
        "id": item.id,
        "node_id": item.node_id,
        "user": user(item.user, urls),
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "body": item.body,
        "author_association": association(repository, item.user),
        "reactions": rollup(item.reactions, api),
        "performed_via_github_app": app,
    }
