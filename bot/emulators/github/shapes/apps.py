"""The App, its installations, check runs and webhook deliveries as JSON."""

from __future__ import annotations

import json
from typing import Any

from bot.emulators.github.clock import stamp, stamp_or_none
from bot.emulators.github.records import App, CheckRun, Installation, Repository, Status
from bot.emulators.github.shapes.people import user, user_or_none
from bot.emulators.github.urls import Urls
from bot.emulators.github.webhooks.courier import Delivery


def app(item: App, urls: Urls) -> dict[str, Any]:
    return {
        "id": item.id,
        "client_id": item.client_id,
        "slug": item.slug,
        "node_id": item.node_id,
        "owner": user(item.owner, urls),
        "name": item.name,
        "description": "A coding agent behind an approval gate",
        "external_url": urls.html("pullwright"),
        "html_url": urls.html(f"apps/{item.slug}"),
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.created_at),
        "permissions": dict(item.permissions),
        "events": list(item.events),
    }


def installation(item: Installation, owner: App, urls: Urls) -> dict[str, Any]:
    return {
        "id": item.id,
        "account": user(item.account, urls),
        "repository_selection": "selected",
        "access_tokens_url": urls.api(f"app/installations/{item.id}/access_tokens"),
        "repositories_url": urls.api("installation/repositories"),
        "html_url": urls.html(f"organizations/{item.account.login}/settings/installations/{item.id}"),
        "app_id": owner.id,
        "app_slug": owner.slug,
        "target_id": item.account.id,
        "target_type": item.account.type,
        "permissions": dict(item.permissions),
        "events": list(item.events),
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.updated_at),
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": user_or_none(item.suspended_by, urls),
        "suspended_at": stamp_or_none(item.suspended_at),
    }


def check_run(repository: Repository, item: CheckRun, owner: App, urls: Urls) -> dict[str, Any]:
    api = urls.repo(repository.full_name, f"/check-runs/{item.id}")
    page = urls.html(f"{repository.full_name}/runs/{item.id}")
    return {
        "id": item.id,
        "name": item.name,
        "node_id": item.node_id,
        "head_sha": item.head_sha,
        "external_id": item.external_id or "",
        "url": api,
        "html_url": page,
        "details_url": item.details_url or page,
        "status": item.status,
        "conclusion": item.conclusion,
        "started_at": stamp_or_none(item.started_at),
        "completed_at": stamp_or_none(item.completed_at),
        "output": {
            "title": item.output.get("title"),
            "summary": item.output.get("summary"),
            "text": item.output.get("text"),
            "annotations_count": len(item.annotations),
            "annotations_url": f"{api}/annotations",
        },
        "check_suite": {"id": item.suite_id},
        "app": app(owner, urls),
        "pull_requests": _minimal_pulls(repository, item.head_sha, urls),
    }


def _minimal_pulls(repository: Repository, sha: str, urls: Urls) -> list[dict[str, Any]]:
    home = {"id": repository.id, "url": urls.repo(repository.full_name), "name": repository.name}
    return [
        {
            "url": urls.repo(repository.full_name, f"/pulls/{issue.number}"),
            "id": pull.id,
            "number": issue.number,
            "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": home},
            "base": {"ref": pull.base_ref, "sha": pull.base_sha, "repo": home},
        }
        for issue, pull in repository.pulls()
        if issue.state == "open" and pull.head_sha == sha
    ]


def status(repository: Repository, item: Status, urls: Urls, *, creator: bool = True) -> dict[str, Any]:
    shape = {
        "url": urls.repo(repository.full_name, f"/statuses/{item.sha}"),
        "avatar_url": urls.html(f"avatars/u/{item.creator.id}?v=4"),
        "id": item.id,
        "node_id": item.node_id,
        "state": item.state,
        "description": item.description,
        "target_url": item.target_url,
        "context": item.context,
        "created_at": stamp(item.created_at),
        "updated_at": stamp(item.created_at),
    }
    return {**shape, "creator": user(item.creator, urls)} if creator else shape


def delivery(item: Delivery) -> dict[str, Any]:
    """One line of the delivery log."""
    return {
        "id": item.id,
        "guid": item.guid,
        "delivered_at": stamp(item.delivered_at),
        "redelivery": item.redelivery,
        "duration": item.duration,
        "status": item.status,
        "status_code": item.status_code,
        "event": item.event,
        "action": item.action,
        "installation_id": item.installation_id,
        "repository_id": item.repository_id,
        "throttled_at": None,
    }


def delivery_detail(item: Delivery) -> dict[str, Any]:
    return {
        **delivery(item),
        "url": item.url,
        "request": {"headers": item.request_headers, "payload": json.loads(item.body)},
        "response": {"headers": item.response_headers, "payload": item.response_body},
    }
