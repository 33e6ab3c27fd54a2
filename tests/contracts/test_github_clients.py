"""Second opinions on the stand-in: PyGithub, githubkit's webhook parser, a unix socket, and the serving command."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import github
import httpx
import pytest
from github import Auth
from githubkit.webhooks import parse

from bot.emulators.github import Config, Endpoint, load_seed, serve_forever
from tests.contracts.github_world import HOME, everything, hub, receiving


def _story(endpoint: Endpoint) -> dict[str, Any]:
    """PyGithub is synchronous, so the whole story runs in a thread."""
    app = Auth.AppAuth(endpoint.app_id, endpoint.private_key_pem)
    unhurried: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
    integration = github.GithubIntegration(auth=app, base_url=endpoint.url)
    bot = github.Github(
        auth=app.get_installation_auth(endpoint.installation_id), base_url=endpoint.url, retry=None, **unhurried
    )
    person = github.Github(
        auth=Auth.Token(endpoint.users["octo-dev"].token), base_url=endpoint.url, retry=None, **unhurried
    )
    assert integration.get_app().slug == endpoint.slug
    home, mine = bot.get_repo("octo-org/hello"), person.get_repo("octo-org/hello")
    issue = mine.create_issue("Greet", body="Please", labels=["agent"])
    comment = home.get_issue(issue.number).create_comment("On it")
    comment.edit("Working")
    comment.create_reaction("eyes")
    base = home.get_git_ref("heads/main").object.sha
    element = github.InputGitTreeElement("greet.py", "100644", "blob", content="print('hi')\n")
    tree = home.create_git_tree([element], home.get_git_tree(base))
    commit = home.create_git_commit("Greet", tree, [home.get_git_commit(base)])
    home.create_git_ref("refs/heads/agent/1", commit.sha)
    pull = home.create_pull(base="main", head="agent/1", title="Greet", body=f"Fixes #{issue.number}", draft=True)
    run = home.create_check_run("pullwright/gate", commit.sha, output={"title": "Waiting", "summary": "…"})
    run.edit(conclusion="success", output={"title": "Approved", "summary": "ok"})
    mine.get_pull(pull.number).create_review(event="APPROVE", body="ok")
    files = [(one.filename, one.status, one.additions) for one in pull.get_files()]
    with pytest.raises(github.GithubException) as refused:
        pull.merge(sha=commit.sha)
    pull.mark_ready_for_review()
    merged = pull.merge(sha=commit.sha, merge_method="squash", commit_title="Greet", commit_message="ok")
    return {
        "files": files,
        "refused": refused.value.status,
        "merged": merged.merged,
        "state": home.get_pull(pull.number).state,
        "issue": home.get_issue(issue.number).state,
        "reviews": [one.state for one in pull.get_reviews()],
        "comment": [one.user.login for one in home.get_issue(issue.number).get_comments()],
        "permission": home.get_collaborator_permission("octo-dev"),
        "ahead": home.compare(base, "main").ahead_by,
        "verified": commit.verification.verified if hasattr(commit, "verification") else True,
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
async def test_pygithub_tells_the_same_story():
    async with hub() as world:
        told = await asyncio.to_thread(_story, world.endpoint)
        assert told == {
            "files": [("greet.py", "added", 1)],
            "refused": 405,
            "merged": True,
            "state": "closed",
            "issue": "closed",
            "reviews": ["APPROVED"],
            "comment": ["pullwright[bot]"],
            "permission": "write",
            "ahead": 1,
            "verified": True,
        }


async def test_every_event_is_complete_enough_for_githubkits_parser():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await everything(world)
        await world.http.post("/_stand-in/ping")
        await world.http.post("/_stand-in/installation", json={"action": "created"})
        await world.endpoint.settle()
        seen = set(receiver.names())
        for event in receiver.events:
            parse(event.name, event.body)
        assert len(seen) >= 33


async def test_a_unix_socket_serves_the_same(tmp_path):
    socket = tmp_path / "hub.sock"
    async with hub(Config(unix_socket=str(socket))) as world:
        transport = httpx.AsyncHTTPTransport(uds=str(socket))
        async with httpx.AsyncClient(transport=transport, base_url="http://api.github.localhost") as client:
            answer = await client.get(HOME, headers={"Authorization": f"token {world.token('octo-dev')}"})
            assert answer.json()["url"] == f"http://api.github.localhost{HOME}"


async def test_the_serving_command_announces_itself_and_stops_on_sigterm(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a\n")
    seed = tmp_path / "seed.toml"
    seed.write_text(
        """
        [[users]]
        login = "ada"
        permission = "admin"

        [[repositories]]
        full_name = "octo-org/seeded"
        files = "files"
        labels = [{ name = "agent" }]
        issues = [{ title = "First", labels = ["agent"], user = "ada" }]
        """
    )
    told: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(serve_forever(Config(seed=load_seed(seed)), told.put_nowait))
    ready = await told.get()
    assert set(ready) == {
        "url",
        "app_id",
        "installation_id",
        "private_key_file",
        "webhook_secret",
        "repositories",
        "users",
    }
    assert _key_file(ready) == ("-----BEGIN RSA PRIVATE KEY-----", 0o600)
    assert ready["repositories"][0]["clone_url"] == f"{ready['url']}/octo-org/seeded.git"
    token = ready["users"]["ada"]["token"]
    async with httpx.AsyncClient(headers={"Authorization": f"token {token}"}, trust_env=False) as client:
        issue = (await client.get(f"{ready['url']}/repos/octo-org/seeded/issues/1")).json()
    assert (issue["title"], [one["name"] for one in issue["labels"]]) == ("First", ["agent"])
    os.kill(os.getpid(), signal.SIGTERM)
    await task
    with pytest.raises(FileNotFoundError):
        _key_file(ready)


def _key_file(ready: dict[str, Any]) -> tuple[str, int]:
    path = Path(ready["private_key_file"])
    return path.read_text().splitlines()[0], path.stat().st_mode & 0o777
