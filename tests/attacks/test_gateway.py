"""The action gateway: a closed list of calls. What is not on it has no method, and what is on it goes nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from bot.domain.ids import CommitId, InstallationId, RepositoryId
from bot.emulators.github.birth import key_pair
from bot.providers import forge
from bot.providers.forge import githubkit
from bot.providers.forge.githubkit import AppCredentials, GithubForge, GithubForges
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.providers.forge.tokens import Phase
from tests.attacks.conftest import Control
from tests.attacks.gateway_calls import ALLOWED, GRAPHQL, SETUP, UnreadableCallError, calls, concrete, made
from tests.contracts.github_api import description

BOT = Path(forge.__path__[0]).parents[1]
NEVER = re.compile(
    r"^(?:POST|PUT|PATCH|DELETE) /(?:user|users|orgs|gists|organizations|enterprises|teams|projects|marketplace|classrooms|credentials)\b"
    r"|^(?:PATCH|PUT|DELETE) /repos/\{owner\}/\{repo\}$"
    r"|/repos/\{(?:owner|template_owner)\}/\{(?:repo|template_repo)\}/(?:actions|attestations|autolinks|automated-security-fixes|branches"
    r"|code-scanning|codespaces|collaborators|contents|dependabot|deployments|dispatches|environments|forks|generate|hooks|immutable-releases"
    r"|import|interaction-limits|invitations|keys|lfs|merge-upstream|merges|notifications|pages|private-vulnerability-reporting|properties"
    r"|releases|rulesets|secret-scanning|security-advisories|subscription|tags|topics|traffic|transfer|vulnerability-alerts)\b"
)
"""What would reach beyond a task: new repositories, other owners, visibility, forks, people, keys, hooks, secrets, rules, releases."""
DANGEROUS = (
    *("POST /user/repos", "POST /orgs/{org}/repos", "POST /repos/{owner}/{repo}/forks"),
    *("POST /repos/{template_owner}/{template_repo}/generate", "POST /repos/{owner}/{repo}/transfer", "POST /gists"),
    *("PATCH /repos/{owner}/{repo}", "DELETE /repos/{owner}/{repo}", "POST /repos/{owner}/{repo}/pages"),
    *("POST /repos/{owner}/{repo}/releases", "PUT /repos/{owner}/{repo}/collaborators/{username}"),
    *("POST /repos/{owner}/{repo}/keys", "POST /repos/{owner}/{repo}/hooks", "POST /repos/{owner}/{repo}/merges"),
    *("PUT /repos/{owner}/{repo}/actions/secrets/{secret_name}", "POST /repos/{owner}/{repo}/rulesets"),
    *("PUT /repos/{owner}/{repo}/contents/{path}", "POST /repos/{owner}/{repo}/dispatches"),
    *("PUT /repos/{owner}/{repo}/branches/{branch}/protection", "PUT /orgs/{org}/memberships/{username}"),
)


def reachable() -> set[str]:
    """The operations of GitHub's description that the product can ask for."""
    found = {call: description().find(*concrete(call)) for call in ALLOWED - {GRAPHQL}}
    assert [call for call, operation in found.items() if operation is None] == []
    return {operation.name for operation in found.values() if operation}


def test_d01_d05_the_forge_makes_the_calls_of_the_list_and_no_other():
    assert made() == ALLOWED | SETUP
    holding = [path for path in BOT.rglob("*.py") if "forge.registration" in path.read_text("utf-8")]
    assert {path.parent.name for path in holding} == {"commands"}


@pytest.mark.parametrize(
    "hidden", ['Ask(method, "/gists")', 'Ask("POST", where)', 'self._write(Phase.LAND, "POST", path)']
)
def test_d01_a_call_whose_place_is_not_written_down_is_found_out(hidden: str):
    with pytest.raises(UnreadableCallError):
        list(calls(f"async def act(self, method, where, path):\n    await send({hidden})\n"))


def test_d01_d05_what_reaches_beyond_a_task_has_no_method(control: Control):
    every = set(description().told["every_call"])
    control(
        set(DANGEROUS) <= every and all(map(NEVER.search, DANGEROUS)), "GitHub has these calls, and the rule knows them"
    )
    control(len([call for call in every if NEVER.search(call)]) > 500, "hundreds of GitHub's calls are of that kind")
    assert reachable() <= every
    assert [call for call in reachable() if not call.startswith("GET ") and NEVER.search(call)] == []


def test_d01_what_the_product_can_change_is_this_and_nothing_else():
    """Of GitHub's 584 calls that change something, seventeen; three of them write git objects that nothing refers to yet."""
    repository = "/repos/{owner}/{repo}"
    assert {call for call in reachable() if not call.startswith("GET ")} == {
        "POST /app/installations/{installation_id}/access_tokens",
        "POST /app/hook/deliveries/{delivery_id}/attempts",
        f"POST {repository}/issues/{{issue_number}}/comments",
        f"PATCH {repository}/issues/comments/{{comment_id}}",
        f"POST {repository}/issues/comments/{{comment_id}}/reactions",
        f"POST {repository}/issues/{{issue_number}}/labels",
        f"DELETE {repository}/issues/{{issue_number}}/labels/{{name}}",
        f"POST {repository}/git/blobs",
        f"POST {repository}/git/trees",
        f"POST {repository}/git/commits",
        f"POST {repository}/git/refs",
        f"PATCH {repository}/git/refs/{{ref}}",
        f"POST {repository}/pulls",
        f"PATCH {repository}/pulls/{{pull_number}}",
        f"PUT {repository}/pulls/{{pull_number}}/merge",
        f"POST {repository}/check-runs",
        f"PATCH {repository}/check-runs/{{check_run_id}}",
    }


