"""Registration of an App by manifest: the settings page that a browser posts to, and the code it comes back with."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request

from bot.emulators.github.call import Reply
from bot.emulators.github.world import World

_PAGE = re.compile(r"(?:/organizations/[^/]+)?/settings/apps/new")
_LIVES = timedelta(hours=1)
_LONGEST_NAME = 34
_MOST_CALLBACKS = 10
_WRITES: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    [
        "actions",
        "administration",
        "artifact_metadata",
        "attestations",
        "checks",
        "code_quality",
        "codespaces",
        "contents",
        "custom_properties_for_organizations",
        "dependabot_secrets",
        "deployments",
        "discussions",
        "email_addresses",
        "environments",
        "followers",
        "git_ssh_keys",
        "gpg_keys",
        "interaction_limits",
        "issues",
        "members",
        "merge_queues",
        "metadata",
        "organization_administration",
        "organization_announcement_banners",
        "organization_copilot_agent_settings",
        "organization_copilot_seat_management",
        "organization_custom_org_roles",
        "organization_custom_roles",
        "organization_hooks",
        "organization_packages",
        "organization_personal_access_token_requests",
        "organization_personal_access_tokens",
        "organization_secrets",
        "organization_self_hosted_runners",
        "organization_user_blocking",
        "packages",
        "pages",
        "pull_requests",
        "repository_custom_properties",
        "repository_hooks",
        "secret_scanning_alerts",
        "secrets",
        "security_events",
        "single_file",
        "starring",
        "statuses",
        "vulnerability_alerts",
    ],
    ("read", "write"),
)
LEVELS: Mapping[str, tuple[str, ...]] = {
    **_WRITES,
    **dict.fromkeys(("organization_events", "organization_plan"), ("read",)),
    **dict.fromkeys(("profile", "workflows"), ("write",)),
    **dict.fromkeys(
        (
            "enterprise_custom_properties_for_organizations",
            "organization_custom_properties",
            "organization_projects",
            "repository_projects",
        ),
        ("read", "write", "admin"),
    ),
}
"""Permissions and their levels, as GitHub's description of its API has them (schema `app-permissions`)."""

_EVENTS: Mapping[str, str] = {
    "actions": "workflow_job workflow_run",
    "administration": "branch_protection_configuration branch_protection_rule repository_ruleset security_and_analysis",
    "checks": "check_run check_suite",
    "contents": "commit_comment create delete fork gollum push release repository_dispatch workflow_dispatch",
    "deployments": "deploy_key deployment deployment_protection_rule deployment_review deployment_status",
    "discussions": "discussion discussion_comment",
    "issues": "issue_comment issue_dependencies issues milestone sub_issues",
    "members": "member membership organization team team_add",
    "merge_queues": "merge_group",
    "metadata": "label public repository star watch",
    "organization_administration": "org_block repository_ruleset",
    "organization_custom_properties": "custom_property custom_property_values",
    "organization_personal_access_token_requests": "personal_access_token_request",
    "organization_projects": "project project_card project_column",
    "packages": "registry_package",
    "pages": "page_build",
    "pull_requests": "milestone pull_request pull_request_review pull_request_review_comment pull_request_review_thread",
    "repository_projects": "project project_card project_column",
    "secret_scanning_alerts": "secret_scanning_alert secret_scanning_alert_location secret_scanning_scan",
    "security_events": "code_scanning_alert",
    "statuses": "status",
    "vulnerability_alerts": "dependabot_alert",
}
"""Permissions, any level of which lets an App subscribe to these events (GitHub's page "Webhook events and payloads"). `installation`
and its like come to every App, and the page says that nobody can subscribe to them."""
_EVERYBODY = frozenset({"security_advisory"})
"""Events for an App that need no permission (the same page)."""


class SettingsPage:
    """Answers the form post as if the owner pressed "Create" at once."""

    def __init__(self, world: World) -> None:
        self._world = world

    def recognises(self, method: str, path: str) -> bool:
        return method == "POST" and _PAGE.fullmatch(path) is not None

    async def answer(self, request: Request) -> Reply:
        async with request.form() as form:
            text, state = form.get("manifest"), request.query_params.get("state") or form.get("state")
        manifest = _read(text)
        wrong = list(faults(manifest))
        if wrong:
            return Reply({"message": "Invalid GitHub App configuration", "errors": wrong}, 422)
        code = secrets.token_hex(20)
        self._world.manifest_codes[code] = self._world.clock.now() + _LIVES
        app = self._world.app
        app.name = manifest["name"]
        app.webhook_url = manifest.get("hook_attributes", {}).get("url", app.webhook_url)
        app.permissions = {"metadata": "read", **manifest.get("default_permissions", {})}
        app.events = tuple(manifest.get("default_events", ()))
        back = {"code": code, **({"state": str(state)} if state else {})}
        address = f"{manifest['redirect_url']}?{urlencode(back)}"
        return Reply(raw=b"", status=302, media_type="text/html", headers={"Location": address})


def _read(text: object) -> dict[str, Any]:
    """The manifest; empty when the text is none, so that everything is missing."""
    try:
        manifest = json.loads(str(text))
    except ValueError:
        return {}
    return manifest if isinstance(manifest, dict) else {}


def faults(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Everything the real page refuses, by its public documentation (specs/github.md §5) and in its words where they are known.

    `name` and `redirect_url` are optional there: a person types the one, and without the other the code is shown on no page. Nobody
    types here.
    """
    for key in ("name", "url", "redirect_url"):
        if not manifest.get(key):
            yield f'"{key}" wasn\'t supplied.'
        elif not isinstance(manifest[key], str):
            yield f"For 'properties/{key}', {manifest[key]} is not a string."
    hook = manifest.get("hook_attributes", {"url": "https://example.org"})
    if not isinstance(hook, dict) or not hook.get("url"):
        yield '"url" wasn\'t supplied.'  # the page does not say whose
    if len(str(manifest.get("name", ""))) > _LONGEST_NAME:
        yield f"Name is too long (maximum is {_LONGEST_NAME} characters)"
    if not _is_web(str(manifest.get("redirect_url", ""))):
        yield "Redirect url must be an http or https address"
    callbacks = manifest.get("callback_urls", [])
    if not isinstance(callbacks, list) or len(callbacks) > _MOST_CALLBACKS:
        yield f"Callback urls: at most {_MOST_CALLBACKS}"
    yield from _permission_faults(manifest.get("default_permissions", {}), manifest.get("default_events", []))


def _permission_faults(asked: object, events: object) -> Iterator[str]:
    if not isinstance(asked, dict) or not isinstance(events, list):
        yield "default_permissions is an object, default_events a list"
        return
    for name, level in asked.items():
        if level not in LEVELS.get(name, ()):
            yield f"Default permissions unsupported: {name}: {level}"
    known = {event for listed in _EVENTS.values() for event in listed.split()} | _EVERYBODY
    held = {*asked, "metadata"} if asked else set()  # with any other permission comes that one
    covered = {event for name, listed in _EVENTS.items() if name in held for event in listed.split()} | _EVERYBODY
    unknown = [str(event) for event in events if event not in known]
    if unknown:
        yield f"Default events unsupported: {' and '.join(unknown)}"
    bare = [str(event) for event in events if event not in covered]
    if bare:
        yield f"Default events are not supported by permissions: {' and '.join(bare)}"


def _is_web(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
