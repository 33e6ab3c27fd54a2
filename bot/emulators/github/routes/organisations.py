"""Routes of an organisation's own pages, and of what people show in public. Owners see all of it, members a part."""

from __future__ import annotations

from typing import Any

from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.clock import stamp
from bot.emulators.github.config import AppSeed, CredentialSeed, GistSeed, OrganisationSeed
from bot.emulators.github.errors import not_found
from bot.emulators.github.identifiers import node_id
from bot.emulators.github.records import User
from bot.emulators.github.routes.paging import counted, cut, paged
from bot.emulators.github.shapes import apps, people, repositories


def _organisation(call: Call) -> OrganisationSeed:
    found = call.world.organisation(call.values["org"])
    if found is None:
        raise not_found()
    return found


def _people(call: Call, logins: tuple[str, ...]) -> list[dict[str, Any]]:
    return [people.user(call.world.user(login), call.urls) for login in logins]


async def organisation(call: Call) -> Reply:
    """How many private repositories there are is told to owners whose token may administer the organisation."""
    seed = _organisation(call)
    every = [one for one in call.world.registry.repositories.values() if one.owner.login.lower() == seed.login.lower()]
    private = sum(one.private for one in every)
    shape = people.organisation(call.world.user(seed.login), call.urls, stamp(call.world.app.created_at))
    shape["public_repos"] = len(every) - private
    user = call.actor.user
    if user is None or not call.world.owns(seed.login, user) or not call.actor.granted("organization_administration"):
        return Reply(shape)
    return Reply({**shape, "total_private_repos": private, "owned_private_repos": private})


async def list_repositories(call: Call) -> Reply:
    """Public ones, and private ones that the asker may read."""
    login = _organisation(call).login.lower()
    every = [one for one in call.world.registry.repositories.values() if one.owner.login.lower() == login]
    if call.by_app:
        seen = [one for one in every if not one.private or call.actor.sees(one)]
    else:
        user = call.actor.user
        seen = [one for one in every if not one.private or (user and call.world.role(one, user) != "none")]
    return paged(call, [repositories.repository(one, call.urls) for one in seen])


async def list_members(call: Call) -> Reply:
    """Members see each other; nobody has made the membership public."""
    seed = _organisation(call)
    every = (*seed.owners, *seed.members)
    member = call.actor.user is not None and call.actor.user.login in every
    return paged(call, _people(call, every) if member or call.by_app else [])


async def outside_collaborators(call: Call) -> Reply:
    return paged(call, _people(call, _organisation(call).outside_collaborators))


async def installations(call: Call) -> Reply:
    """Ours, where it is installed, and the others of the seed."""
    seed = _organisation(call)
    every = call.world.registry.installations.values()
    ours = [
        apps.installation(one, call.world.app, call.urls)
        for one in every
        if one.account.login.lower() == seed.login.lower()
    ]
    return counted(call, "installations", [*ours, *(_installed(call, one) for one in seed.apps)])


def _installed(call: Call, seed: AppSeed) -> dict[str, Any]:
    account = call.world.user(call.values["org"])
    began = stamp(call.world.app.created_at)
    return {
        "id": seed.app_id + 50_000_000,
        "account": people.user(account, call.urls),
        "repository_selection": "all",
        "access_tokens_url": call.urls.api(f"app/installations/{seed.app_id}/access_tokens"),
        "repositories_url": call.urls.api("installation/repositories"),
        "html_url": call.urls.html(f"organizations/{account.login}/settings/installations/{seed.app_id}"),
        "app_id": seed.app_id,
        "app_slug": seed.slug,
        "target_id": account.id,
        "target_type": account.type,
        "permissions": dict(seed.permissions),
        "events": list(seed.events),
        "created_at": began,
        "updated_at": began,
        "single_file_name": None,
        "has_multiple_single_files": False,
        "single_file_paths": [],
        "suspended_by": None,
        "suspended_at": None,
    }


async def credential_authorizations(call: Call) -> Reply:
    found = _organisation(call).credentials
    if found is None:
        raise not_found()
    return paged(call, [_credential(call, number, one) for number, one in enumerate(found, start=1)])


def _credential(call: Call, number: int, seed: CredentialSeed) -> dict[str, Any]:
    return {
        "login": seed.login,
        "credential_id": number,
        "credential_type": seed.kind,
        "token_last_eight": f"{number:08}",
        "credential_authorized_at": stamp(call.world.app.created_at),
        "credential_accessed_at": None,
        "authorized_credential_id": number,
        "authorized_credential_title": None,
        "authorized_credential_note": None,
        "authorized_credential_expires_at": None,
        "scopes": ["repo"],
    }


async def audit_log(call: Call) -> Reply:
    """Newest first. `phrase` takes the words `action:NAME`, any one of which has to fit."""
    found = _organisation(call).audit_log
    if found is None:
        raise not_found()
    wanted = [word.partition(":")[2] for word in call.query.get("phrase", "").split() if word.startswith("action:")]
    at = int(call.world.clock.now().timestamp() * 1000)
    events = [{"@timestamp": at, **event} for event in found if not wanted or event["action"] in wanted]
    part, headers = cut(call, events)
    return Reply(list(part), headers=headers)


async def user_repositories(call: Call) -> Reply:
    """The public ones."""
    owner = call.world.user(call.values["login"])
    every = call.world.registry.repositories.values()
    return paged(
        call, [repositories.repository(one, call.urls) for one in every if one.owner is owner and not one.private]
    )


async def user_gists(call: Call) -> Reply:
    owner = call.world.user(call.values["login"])
    return paged(call, [_gist(call, owner, number, one) for number, one in enumerate(owner.gists, start=1)])


def _gist(call: Call, owner: User, number: int, seed: GistSeed) -> dict[str, Any]:
    name = f"{owner.id:020x}{number:012x}"
    api, page = call.urls.api(f"gists/{name}"), call.urls.html(f"gist/{name}")
    began = stamp(call.world.app.created_at)
    return {
        "id": name,
        "node_id": node_id("G", owner.id * 100 + number),
        "url": api,
        "forks_url": f"{api}/forks",
        "commits_url": f"{api}/commits",
        "comments_url": f"{api}/comments",
        "git_pull_url": f"{page}.git",
        "git_push_url": f"{page}.git",
        "html_url": page,
        "public": True,
        "description": None,
        "comments": 0,
        "user": None,
        "owner": people.user(owner, call.urls),
        "files": {
            file: {"filename": file, "type": kind, "language": "", "raw_url": f"{page}/raw/{file}", "size": 1}
            for file, kind in seed.files.items()
        },
        "truncated": False,
        "created_at": began,
        "updated_at": began,
    }


HANDLERS: dict[str, Handler] = {
    "GET /orgs/{org}": organisation,
    "GET /orgs/{org}/repos": list_repositories,
    "GET /orgs/{org}/members": list_members,
    "GET /orgs/{org}/outside_collaborators": outside_collaborators,
    "GET /orgs/{org}/installations": installations,
    "GET /orgs/{org}/credential-authorizations": credential_authorizations,
    "GET /orgs/{org}/audit-log": audit_log,
    "GET /users/{login}/repos": user_repositories,
    "GET /users/{login}/gists": user_gists,
}
