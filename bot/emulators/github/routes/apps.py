"""Routes of the App itself: identity, installations, tokens."""

from __future__ import annotations

import secrets

from bot.emulators.github.auth import Narrowing, mint
from bot.emulators.github.call import Call, Handler, Reply
from bot.emulators.github.clock import stamp
from bot.emulators.github.errors import not_found
from bot.emulators.github.records import Installation, InstallationToken
from bot.emulators.github.routes.paging import counted, paged
from bot.emulators.github.shapes import apps, people, repositories
from bot.emulators.github.webhooks.events import on_installation


def _installation(call: Call) -> Installation:
    found = call.world.registry.installations.get(call.number("installation_id"))
    if found is None:
        raise not_found()
    return found


async def get_app(call: Call) -> Reply:
    shape = apps.app(call.world.app, call.urls)
    return Reply({**shape, "installations_count": len(call.world.registry.installations)})


async def list_installations(call: Call) -> Reply:
    every = call.world.registry.installations.values()
    return paged(call, [_listed(call, item) for item in every])


def _listed(call: Call, item: Installation) -> dict[str, object]:
    """In this list GitHub describes the account as user and enterprise in one, so it has the fields of both."""
    shape = apps.installation(item, call.world.app, call.urls)
    login, founded = item.account.login, stamp(item.created_at)
    as_enterprise = {"name": login, "slug": login, "created_at": founded, "updated_at": founded}
    as_user = {name: value for name, value in shape["account"].items() if name != "user_view_type"}
    return {**shape, "account": {**as_user, **as_enterprise}}


async def get_installation(call: Call) -> Reply:
    return Reply(apps.installation(_installation(call), call.world.app, call.urls))


async def repository_installation(call: Call) -> Reply:
    found = call.world.installation_of(call.repository)
    if found is None:
        raise not_found()
    return Reply(apps.installation(found, call.world.app, call.urls))


async def account_installation(call: Call) -> Reply:
    wanted = call.values["owner"].lower()
    for item in call.world.registry.installations.values():
        if item.account.login.lower() == wanted:
            return Reply(apps.installation(item, call.world.app, call.urls))
    raise not_found()


async def create_token(call: Call) -> Reply:
    asked = call.body.object("permissions")
    narrowing = Narrowing(
        repositories=call.body.texts("repositories") if "repositories" in call.body else None,
        repository_ids=call.body.integers("repository_ids") if "repository_ids" in call.body else None,
        permissions={name: str(level) for name, level in asked.items().items()} if asked else None,
    )
    token = mint(call.world, _installation(call), narrowing)
    return Reply(_token_shape(call, token), 201)


def _token_shape(call: Call, token: InstallationToken) -> dict[str, object]:
    shape: dict[str, object] = {
        "token": token.text,
        "expires_at": stamp(token.expires_at),
        "permissions": token.permissions,
        "repository_selection": "selected",
    }
    if token.repository_ids is not None:
        covered = [call.world.registry.repositories[number] for number in sorted(token.repository_ids)]
        shape["repositories"] = [repositories.repository(item, call.urls) for item in covered]
    return shape


async def revoke_token(call: Call) -> Reply:
    if call.actor.token is not None:
        call.world.registry.tokens.pop(call.actor.token.text, None)
    return Reply(status=204)


async def suspend(call: Call) -> Reply:
    found = _installation(call)
    found.suspended_at = call.world.clock.now()
    found.suspended_by = call.world.app.owner
    on_installation(call.world, found, "suspend", call.world.app.owner, call.urls)
    return Reply(status=204)


async def unsuspend(call: Call) -> Reply:
    found = _installation(call)
    found.suspended_at = found.suspended_by = None
    on_installation(call.world, found, "unsuspend", call.world.app.owner, call.urls)
    return Reply(status=204)


async def installation_repositories(call: Call) -> Reply:
    every = [item for item in call.world.registry.repositories.values() if call.actor.sees(item)]
    shapes = [repositories.repository(item, call.urls) for item in every]
    return counted(call, "repositories", shapes, repository_selection="selected")


async def current_user(call: Call) -> Reply:
    return Reply(people.full_user(call.user, call.urls))


async def get_user(call: Call) -> Reply:
    return Reply(people.full_user(call.world.user(call.values["login"]), call.urls))


async def rate_limit(call: Call) -> Reply:
    reset = int(call.world.clock.now().timestamp()) + 3600
    names = ("core", "search", "graphql", "integration_manifest", "code_search")
    one = {"limit": 5000, "used": 1, "remaining": 4999, "reset": reset}
    return Reply({"resources": dict.fromkeys(names, one), "rate": one})


async def convert_manifest(call: Call) -> Reply:
    """Works once per code, within an hour, and is the only time the key is told."""
    app = call.world.app
    expires = call.world.manifest_codes.pop(call.values["code"], None)
    if expires is None or expires < call.world.clock.now():
        raise not_found()
    secret = {"client_secret": secrets.token_hex(20), "webhook_secret": app.webhook_secret, "pem": app.private_key_pem}
    return Reply({**apps.app(app, call.urls), **secret}, 201)


async def zen(_call: Call) -> Reply:
    return Reply(raw=b"Keep it logically awesome.", media_type="text/plain; charset=utf-8")


async def meta(_call: Call) -> Reply:
    return Reply({"verifiable_password_authentication": False})


HANDLERS: dict[str, Handler] = {
    "GET /app": get_app,
    "GET /app/installations": list_installations,
    "GET /app/installations/{installation_id}": get_installation,
    "POST /app/installations/{installation_id}/access_tokens": create_token,
    "PUT /app/installations/{installation_id}/suspended": suspend,
    "DELETE /app/installations/{installation_id}/suspended": unsuspend,
    "GET /repos/{owner}/{repo}/installation": repository_installation,
    "GET /orgs/{owner}/installation": account_installation,
    "GET /users/{owner}/installation": account_installation,
    "GET /installation/repositories": installation_repositories,
    "DELETE /installation/token": revoke_token,
    "GET /user": current_user,
    "GET /users/{login}": get_user,
    "POST /app-manifests/{code}/conversions": convert_manifest,
    "GET /rate_limit": rate_limit,
    "GET /zen": zen,
    "GET /meta": meta,
}
