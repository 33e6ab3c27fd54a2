"""The action gateway: a closed list of calls. What is not on it has no method, and what is on it goes nowhere else."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from bot.domain.ids import CommitId, InstallationId, RepositoryId
from bot.emulators.github.birth import key_pair
from bot.providers.forge import githubkit
from bot.providers.forge.githubkit import AppCredentials, GithubForge, GithubForges
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.providers.forge.tokens import Phase
from tests.attacks.conftest import Control

ALLOWED = {
    "GET /app",
    "GET /app/installations",
    "POST /app/installations/{}/access_tokens",
    "GET /users/{}%5Bbot%5D",
    "GET /repositories/{}",
    "POST {graphql}",
    "GET /repos/{}/collaborators/{}/permission",
    "GET /repos/{}/issues/{}",
    "GET /repos/{}/issues/{}/comments",
    "POST /repos/{}/issues/{}/comments",
    "PATCH /repos/{}/issues/comments/{}",
    "POST /repos/{}/issues/comments/{}/reactions",
    "POST /repos/{}/issues/{}/labels",
    "DELETE /repos/{}/issues/{}/labels/{}",
    "GET /repos/{}/git/ref/heads/{}",
    "POST /repos/{}/git/blobs",
    "POST /repos/{}/git/trees",
    "POST /repos/{}/git/commits",
    "GET /repos/{}/git/commits/{}",
    "POST /repos/{}/git/refs",
    "PATCH /repos/{}/git/refs/heads/{}",
    "GET /repos/{}/pulls",
    "POST /repos/{}/pulls",
    "GET /repos/{}/pulls/{}",
    "PATCH /repos/{}/pulls/{}",
    "GET /repos/{}/pulls/{}/reviews",
    "GET /repos/{}/pulls/{}/reviews/{}",
    "PUT /repos/{}/pulls/{}/merge",
    "POST /repos/{}/check-runs",
    "PATCH /repos/{}/check-runs/{}",
    "GET /repos/{}/commits/{}/check-runs",
}
"""Every call the product can make. A line is added here only with a reason a reviewer accepts."""

NEVER = re.compile(
    r"^\w+ /(?:user/repos|orgs|gists|user)\b|/(?:forks|transfer|generate|import|pages|releases|keys|hooks|secrets|environments"
    r"|rulesets|invitations|deployments|contents|merges|dispatches|teams|topics|visibility)\b|^(?:PUT|DELETE) .*/collaborators"
    r"|^(?:PATCH|PUT|DELETE) /repos/\{\}$"
)


def calls(source: str) -> set[str]:
    """Every call in the text of the forge, with what varies as `{}`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        args = [_text(arg) for arg in node.args]
        if name in {"_read", "_pages"} and args[0] not in {"{}", ""}:
            found.add(f"GET /repos/{{}}{args[0]}")
        elif name == "_write":
            found.add(f"{args[1]} /repos/{{}}{args[2]}")
        elif name == "Ask":
            found.add(f"{args[0]} {args[1]}")
    return found


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return "{}"


def test_d01_d05_the_forge_makes_the_calls_of_the_list_and_no_other(control: Control):
    source = Path(githubkit.__file__).read_text("utf-8")
    written = {call.replace("{} /repos/{}{}", "") for call in calls(source)} - {""}
    named = {"POST {}", "{} {}"}
    plain = {call for call in written if call not in named and not re.fullmatch(r"\{\} .*|GET /repos/\{\}\{\}", call)}
    minted = {"POST {}": "POST {graphql}"}
    listed = {minted.get(call, call) for call in plain} | {"POST {graphql}", "POST /app/installations/{}/access_tokens"}
    control(
        NEVER.search("POST /user/repos") and NEVER.search("PATCH /repos/{}"), "the list of what is never called bites"
    )
    assert listed == ALLOWED
    assert not [call for call in ALLOWED if NEVER.search(call)]


def test_d03_graphql_is_two_fixed_texts_with_one_variable():
    queries = [value for name, value in vars(githubkit).items() if isinstance(value, str) and "mutation" in value]
    assert [re.findall(r"\{(\w+)\(input", query) for query in queries] == [
        ["markPullRequestReadyForReview"],
        ["convertPullRequestToDraft"],
    ]


def test_d04_no_phase_asks_for_more_than_its_work():
    allowed = {"checks", "contents", "issues", "pull_requests"}
    assert {name for phase in Phase for name in phase.permissions} == allowed
    writes = {phase.name: {name for name, level in phase.permissions.items() if level == "write"} for phase in Phase}
    assert writes["FETCH"] == writes["READ"] == set()
    assert "contents" not in writes["COMMENT"] | writes["CHECK"] | writes["PROPOSE"]


