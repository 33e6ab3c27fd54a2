"""Who may do what on the stand-in: every refusal of the auth chapter."""

from __future__ import annotations

import json
import re
import time

import httpx
import jwt
import pytest

from bot.emulators.github import Config, RepositorySeed, Seed
from bot.emulators.github.manifest import LEVELS, faults
from tests.contracts.github_api import description
from tests.contracts.github_world import HOME, Hub, app_jwt, hub

ELSEWHERE = Config(
    seed=Seed(
        repositories=(
            RepositorySeed("octo-org/hello", contents={"README.md": "# hello\n"}),
            RepositorySeed("octo-org/second", contents={"README.md": "# second\n"}),
            RepositorySeed("octo-org/secret", contents={"README.md": "# secret\n"}, installed=False),
        )
    )
)


async def _with_jwt(world: Hub, token: str) -> tuple[int, str]:
    answer = await world.http.get("/app", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code, answer.json().get("message", "")


async def test_the_app_is_known_by_app_id_or_client_id():
    async with hub() as world:
        for issuer in (str(world.endpoint.app_id), world.endpoint.client_id):
            assert (await _with_jwt(world, app_jwt(world.endpoint, iss=issuer)))[0] == 200


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"iss": "999"}, 404, "Integration not found"),
        ({"iss": None}, 401, "'Issuer' claim"),
        ({"exp": 0}, 401, "'Expiration time' claim ('exp') must be a numeric value"),
        ({"exp": 3600}, 401, "too far in the future"),
        ({"iat": 900, "exp": 550}, 401, "'Issued at' claim ('iat')"),
    ],
)
async def test_a_bad_app_token_is_refused(change, status, words):
    now = int(time.time())
    moved = {k: now + v if isinstance(v, int) and v else v for k, v in change.items()}
    async with hub() as world:
        got = await _with_jwt(world, app_jwt(world.endpoint, **moved))
        assert got[0] == status
        assert words in got[1]


async def test_a_token_of_another_key_or_algorithm_is_refused():
    async with hub() as world:
        now = int(time.time())
        claims = {"iat": now - 10, "exp": now + 60, "iss": str(world.endpoint.app_id)}
        forged = jwt.encode(claims, "a shared secret that is long enough to sign", "HS256")
        assert await _with_jwt(world, forged) == (401, "A JSON web token could not be decoded")
        for none in ("Bearer nonsense", "Basic !!!", "Digest x"):
            answer = await world.http.get(HOME, headers={"Authorization": none})
            assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