def test_d01_there_is_one_place_that_sends():
    """Everything goes through the connection; nothing else in the product speaks HTTP to GitHub."""
    texts = {path.name: path.read_text("utf-8") for path in Path(forge.__path__[0]).glob("*.py")}
    assert [name for name, text in texts.items() if "arequest(" in text] == ["connection.py"]
    assert [
        name for name, text in texts.items() if re.search(r"\.rest\.|async_graphql|AsyncClient\(|urlopen", text)
    ] == []


def test_d03_graphql_is_two_fixed_texts_with_one_variable():
    queries = [value for name, value in vars(githubkit).items() if isinstance(value, str) and "mutation" in value]
    assert [re.findall(r"\{(\w+)\(input", query) for query in queries] == [
        ["markPullRequestReadyForReview"],
        ["convertPullRequestToDraft"],
    ]


def test_d04_no_phase_asks_for_more_than_its_work():
    allowed = {"checks", "contents", "issues", "pull_requests"}
    assert {name for phase in Phase for name in phase.permissions} == allowed | {"members"}
    writes = {phase.name: {name for name, level in phase.permissions.items() if level == "write"} for phase in Phase}
    assert writes["FETCH"] == writes["READ"] == writes["MEMBERS"] == set()
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

    credentials = AppCredentials.from_pem("7", key_pair().private_pem)
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
async def test_a_branch_that_is_not_ours_is_never_written(branch: str, control: Control):
    seen: list[httpx.Request] = []
    async with gateway(lambda _: httpx.Response(201, json={}), seen) as forge:
        await forge.create_branch("agent/7-a-change-1", COMMIT)
        control(json.loads(seen[-1].content)["ref"] == "refs/heads/agent/7-a-change-1", "our own branch is written")
        before = len(seen)
        for act in (forge.create_branch, forge.advance_branch):
            with pytest.raises(ForgeRefused):
                await act(branch, COMMIT)
        assert len(seen) == before


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_d03_a_redirect_of_an_act_is_never_followed(status: int, control: Control):
    seen: list[httpx.Request] = []
    away = {"location": "https://hub.example/repositories/666/issues/1/comments"}
    transport = httpx.MockTransport(
        lambda request: httpx.Response(status if request.url.path == "/" else 200, headers=away)
    )
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as trusting:
        followed = await trusting.post("https://hub.example/")
        control("666" in str(followed.url), "a client that follows redirects goes there")
    async with gateway(lambda _: httpx.Response(status, headers=away), seen) as forge:
        with pytest.raises(ForgeGone):
            await forge.create_comment(1, "x")
        assert not [request for request in seen if "666" in str(request.url)]


async def test_d03_a_repository_that_answers_under_another_number_is_refused():
    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/access_tokens"):
            return httpx.Response(201, json={"token": "ghs_x", "expires_at": "2099-01-01T00:00:00Z"})
        return httpx.Response(200, json={**REPOSITORY, "id": 43, "slug": "pullwright"})

    credentials = AppCredentials.from_pem("7", key_pair().private_pem)
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


async def test_d04_every_token_is_for_one_repository_and_names_its_permissions(control: Control):
    seen: list[httpx.Request] = []
    async with gateway(lambda _: httpx.Response(201, json={"id": 1, "user": {}, "body": ""}), seen) as forge:
        await forge.fetch_token()
    asked = [json.loads(request.content) for request in seen if request.url.path.endswith("/access_tokens")]
    control(asked, "tokens were asked for")
    assert all(one["repository_ids"] == [42] and one["permissions"] for one in asked)


@pytest.mark.parametrize(
    "wider",
    [
        {"permissions": {"contents": "write"}},
        {"permissions": {"contents": "read", "administration": "read"}},
        {"permissions": {"contents": "admin"}},
        {"repositories": [{"id": 42, "full_name": "org/shop"}, {"id": 43, "full_name": "org/other"}]},
        {"repositories": [{"id": 43, "full_name": "org/other"}]},
    ],
)
async def test_d04_a_token_that_is_wider_than_asked_is_not_used(wider: dict[str, object], control: Control):
    """Tokens for fetching read the contents of one repository."""
    minted: dict[str, object] = {"token": "ghs_x", "expires_at": "2099-01-01T00:00:00Z"}

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/access_tokens"):
            fetches = json.loads(request.content)["permissions"] == {"contents": "read"}
            return httpx.Response(201, json={**minted, **(given if fetches else {})})
        return httpx.Response(200, json={**REPOSITORY, "slug": "pullwright"})

    for given in ({"permissions": {"contents": "read", "metadata": "read"}}, wider):
        forges = GithubForges(
            AppCredentials.from_pem("7", key_pair().private_pem),
            base_url="https://hub.example/",
            pool=httpx.MockTransport(handle),
        )
        forge = await forges.open(InstallationId(9), RepositoryId(42))
        if given is wider:
            with pytest.raises(ForgeGone, match="wider than asked"):
                await forge.fetch_token()
        else:
            control(await forge.fetch_token() == "ghs_x", "a token as asked for is used")
        await forges.close()
