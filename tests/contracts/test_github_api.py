"""The stand-in held to GitHub's own descriptions: what is answered, what is asked, and which permission it takes.

Every world that `github_world.hub` opens is recorded and judged when it closes. Here: that the judge bites, that no call of the
product escapes it, and that permissions are those that GitHub lists.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import githubkit_schemas.v2026_03_10.models as newer
import pytest

from bot.domain.change import FileMode, TreeEntry
from bot.domain.ids import InstallationId, RepositoryId
from bot.emulators.github import Config, RepositorySeed, Seed
from bot.emulators.github.auth import LEVELS
from bot.emulators.github.permissions import TABLE
from bot.providers.forge.githubkit import AppCredentials, GithubForge, GithubForges
from bot.providers.forge.hooklog import GithubHookLog
from bot.providers.forge.port import CheckConclusion, CheckReport, Forge, NewPull
from bot.providers.forge.tokens import Phase
from tests.attacks.gateway_calls import ALLOWED, GRAPHQL, concrete
from tests.contracts import github_api
from tests.contracts.github_api import Exchange, description, permissions
from tests.contracts.github_world import HOME, Hub, everything, hub, receiving
from tests.fixtures.github.trim import shape

ROOT = Path(__file__).parents[2]
BLOB = {"sha": "a" * 40, "url": "https://hub.example/x"}
GOOD = Exchange(
    method="POST",
    path=f"{HOME}/git/blobs",
    query="",
    asked=b'{"content": "x"}',
    status=201,
    agent=github_api.OURS,
    accept="",
    media_type="application/json; charset=utf-8",
    version=github_api.NEW_VERSION,
    answered=json.dumps(BLOB).encode(),
)
EYES = {"id": 1, "node_id": "R", "user": None, "content": "eyes", "created_at": "2026-01-01T00:00:00Z"}
REACTION = replace(
    GOOD,
    path=f"{HOME}/issues/comments/1/reactions",
    asked=b'{"content": "eyes"}',
    answered=json.dumps(EYES).encode(),
)
READ = replace(GOOD, method="GET", path=f"{HOME}/pulls", asked=b"", status=200, answered=b"[]")


def answering(told: object) -> Exchange:
    return replace(GOOD, answered=json.dumps(told).encode())


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (replace(GOOD, status=200), "status is not described"),
        (answering({"sha": "a" * 40}), '"url" is a required property'),
        (answering({**BLOB, "sha": 7}), "not of type"),
        (replace(REACTION, answered=json.dumps({**EYES, "created_at": "yesterday"}).encode()), "date-time"),
        (answering({**BLOB, "invented": 1}), "Additional properties"),
        (replace(GOOD, answered=b"<html>"), "not JSON"),
        (replace(GOOD, media_type="text/html"), "media type"),
        (replace(GOOD, path="/repos/octo-org/hello/nonsense"), "nobody describes"),
        (replace(GOOD, status=500, answered=b'{"message": "x"}'), "status is not described"),
        (replace(GOOD, status=404, answered=b'{"message": 7}'), "not of type"),
        (replace(GOOD, asked=b"{}"), '"content" is a required property'),
        (replace(GOOD, asked=b""), "not of type"),
        (replace(GOOD, asked=b'{"content": "x", "made_up": 1}'), "Additional properties"),
        (replace(READ, query="made_up=1"), "query parameter"),
        (replace(READ, query="state=ajar"), "is not one of"),
        (replace(READ, asked=b"{}"), "request body where none"),
        (replace(READ, answered=b"{}"), "not of type"),
        (replace(GOOD, method="DELETE", path=f"{HOME}/git/refs/heads/x", asked=b"", status=204), "body where none"),
    ],
)
def test_the_judge_bites(seen: Exchange, words: str):
    for good in (GOOD, READ, REACTION):
        assert description().faults(good) == []
    assert words in "\n".join(description().faults(seen))


def test_fields_that_the_newer_version_lost_are_those_of_githubkits_models():
    for name, gone in github_api.GONE.items():
        model = getattr(newer, "".join(part.title() for part in name.split("-")), None)
        assert model is None or not gone & model.model_fields.keys()
        old = description().told["components"]["schemas"].get(name)
        assert old is None or gone <= old["properties"].keys() | {"has_downloads"}
    assert newer.Label.model_fields.keys() >= github_api.NEWER.keys()


async def test_every_call_of_the_product_is_answered_as_described():
    """Each method of the port once; what arrives is the list of calls, whole."""
    teams = Config(
        seed=replace(Seed(), teams={"octo-org/core": ("octo-dev",)}), permissions={**GRANTED, "members": "read"}
    )
    async with receiving() as receiver, hub(teams) as world:
        receiver.answer = 500
        await world.ask("PATCH", "/app/hook/config", "app", {"url": receiver.url})
        credentials = AppCredentials.from_pem(str(world.endpoint.app_id), world.endpoint.private_key_pem)
        forges = GithubForges(credentials, base_url=world.endpoint.url)
        forge = await forges.open(
            InstallationId(world.endpoint.installation_id), RepositoryId(world.endpoint.repositories[0].id)
        )
        called = await _use_everything(world, forge)
        await forges.bot()
        await world.endpoint.settle()
        log = GithubHookLog(credentials, base_url=world.endpoint.url)
        await log.redeliver((await log.failed())[0].attempt)
        await log.close()
        await forges.close()
        methods = {name for name, _ in inspect.getmembers(Forge, inspect.isfunction) if not name.startswith("_")}
        assert methods - called == set(), "a method of the port that this test does not use"
        seen = world.recorder.ours
    wanted = {call: description().find(*concrete(call)) for call in ALLOWED - {GRAPHQL}}
    assert seen == {one.name if one else call for call, one in wanted.items()}


GRANTED = {"contents": "write", "pull_requests": "write", "issues": "write", "checks": "write"}


class _Used:
    """Passes every call on and remembers its name."""

    def __init__(self, forge: GithubForge) -> None:
        self._forge = forge
        self.names: set[str] = {"repository"}

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self._forge, name)


async def _use_everything(world: Hub, real: GithubForge) -> set[str]:
    await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x", "labels": ["agent"]})
    forge = _Used(real)
    await forge.permission("octo-dev")
    await forge.on_team("octo-org/core", "octo-dev")
    await forge.issue(1)
    said = await forge.create_comment(1, "one")
    await forge.update_comment(said.id, "two")
    await forge.react(said.id, "eyes")
    await forge.react(said.id, "eyes")
    await forge.comments(1)
    await forge.add_label(1, "new")
    await forge.remove_label(1, "new")
    main = await forge.branch_head("main")
    base = await forge.commit(main)
    blob = await forge.create_blob(b"\x00\xff")
    tree = await forge.create_tree(base.tree, (TreeEntry("bin/x", FileMode.EXECUTABLE, blob),), ("README.md",))
    first = await forge.create_commit("One", tree, (main,))
    await forge.create_branch("agent/1-x", first.id)
    head = (await forge.create_commit("Two", tree, (first.id,))).id
    await forge.advance_branch("agent/1-x", head)
    await forge.find_pull("agent/1-x", "main")
    made = await forge.create_pull(NewPull("x", "words", "agent/1-x", "main"))
    await forge.add_label(made.number, "agent")
    await forge.find_pull("agent/1-x", "main")
    await forge.update_pull_body(made.number, "more words")
    await forge.mark_ready(made.node_id)
    await forge.convert_to_draft(made.node_id)
    await forge.mark_ready(made.node_id)
    on_a_line = [{"path": "bin/x", "line": 1, "body": "why"}]
    said_on_a_line = {"event": "APPROVE", "body": "ok", "comments": on_a_line}
    await world.ask("POST", f"{HOME}/pulls/{made.number}/reviews", "octo-dev", said_on_a_line)
    (given,) = await forge.reviews(made.number)
    await forge.review(made.number, given.id)
    await forge.review_words(made.number, given.id)
    run = await forge.report_check(CheckReport("pullwright/gate", head, "Waiting", "…", None, "t"), None)
    await forge.report_check(CheckReport("pullwright/gate", head, "Ok", "…", CheckConclusion.SUCCESS, "t"), run)
    await forge.find_check(head, "pullwright/gate")
    await forge.merge(made.number, head=head, title="T", message="M")
    await forge.pull(made.number)
    await forge.fetch_token()
    return forge.names


UNLISTED = {
    "GET /repos/{}/{}/collaborators/{}/permission": "metadata:read",
    "GET /repos/{}/{}/rules/branches/{}": "metadata:read",
    "GET /repos/{}/{}/contents": "contents:read",
    "GET /repos/{}/{}/compare/{}": "contents:read",
    "GET /repos/{}/{}/commits/{}/pulls": "pull_requests:read",
    "GET /orgs/{}/teams/{}/memberships/{}": "members:read",
    "GET /installation/repositories": "metadata:read",
    "GET /orgs/{}/installations": "organization_administration:read",
    "GET /orgs/{}/credential-authorizations": "organization_administration:read",
    "GET /orgs/{}/audit-log": "organization_administration:read",
    "GET /repos/{}/{}/rulesets/{}": "metadata:read",
    "PUT /repos/{}/{}/pulls/{}/update-branch": "pull_requests:write",
    "POST /repos/{}/{}/pulls/{}/comments/{}/replies": "pull_requests:write",
    "POST /repos/{}/{}/check-runs/{}/rerequest": "checks:write",
}
"""Calls that the list of `@octokit/app-permissions` does not have; GitHub's reference pages name these."""


