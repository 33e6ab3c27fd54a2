"""Users, reactions and labels as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bot.emulators.github.clock import stamp
from bot.emulators.github.records import Label, Reaction, User
from bot.emulators.github.urls import Urls

CONTENTS = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
_TAILS = {
    "followers_url": "followers",
    "following_url": "following{/other_user}",
    "gists_url": "gists{/gist_id}",
    "starred_url": "starred{/owner}{/repo}",
    "subscriptions_url": "subscriptions",
    "organizations_url": "orgs",
    "repos_url": "repos",
    "events_url": "events{/privacy}",
    "received_events_url": "received_events",
}


def user(person: User, urls: Urls) -> dict[str, Any]:
    """The short form that most payloads carry."""
    api = urls.api(f"users/{person.login.replace('[', '%5B').replace(']', '%5D')}")
    page = person.login.removesuffix("[bot]")
    return {
        "login": person.login,
        "id": person.id,
        "node_id": person.node_id,
        "avatar_url": urls.html(f"avatars/u/{person.id}?v=4"),
        "gravatar_id": "",
        "url": api,
        "html_url": urls.html(f"apps/{page}" if person.type == "Bot" else page),
        **{name: f"{api}/{tail}" for name, tail in _TAILS.items()},
        "type": person.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def user_or_none(person: User | None, urls: Urls) -> dict[str, Any] | None:
    return user(person, urls) if person else None


def full_user(person: User, urls: Urls) -> dict[str, Any]:
    """What `GET /users/{login}` and `GET /user` answer."""
    blank = ("company", "location", "email", "hireable", "bio", "twitter_username", "notification_email")
    return {
        **user(person, urls),
        "name": person.login,
        "blog": "",
        **dict.fromkeys(blank),
        "public_repos": 0,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }


def label(item: Label, repository_url: str) -> dict[str, Any]:
    return {
        "id": item.id,
        "node_id": item.node_id,
        "url": f"{repository_url}/labels/{item.name.replace(' ', '%20')}",
        "name": item.name,
        "color": item.color,
        "default": False,
        "description": item.description,
        "archived_at": None,
        "archived_by": None,
    }


def reaction(item: Reaction, urls: Urls) -> dict[str, Any]:
    return {
        "id": item.id,
        "node_id": item.node_id,
        "user": user(item.user, urls),
        "content": item.content,
        "created_at": stamp(item.created_at),
    }


def rollup(reactions: Sequence[Reaction], subject_url: str) -> dict[str, Any]:
    counted = Counter(item.content for item in reactions)
    return {
        "url": f"{subject_url}/reactions",
        "total_count": len(reactions),
        **{content: counted[content] for content in CONTENTS},
    }


def organisation(account: User, urls: Urls, founded: str) -> dict[str, Any]:
    """What everybody is told of an organisation."""
    api = urls.api(f"orgs/{account.login}")
    return {
        "login": account.login,
        "id": account.id,
        "node_id": account.node_id,
        "url": api,
        **{f"{name}_url": f"{api}/{name}" for name in ("repos", "events", "hooks", "issues")},
        "members_url": f"{api}/members{{/member}}",
        "public_members_url": f"{api}/public_members{{/member}}",
        "avatar_url": urls.html(f"avatars/u/{account.id}?v=4"),
        "html_url": urls.html(account.login),
        "description": None,
        "has_organization_projects": True,
        "has_repository_projects": True,
        "public_repos": 0,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "type": "Organization",
        "created_at": founded,
        "updated_at": founded,
        "archived_at": None,
    }