async def test_an_installation_token_is_long_expires_in_an_hour_and_may_be_narrowed():
    async with hub(ELSEWHERE) as world:
        path = f"/app/installations/{world.endpoint.installation_id}/access_tokens"
        answer = await world.ask("POST", path, "app", {"repositories": ["hello"], "permissions": {"contents": "read"}})
        told = answer.json()
        assert re.fullmatch(r"ghs_[A-Za-z0-9_.\-]{200,}", told["token"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["expires_at"])
        assert told["permissions"] == {"contents": "read", "metadata": "read"}
        assert [one["full_name"] for one in told["repositories"]] == ["octo-org/hello"]
        token = told["token"]
        assert (await world.ask("GET", HOME, token)).status_code == 200
        assert (await world.ask("GET", "/repos/octo-org/second", token)).status_code == 404
        refused = await world.ask("POST", f"{HOME}/issues", token, {"title": "x"})
        assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
        write = await world.ask("POST", f"{HOME}/git/blobs", token, {"content": "x"})
        assert write.status_code == 403
        listed = await world.ask("GET", "/installation/repositories", token)
        assert [one["full_name"] for one in listed.json()["repositories"]] == ["octo-org/hello"]


async def test_tokens_narrow_by_repository_number_too():
    async with hub(ELSEWHERE) as world:
        second = next(one for one in world.endpoint.repositories if one.full_name == "octo-org/second")
        token = await world.mint(repository_ids=[second.id])
        assert (await world.ask("GET", "/repos/octo-org/second", token)).status_code == 200
        assert (await world.ask("GET", HOME, token)).status_code == 404


@pytest.mark.parametrize(
    ("narrowing", "words"),
    [
        ({"permissions": {"administration": "write"}}, "permissions requested are not granted"),
        ({"permissions": {"statuses": "write"}}, "permissions requested are not granted"),
        ({"permissions": {"contents": "everything"}}, "permissions requested are not granted"),
        ({"repositories": ["secret"]}, "does not exist or is not accessible"),
        ({"repositories": ["nowhere"]}, "does not exist or is not accessible"),
        ({"repository_ids": [1]}, "does not exist or is not accessible"),
        ({"repository_ids": ["one"]}, "is not an array"),
    ],
)
async def test_asking_for_more_than_was_granted_is_refused(narrowing, words):
    async with hub(ELSEWHERE) as world:
        path = f"/app/installations/{world.endpoint.installation_id}/access_tokens"
        answer = await world.ask("POST", path, "app", narrowing)
        assert answer.status_code == 422
        assert words in answer.json()["message"]


async def test_a_token_dies_after_an_hour_or_when_revoked():
    async with hub() as world:
        first, second = await world.mint(), await world.mint()
        assert (await world.ask("DELETE", "/installation/token", first)).status_code == 204
        assert (await world.ask("GET", HOME, first)).status_code == 401
        await world.http.post("/_stand-in/clock", json={"advance": 3601})
        gone = await world.ask("GET", HOME, second)
        assert (gone.status_code, gone.json()["message"]) == (401, "Bad credentials")


async def test_a_suspended_installation_gets_no_token_and_its_tokens_stop():
    async with hub() as world:
        token = await world.mint()
        path = f"/app/installations/{world.endpoint.installation_id}"
        assert (await world.ask("PUT", f"{path}/suspended", "app")).status_code == 204
        for answer in (
            await world.ask("POST", f"{path}/access_tokens", "app"),
            await world.ask("GET", HOME, token),
        ):
            assert (answer.status_code, answer.json()["message"]) == (403, "This installation has been suspended")
        assert (await world.ask("GET", path, "app")).json()["suspended_at"]
        assert (await world.ask("DELETE", f"{path}/suspended", "app")).status_code == 204
        assert await world.mint()


async def test_each_kind_of_credential_stays_on_its_own_routes():
    async with hub() as world:
        token = await world.mint()
        assert (await world.ask("GET", "/app", token)).status_code == 401
        assert (await world.ask("GET", "/app", "octo-admin")).status_code == 401
        assert (await world.ask("GET", HOME, "app")).status_code == 403
        assert (await world.ask("GET", "/user", token)).status_code == 403
        assert (await world.ask("GET", "/installation/repositories", "octo-admin")).status_code == 403
        check = {"name": "x", "head_sha": await world.tip()}
        person = await world.ask("POST", f"{HOME}/check-runs", "octo-admin", check)
        assert (person.status_code, person.json()["message"]) == (403, "You must authenticate via a GitHub App.")


async def test_people_are_held_to_their_role():
    async with hub() as world:
        assert (await world.ask("GET", HOME, "octo-stranger")).status_code == 404
        issue = await world.ask("POST", f"{HOME}/issues", "octo-reader", {"title": "x", "labels": ["bug"]})
        assert issue.status_code == 201
        assert issue.json()["labels"] == []
        path = f"{HOME}/issues/1/labels"
        assert (await world.ask("POST", path, "octo-reader", {"labels": ["agent"]})).status_code == 403
        assert (await world.ask("POST", path, "octo-triage", {"labels": ["agent"]})).status_code == 200
        sha = await world.tip()
        assert (await world.branch("x", sha, world.token("octo-triage"))).status_code == 403
        assert (await world.branch("x", sha, world.token("octo-dev"))).status_code == 201
        assert (await world.ask("PATCH", HOME, "octo-dev", {"archived": True})).status_code == 403


@pytest.mark.parametrize(
    ("login", "permission", "role"),
    [
        ("octo-admin", "admin", "admin"),
        ("octo-dev", "write", "write"),
        ("octo-triage", "read", "triage"),
        ("octo-reader", "read", "read"),
        ("octo-stranger", "none", "none"),
    ],
)
async def test_the_permission_endpoint_tells_coarse_level_and_role(login, permission, role):
    async with hub() as world:
        path = f"{HOME}/collaborators/{login}/permission"
        told = (await world.ask("GET", path, await world.mint(permissions={"metadata": "read"}))).json()
        assert (told["permission"], told["role_name"], told["user"]["login"]) == (permission, role, login)
        missing = await world.ask("GET", f"{HOME}/collaborators/nobody-here/permission", "octo-admin")
        assert missing.status_code == 404


async def test_nobody_gets_nothing_of_a_private_repository():
    async with hub() as world:
        assert (await world.http.get(HOME)).status_code == 404
        assert (await world.http.get("/user")).status_code == 401
        without = await world.http.get(HOME, headers={"User-Agent": ""})
        assert without.status_code == 403


async def test_a_renamed_repository_answers_with_a_redirect_to_its_number():
    async with hub() as world:
        number = world.endpoint.repositories[0].id
        assert (await world.ask("PATCH", HOME, "octo-admin", {"name": "renamed"})).status_code == 200
        token = await world.mint()
        moved = await world.ask("POST", f"{HOME}/issues/1/comments", token, {"body": "x"})
        assert moved.status_code == 301
        assert moved.headers["location"] == f"{world.endpoint.url}/repositories/{number}/issues/1/comments"
        found = await world.ask("GET", f"/repositories/{number}", token)
        assert found.json()["full_name"] == "octo-org/renamed"
        assert (await world.ask("GET", f"/repositories/{number}/branches", token)).status_code == 200


async def test_the_log_names_actor_and_permission_of_each_request():
    async with hub() as world:
        token = await world.mint()
        await world.ask("GET", f"{HOME}/branches", token)
        await world.ask("GET", "/nowhere", "octo-dev")
        log = (await world.http.get("/_stand-in/log")).json()
        assert [(one["method"], one["status"], one["actor"], one["permission"]) for one in log[-2:]] == [
            ("GET", 200, "pullwright[bot]", "contents:read"),
            ("GET", 404, "octo-dev", "-"),
        ]
        bill = (await world.http.get("/_stand-in/bill")).json()
        assert (bill["requests"], bill["tokens minted"], bill["mutations"]) == (3, 1, 1)


MANIFEST: dict[str, object] = {
    "name": "My Agent",
    "url": "http://127.0.0.1/",
    "hook_attributes": {"url": "http://127.0.0.1:9/hooks"},
    "redirect_url": "http://127.0.0.1:9/back",
    "default_permissions": {"contents": "write"},
    "default_events": ["push", "repository"],
}
NEW_APP = "/organizations/octo-org/settings/apps/new"


async def test_an_app_is_registered_by_manifest_with_a_code_that_works_once_and_for_an_hour():
    async with hub() as world:
        codes = []
        for _ in range(2):
            back = await world.http.post(f"{NEW_APP}?state=s1", data={"manifest": json.dumps(MANIFEST)})
            assert back.status_code == 302
            address = httpx.URL(back.headers["location"])
            assert (address.path, address.params["state"]) == ("/back", "s1")
            codes.append(f"/app-manifests/{address.params['code']}/conversions")
        made = await world.http.post(codes[0])
        assert made.status_code == 201
        assert made.json().keys() >= {"id", "slug", "client_id", "client_secret", "webhook_secret", "pem"}
        assert made.json()["pem"] == world.endpoint.private_key_pem
        assert made.json()["permissions"] == {"metadata": "read", "contents": "write"}
        assert (await world.http.post(codes[0])).status_code == 404
        await world.http.post("/_stand-in/clock", json={"advance": 3601})
        assert (await world.http.post(codes[1])).status_code == 404


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"url": None}, '"url" wasn\'t supplied.'),
        ({"url": {"type": "git"}}, "is not a string"),
        ({"hook_attributes": {"active": False}}, '"url" wasn\'t supplied.'),
        ({"name": "a" * 35}, "maximum is 34"),
        ({"redirect_url": "ftp://127.0.0.1/back"}, "Redirect url"),
        ({"callback_urls": ["https://example.org"] * 11}, "at most 10"),
        ({"default_permissions": {"content": "write"}}, "content: write"),
        ({"default_permissions": {"contents": "admin"}}, "contents: admin"),
        ({"default_permissions": {"workflows": "read"}}, "workflows: read"),
        ({"default_events": ["pushes"]}, "Default events unsupported: pushes"),
        ({"default_events": ["installation"]}, "Default events unsupported: installation"),
        ({"default_events": ["push", "issue_comment"]}, "not supported by permissions: issue_comment"),
        ({"default_permissions": {}, "default_events": ["repository"]}, "not supported by permissions: repository"),
    ],
)
def test_a_manifest_is_refused_as_the_settings_page_refuses_it(change: dict[str, object], said: str):
    assert list(faults(MANIFEST)) == []
    assert said in " ".join(faults({**MANIFEST, **change}))


def test_permissions_of_a_manifest_are_those_of_githubs_description():
    described = description().told["components"]["schemas"]["app-permissions"]["properties"]
    assert {name: tuple(told["enum"]) for name, told in described.items()} == LEVELS


async def test_a_token_loses_what_the_owner_takes_from_the_installation():
    async with hub() as world:
        token = await world.mint()
        asked = {"action": "permissions", "permissions": {"contents": "read"}}
        await world.http.post("/_stand-in/installation", json=asked)
        assert (await world.ask("POST", f"{HOME}/git/blobs", token, {"content": "x"})).status_code == 403
        assert (await world.ask("GET", f"{HOME}/branches", token)).status_code == 200