@pytest.mark.parametrize("route", [route for route, rule in TABLE.items() if rule.token])
def test_the_stand_in_demands_no_less_than_github(route: str):
    listed = set(permissions().get(shape(route), ())) or {UNLISTED[shape(route)]}
    assert set(TABLE[route].token) <= listed


def test_a_token_is_demanded_wherever_github_demands_one():
    public = {"GET /users/{login}", "GET /rate_limit", "GET /meta", "POST /graphql", "GET /zen"}
    listed = {route for route in TABLE if permissions().get(shape(route)) or shape(route) in UNLISTED}
    assert {route for route in listed if not TABLE[route].token} <= public


def test_the_manifest_asks_for_exactly_what_the_phases_use():
    """`members` is the operator's choice (code owners that are teams), so the manifest leaves it out."""
    union: dict[str, str] = {"metadata": "read"}
    for phase in Phase:
        for name, level in phase.permissions.items():
            union[name] = max(union.get(name, "none"), level, key=LEVELS.__getitem__)
    assert union.pop("members") == "read"
    manifest = (ROOT / "app.yml").read_text("utf-8")
    asked = manifest.partition("default_permissions:\n")[2].partition("default_events:")[0]
    assert dict(line.strip().split(": ") for line in asked.splitlines()) == union


REPOSITORY_CALLS = sorted(call for call in ALLOWED if call.partition(" ")[2].startswith(("/repos/", "/repositories/")))
ELSEWHERE = Config(
    seed=Seed(
        repositories=(
            RepositorySeed("octo-org/hello", contents={"README.md": "# hello\n"}),
            RepositorySeed("octo-org/second", contents={"README.md": "# second\n"}),
        )
    )
)


