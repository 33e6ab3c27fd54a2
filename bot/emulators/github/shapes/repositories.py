"""Repositories, branches and rules as JSON."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.clock import stamp
from bot.emulators.github.config import Protection
from bot.emulators.github.records import Repository
from bot.emulators.github.shapes.people import user
from bot.emulators.github.urls import Urls

_TAILS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
_COUNTS = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")


def minimal(item: Repository, urls: Urls) -> dict[str, Any]:
    """Identity and addresses."""
    api = urls.repo(item.full_name)
    return {
        "id": item.id,
        "node_id": item.node_id,
        "name": item.name,
        "full_name": item.full_name,
        "private": item.private,
        "owner": user(item.owner, urls),
        "html_url": urls.html(item.full_name),
        "description": None,
        "fork": item.parent is not None,
        "url": api,
        **{name: api + tail for name, tail in _TAILS.items()},
    }


def repository(item: Repository, urls: Urls) -> dict[str, Any]:
    """The form that payloads embed."""
    page = urls.html(item.full_name)
    host = urls.web.split("//", 1)[1]
    opened = sum(1 for issue in item.issues.values() if issue.state == "open" and not issue.deleted)
    return {
        **minimal(item, urls),
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "pushed_at": stamp(item.pushed_at),
        "git_url": f"git://{host}/{item.full_name}.git",
        "ssh_url": f"git@{host}:{item.full_name}.git",
        "clone_url": f"{page}.git",
        "svn_url": page,
        "homepage": None,
        **dict.fromkeys(_COUNTS, 0),
        "language": "Python",
        "has_issues": True,
        "has_projects": False,
        "has_downloads": True,
        "has_wiki": False,
        "has_pages": False,
        "has_discussions": False,
        "mirror_url": None,
        "archived": item.archived,
        "disabled": False,
        "open_issues_count": opened,
        "open_issues": opened,
        "license": None,
        "allow_forking": True,
        "is_template": False,
        "web_commit_signoff_required": False,
        "topics": [],
        "visibility": "private" if item.private else "public",
        "default_branch": item.default_branch,
    }


def full(item: Repository, urls: Urls, role: str | None) -> dict[str, Any]:
    """What `GET /repos/{owner}/{repo}` answers; `role` is the asker's, None for an installation."""
    granted = {"read": "pull", "triage": "triage", "write": "push", "maintain": "maintain", "admin": "admin"}
    order = list(granted)
    held = order[: order.index(role) + 1] if role in order else []
    return {
        **repository(item, urls),
        "permissions": {flag: name in held for name, flag in granted.items()},
        "temp_clone_token": None,
        "allow_squash_merge": "squash" in item.merge_methods,
        "allow_merge_commit": "merge" in item.merge_methods,
        "allow_rebase_merge": "rebase" in item.merge_methods,
        "allow_auto_merge": False,
        "allow_update_branch": False,
        "delete_branch_on_merge": item.delete_branch_on_merge,
        "use_squash_pr_title_as_default": False,
        "squash_merge_commit_title": "COMMIT_OR_PR_TITLE",
        "squash_merge_commit_message": "COMMIT_MESSAGES",
        "merge_commit_title": "MERGE_MESSAGE",
        "merge_commit_message": "PR_TITLE",
        "subscribers_count": 0,
        "network_count": 0,
    }


def short_branch(item: Repository, name: str, sha: str, urls: Urls) -> dict[str, Any]:
    return {
        "name": name,
        "commit": {"sha": sha, "url": urls.repo(item.full_name, f"/commits/{sha}")},
        "protected": name in item.protections,
    }


def branch(item: Repository, name: str, commit: dict[str, Any], urls: Urls) -> dict[str, Any]:
    api = urls.repo(item.full_name, f"/branches/{name}")
    rule = item.protections.get(name)
    return {
        "name": name,
        "commit": commit,
        "_links": {"self": api, "html": urls.html(f"{item.full_name}/tree/{name}")},
        "protected": rule is not None,
        "protection": {
            "enabled": rule is not None,
            "required_status_checks": {
                "enforcement_level": "non_admins" if rule and rule.required_status_checks else "off",
                "contexts": list(rule.required_status_checks) if rule else [],
                "checks": [],
            },
        },
        "protection_url": f"{api}/protection",
    }


def rules(item: Repository, protection: Protection) -> list[dict[str, Any]]:
    """The effective rules of one branch, as `GET /rules/branches/{branch}` lists them."""
    found: list[tuple[str, dict[str, Any] | None]] = [("deletion", None), ("non_fast_forward", None)]
    if protection.required_signatures:
        found.append(("required_signatures", None))
    if protection.pull_request or protection.required_approving_review_count:
        found.append(("pull_request", _pull_request_rule(protection)))
    if protection.required_status_checks:
        of = {} if protection.check_source is None else {"integration_id": protection.check_source}
        parameters = {
            "required_status_checks": [{"context": name, **of} for name in protection.required_status_checks],
            "strict_required_status_checks_policy": protection.strict_status_checks,
        }
        found.append(("required_status_checks", parameters))
    if protection.merge_queue:
        found.append(("merge_queue", _merge_queue_rule()))
    if protection.restricted:
        found += [("creation", None), ("update", None)]
    source = {
        "ruleset_source_type": "Repository",
        "ruleset_source": item.full_name,
        "ruleset_id": ruleset_id(item, protection),
    }
    return [
        {"type": kind, **({"parameters": parameters} if parameters is not None else {}), **source}
        for kind, parameters in found
    ]


def ruleset_id(item: Repository, protection: Protection) -> int:
    return item.id % 100_000 * 100 + list(item.protections).index(protection.branch)


def ruleset(item: Repository, protection: Protection, *, bypass: bool) -> dict[str, Any]:
    """A ruleset as `GET /rulesets/{id}` tells it; with `bypass`, who may go around it."""
    actors = [{"actor_id": app, "actor_type": "Integration", "bypass_mode": "always"} for app in protection.bypass_apps]
    given = [{name: one[name] for name in ("type", "parameters") if name in one} for one in rules(item, protection)]
    return {
        "id": ruleset_id(item, protection),
        "name": protection.branch,
        "target": "branch",
        "source_type": "Repository",
        "source": item.full_name,
        "enforcement": "active",
        "conditions": {"ref_name": {"include": [f"refs/heads/{protection.branch}"], "exclude": []}},
        "rules": given,
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.created_at),
        **({"bypass_actors": actors} if bypass else {}),
    }


def deploy_keys(item: Repository, urls: Urls) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "key": f"ssh-ed25519 {number}",
            "url": urls.repo(item.full_name, f"/keys/{number}"),
            "title": key.title,
            "verified": True,
            "created_at": stamp(item.created_at),
            "read_only": key.read_only,
            "added_by": key.added_by,
            "last_used": None,
            "enabled": True,
        }
        for number, key in enumerate(item.keys, start=item.id)
    ]


def _pull_request_rule(protection: Protection) -> dict[str, Any]:
    return {
        "required_approving_review_count": protection.required_approving_review_count,
        "dismiss_stale_reviews_on_push": protection.dismiss_stale_reviews_on_push,
        "require_code_owner_review": protection.require_code_owner_review,
        "require_last_push_approval": protection.require_last_push_approval,
        "required_review_thread_resolution": protection.required_review_thread_resolution,
        "allowed_merge_methods": list(protection.allowed_merge_methods),
    }


def _merge_queue_rule() -> dict[str, Any]:
    return {
        "check_response_timeout_minutes": 60,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 5,
        "max_entries_to_merge": 5,
        "merge_method": "SQUASH",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 5,
    }
