"""An organisation's own pages in the stand-in, fine-grained tokens, and branches that only an App writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bot.emulators.github import (
    AppSeed,
    Config,
    CredentialSeed,
    DeployKeySeed,
    GistSeed,
    OrganisationSeed,
    Protection,
    RepositorySeed,
    Seed,
    UserSeed,
)
from tests.contracts.github_world import HOME, Hub, clone_url, hub, plain_git

AGENTS = Protection("agent/**", restricted=True, bypass_apps=(411_000,))
READER: Mapping[str, str] = {"contents": "read"}
SEED = Seed(
    users=(
        UserSeed("octo-admin", "admin"),
        UserSeed("octo-dev", "write", gists=(GistSeed({"shot.png": "image/png"}),)),
        UserSeed("octo-stranger", "none"),
        UserSeed("octo-audit", "admin", token_permissions=READER),
    ),
    repositories=(
        RepositorySeed(
            "octo-org/hello",
            contents={"README.md": "# hello\n"},
            protections=(Protection("main", pull_request=True, required_status_checks=("x",), check_source=7), AGENTS),
            keys=(DeployKeySeed("deploy", "octo-dev"),),
        ),
        RepositorySeed("octo-org/open", contents={"README.md": "# open\n"}, private=False, installed=False),
        RepositorySeed("octo-dev/hello", fork_of="octo-org/hello", private=False, installed=False),
    ),
    organisations=(
        OrganisationSeed(
            "octo-org",
            owners=("octo-admin", "octo-audit"),
            members=("octo-dev",),
            outside_collaborators=("octo-stranger",),
            apps=(AppSeed("other", 9, {"contents": "read"}, ("push",)),),
            credentials=(CredentialSeed("octo-dev"),),
            audit_log=({"action": "repo.create", "actor": "octo-dev", "repo": "octo-org/hello"}, {"action": "x.y"}),
        ),
    ),
)
CONFIG = Config(seed=SEED)


async def names(world: Hub, path: str, who: str, key: str = "login") -> list[str]:
    answer = await world.ask("GET", path, who)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    return [one[key] for one in (told if isinstance(told, list) else told["installations"])]


async def test_owners_read_the_pages_of_their_organisation():
    async with hub(CONFIG) as world:
        assert await names(world, "/orgs/octo-org/repos", "octo-admin", "name") == ["hello", "open"]
        assert await names(world, "/orgs/octo-org/repos", "octo-stranger", "name") == ["open"]
        assert await names(world, "/orgs/octo-org/members", "octo-dev") == ["octo-admin", "octo-audit", "octo-dev"]
        assert await names(world, "/orgs/octo-org/members", "octo-stranger") == []
        assert await names(world, "/orgs/octo-org/outside_collaborators", "octo-admin") == ["octo-stranger"]
        assert await names(world, "/orgs/octo-org/installations", "octo-admin", "app_slug") == ["pullwright", "other"]
        assert await names(world, "/orgs/octo-org/credential-authorizations", "octo-admin") == ["octo-dev"]
        log = "/orgs/octo-org/audit-log?phrase=action:repo.create"
        assert await names(world, log, "octo-admin", "action") == ["repo.create"]
        assert await names(world, f"{HOME}/keys", "octo-admin", "added_by") == ["octo-dev"]
        assert await names(world, f"{HOME}/forks", "octo-admin", "full_name") == ["octo-dev/hello"]
        assert await names(world, "/users/octo-dev/repos", "octo-stranger", "full_name") == ["octo-dev/hello"]
        whole = (await world.ask("GET", "/orgs/octo-org", "octo-admin")).json()
        assert (whole["public_repos"], whole["total_private_repos"]) == (1, 1)
        for who in ("octo-dev", "octo-audit", "octo-stranger", await world.mint()):
            assert "total_private_repos" not in (await world.ask("GET", "/orgs/octo-org", who)).json(), who
        gists = await world.ask("GET", "/users/octo-dev/gists", "octo-stranger")
        assert list(gists.json()[0]["files"]) == ["shot.png"]


@pytest.mark.parametrize(
    "page", ["outside_collaborators", "installations", "credential-authorizations", "audit-log?phrase=x"]
)
async def test_nobody_but_owners_with_the_right_token_reads_them(page: str):
    async with hub(CONFIG) as world:
        for who, status in (("octo-dev", 403), ("octo-stranger", 403), (await world.mint(), 403)):
            assert (await world.ask("GET", f"/orgs/octo-org/{page}", who)).status_code == status, who
        narrow = await world.ask("GET", f"/orgs/octo-org/{page}", "octo-audit")
        assert (narrow.status_code, narrow.json()["message"]) == (
            403,
            "Resource not accessible by personal access token",
        )
        assert (await world.ask("GET", f"/orgs/octo-nobody/{page}", "octo-admin")).status_code == 404


async def test_what_an_organisation_does_not_have_is_not_found():
    seed = replace(SEED, organisations=(replace(SEED.organisations[0], credentials=None, audit_log=None),))
    async with hub(Config(seed=seed)) as world:
        for page in ("credential-authorizations", "audit-log"):
            assert (await world.ask("GET", f"/orgs/octo-org/{page}", "octo-admin")).status_code == 404


async def test_who_may_bypass_rules_is_told_to_those_who_may_change_them():
    async with hub(CONFIG) as world:
        rules = (await world.ask("GET", f"{HOME}/rules/branches/agent/1-x", "octo-dev")).json()
        assert {"creation", "update"} <= {rule["type"] for rule in rules}
        path = f"{HOME}/rulesets/{rules[0]['ruleset_id']}"
        told = (await world.ask("GET", path, "octo-admin")).json()
        assert [actor["actor_id"] for actor in told["bypass_actors"]] == [411_000]
        for who in ("octo-dev", "octo-audit", await world.mint()):
            assert "bypass_actors" not in (await world.ask("GET", path, who)).json(), who
        assert (await world.ask("GET", f"{HOME}/rulesets/1", "octo-admin")).status_code == 404
        main = (await world.ask("GET", f"{HOME}/rules/branches/main", "octo-dev")).json()
        (checks,) = [rule["parameters"] for rule in main if rule["type"] == "required_status_checks"]
        assert checks["required_status_checks"] == [{"context": "x", "integration_id": 7}]
        assert (await world.ask("GET", f"{HOME}/rules/branches/other", "octo-dev")).json() == []


async def test_a_fine_grained_token_may_what_it_was_given_and_no_more():
    async with hub(CONFIG) as world:
        assert (await world.ask("GET", f"{HOME}/git/ref/heads/main", "octo-audit")).status_code == 200
        for method, path, body in (
            ("GET", f"{HOME}/keys", None),
            ("GET", f"{HOME}/issues", None),
            ("POST", f"{HOME}/git/blobs", {"content": "x"}),
        ):
            refused = await world.ask(method, path, "octo-audit", body)
            assert (refused.status_code, "personal access token" in refused.text) == (403, True), path


async def test_a_restricted_branch_is_the_apps_alone(tmp_path):
    async with hub(CONFIG) as world:
        token, head = await world.mint(), await world.tip()
        refused = await world.branch("agent/1-x", head, "octo-admin")
        assert (refused.status_code, "creations being restricted" in refused.text) == (422, True)
        assert (await world.branch("agent/1-x", head, token)).status_code == 201
        moved = await world.commit({"a": "a"}, parent=head, token="octo-admin")
        assert "Cannot update this protected ref" in (await world.advance("agent/1-x", moved, "octo-admin")).text
        assert (await world.advance("agent/1-x", moved, token)).status_code == 200
        copy = tmp_path / "copy"
        await plain_git("clone", "-q", clone_url(world.endpoint, world.token("octo-admin")), str(copy))
        pushed = await plain_git("push", "origin", "HEAD:refs/heads/agent/2-y", directory=copy)
        assert "GH013" in str(pushed.stderr)