TABLE_NEEDS = {shape(route): rule.token for route, rule in TABLE.items()}


async def test_each_call_needs_its_permission_and_its_repository():
    """Without the permission 403 and GitHub's words, without the repository 404 as if it were not there."""
    async with hub(ELSEWHERE) as world:
        foreign = await world.mint(repositories=["second"])
        for call in REPOSITORY_CALLS:
            method, path = concrete(call)
            operation = description().find(method, path)
            assert operation
            needs = set(permissions().get(shape(operation.name), ())) or {UNLISTED[shape(operation.name)]}
            names = {need.partition(":")[0] for need in needs}
            body: dict[str, Any] | None = None if method in {"GET", "DELETE"} else {}
            if "metadata" not in names:
                rest = {name: level for name, level in GRANTED.items() if name not in names}
                refused = await world.ask(method, path, await world.mint(permissions=rest), body)
                assert (refused.status_code, refused.json()["message"]) == (
                    403,
                    "Resource not accessible by integration",
                ), call
            hidden = await world.ask(method, path, foreign, body)
            assert (hidden.status_code, hidden.json()["message"]) == (404, "Not Found"), call
            name, _, level = min(needs & set(TABLE_NEEDS[shape(operation.name)])).partition(":")
            granted = {} if name == "metadata" else {name: level}
            admitted = await world.ask(
                method, path, await world.mint(permissions=granted or {"metadata": "read"}), body
            )
            assert "not accessible" not in admitted.text, call


async def test_every_webhook_is_as_described():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await everything(world)
        await world.http.post("/_stand-in/ping")
        await world.http.post("/_stand-in/installation", json={"action": "created"})
        await world.endpoint.settle()
        faults = [
            fault for event in receiver.events for fault in description().webhook_faults(event.name, event.payload)
        ]
        assert sorted(set(faults)) == []
        assert len(set(receiver.names())) >= 33