Answer = Callable[[httpx.Request], httpx.Response]


@asynccontextmanager
async def gateway(answer: Answer, seen: list[httpx.Request]) -> AsyncIterator[GithubForge]:
    """The forge before a GitHub that answers as the test says."""

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        path = request.url.path
        if path == "/app":
            return httpx.Response(200, json={"id": 7, "slug": "pullwright"})
        if path.endswith("/access_tokens"):
            return httpx.Response(201, json={"token": "ghs_x", "expires_at": "2099-01-01T00:00:00Z"})
        if request.method == "GET" and path == "/repositories/42":
            return httpx.Response(200, json=REPOSITORY)
        return answer(request)

    credentials = AppCredentials("7", key_pair().private_pem)
    forges = GithubForges(credentials, base_url="https://hub.example/", pool=httpx.MockTransport(handle))
    try:
        opened = await forges.open(InstallationId(9), RepositoryId(42))
        assert isinstance(opened, GithubForge)
        yield opened
    finally:
        await forges.close()


REPOSITORY = {
    "id": 42,
    "full_name": "org/shop",
    "default_branch": "main",
    "private": True,
    "archived": False,
    "clone_url": "https://hub.example/org/shop.git",
}
COMMIT = CommitId("a" * 40)
ELSEWHERE = (
    "main",
    "master",
    "release",
    "refs/heads/main",
    "agent",
    "agent/",
    "agent/../main",
    "agent/a/../../main",
    "a" * 40,
)
TRICKS = (
    "agent/%2e%2e",
    "agent//main",
    "agent/.hidden",
    "agent/x y",
    "Agent/x",
    "tags/v1",
    "agent/\u200bx",
    "agent/x\n",
)


@pytest.mark.parametrize("branch", [*ELSEWHERE, *TRICKS], ids=lambda name: f"D02-{name!a}")
async def test_a_branch_that_is_not_ours_is_never_written(branch: str):
    seen: list[httpx.Request] = []
    async with gateway(lambda _: httpx.Response(201, json={}), seen) as forge:
        before = len(seen)
        for act in (forge.create_branch, forge.advance_branch):
            with pytest.raises(ForgeRefused):
                await act(branch, COMMIT)
        assert len(seen) == before


async def test_d02_the_control_our_own_branch_is_written():
    seen: list[httpx.Request] = []
    async with gateway(lambda _: httpx.Response(201, json={}), seen) as forge:
        await forge.create_branch("agent/7-a-change-1", COMMIT)
        assert json.loads(seen[-1].content)["ref"] == "refs/heads/agent/7-a-change-1"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_d03_a_redirect_of_an_act_is_never_followed(status: int):
    seen: list[httpx.Request] = []
    away = {"location": "https://hub.example/repositories/666/issues/1/comments"}
    async with gateway(lambda _: httpx.Response(status, headers=away), seen) as forge:
        with pytest.raises(ForgeGone):
            await forge.create_comment(1, "x")
        assert not [request for request in seen if "666" in str(request.url)]


async def test_d03_a_repository_that_answers_under_another_number_is_refused():
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/access_tokens"):
            return httpx.Response(201, json={"token": "ghs_x", "expires_at": "2099-01-01T00:00:00Z"})
        return httpx.Response(200, json={**REPOSITORY, "id": 43, "slug": "pullwright"})

    credentials = AppCredentials("7", key_pair().private_pem)
    forges = GithubForges(credentials, base_url="https://hub.example/", pool=httpx.MockTransport(handle))
    with pytest.raises(ForgeGone):
        await forges.open(InstallationId(9), RepositoryId(42))
    await forges.close()


@pytest.mark.parametrize("login", ["../../666", "a/b", "x%2fy", "?q", "#f"], ids=lambda name: f"D03-{name}")
async def test_a_name_cannot_climb_out_of_its_place(login: str):
    seen: list[httpx.Request] = []
    async with gateway(lambda _: httpx.Response(200, json={"permission": "read"}), seen) as forge:
        await forge.permission(login)
    raw = seen[-1].url.raw_path.decode()
    assert re.fullmatch(r"/repos/org/shop/collaborators/[^/?#]+/permission", raw)


async def test_d04_every_token_is_for_one_repository_and_names_its_permissions():
    seen: list[httpx.Request] = []
    async with gateway(lambda _: httpx.Response(201, json={"id": 1, "user": {}, "body": ""}), seen) as forge:
        await forge.fetch_token()
    asked = [json.loads(request.content) for request in seen if request.url.path.endswith("/access_tokens")]
    assert asked
    assert all(one["repository_ids"] == [42] and one["permissions"] for one in asked)
