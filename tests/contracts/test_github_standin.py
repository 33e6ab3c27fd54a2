"""The stand-in of GitHub, through githubkit with validated answers: the whole story on one page."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from githubkit.exception import RequestFailed

from tests.contracts.github_world import HOME, OWNER, READY, REPO, Hub, hub, receiving


async def refused(awaitable: Any) -> tuple[int, str]:
    with pytest.raises(RequestFailed) as caught:
        await awaitable
    return caught.value.response.status_code, caught.value.response.json()["message"]


async def test_a_change_goes_from_an_issue_to_the_default_branch():
    async with receiving() as receiver, hub() as world:
        await world.ask("PATCH", "/app/hook/config", "app", {"url": receiver.url})
        number = await _issue_with_label(world)
        pull = await _draft_pull(world, number)
        await _review_and_land(world, pull, number)
        await world.endpoint.settle()
        names = receiver.names()
        for expected in (
            "ping",
            "issues.opened",
            "issues.labeled",
            "issue_comment.created",
            "issue_comment.edited",
            "push",
            "pull_request.opened",
            "pull_request.synchronize",
            "check_run.created",
            "check_run.completed",
            "pull_request_review.submitted",
            "pull_request.ready_for_review",
            "pull_request.closed",
            "issues.closed",
        ):
            assert expected in names, expected
        assert all(event.signed_with(world.endpoint.webhook_secret) for event in receiver.events)


async def _issue_with_label(world: Hub) -> int:
    person = world.person("octo-dev")
    bot = world.installation()
    issue = (await person.rest.issues.async_create(OWNER, REPO, title="Greet by name", body="Please")).parsed_data
    labels = (await person.rest.issues.async_add_labels(OWNER, REPO, issue.number, labels=["agent"])).parsed_data
    assert [label.name for label in labels] == ["agent"]
    comment = (await bot.rest.issues.async_create_comment(OWNER, REPO, issue.number, body="On it")).parsed_data
    assert comment.user
    assert (comment.user.login, comment.user.type) == ("pullwright[bot]", "Bot")
    assert comment.performed_via_github_app
    updated = await bot.rest.issues.async_update_comment(OWNER, REPO, comment.id, body="Working")
    assert updated.parsed_data.body == "Working"
    first = await bot.rest.reactions.async_create_for_issue_comment(OWNER, REPO, comment.id, content="eyes")
    again = await bot.rest.reactions.async_create_for_issue_comment(OWNER, REPO, comment.id, content="eyes")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.parsed_data.id == again.parsed_data.id
    read = (await bot.rest.issues.async_get(OWNER, REPO, issue.number)).parsed_data
    assert read.pull_request is None or not read.pull_request
    assert [one.body for one in (await bot.rest.issues.async_list_comments(OWNER, REPO, issue.number)).parsed_data] == [
        "Working"
    ]
    removed = await bot.rest.issues.async_remove_label(OWNER, REPO, issue.number, "agent")
    assert removed.parsed_data == []
    return int(issue.number)


async def _draft_pull(world: Hub, issue: int) -> Any:
    bot = world.installation()
    main = (await bot.rest.git.async_get_ref(OWNER, REPO, "heads/main")).parsed_data.object_.sha
    base = (await bot.rest.git.async_get_commit(OWNER, REPO, main)).parsed_data
    content = base64.b64encode(b"#!/bin/sh\necho hi\n").decode()
    blob = (await bot.rest.git.async_create_blob(OWNER, REPO, content=content, encoding="base64")).parsed_data
    entry = {"path": "bin/hi", "mode": "100755", "type": "blob", "sha": blob.sha}
    tree = (
        await bot.rest.git.async_create_tree(OWNER, REPO, data={"base_tree": base.tree.sha, "tree": [entry]})
    ).parsed_data
    commit = (
        await bot.rest.git.async_create_commit(OWNER, REPO, message="Say hi", tree=tree.sha, parents=[main])
    ).parsed_data
    assert commit.verification.verified
    assert commit.tree.sha == tree.sha
    ref = f"agent/{issue}-hi"
    await bot.rest.git.async_create_ref(OWNER, REPO, ref=f"refs/heads/{ref}", sha=commit.sha)
    pull = (
        await bot.rest.pulls.async_create(
            OWNER, REPO, title="Say hi", head=ref, base="main", body=f"Closes #{issue}", draft=True
        )
    ).parsed_data
    assert (pull.draft, pull.mergeable, pull.commits, pull.additions, pull.changed_files) == (True, None, 1, 2, 1)
    second = await world.commit({"notes.md": "notes\n"}, parent=commit.sha, token=await world.mint())
    await bot.rest.git.async_update_ref(OWNER, REPO, f"heads/{ref}", sha=second)
    listed = (await bot.rest.pulls.async_list(OWNER, REPO, head=f"{OWNER}:{ref}", state="open")).parsed_data
    assert [one.head.sha for one in listed] == [second]
    files = (await bot.rest.pulls.async_list_files(OWNER, REPO, pull.number)).parsed_data
    assert [one.filename for one in files] == ["bin/hi", "notes.md"]
    run = (
        await bot.rest.checks.async_create(
            OWNER,
            REPO,
            data={"name": "pullwright/gate", "head_sha": second, "output": {"title": "Waiting", "summary": "…"}},
        )
    ).parsed_data
    done = (
        await bot.rest.checks.async_update(
            OWNER, REPO, run.id, data={"conclusion": "success", "output": {"title": "Approved", "summary": "ok"}}
        )
    ).parsed_data
    assert (done.status, done.conclusion) == ("completed", "success")
    runs = (await bot.rest.checks.async_list_for_ref(OWNER, REPO, second)).parsed_data
    assert [one.id for one in runs.check_runs] == [run.id]
    return (await bot.rest.pulls.async_get(OWNER, REPO, pull.number)).parsed_data


async def _review_and_land(world: Hub, pull: Any, issue: int) -> None:
    bot, person = world.installation(), world.person("octo-dev")
    asked = await bot.rest.pulls.async_request_reviewers(OWNER, REPO, pull.number, data={"reviewers": ["octo-dev"]})
    assert asked.status_code == 201
    assert asked.parsed_data.number == pull.number
    review = (
        await person.rest.pulls.async_create_review(OWNER, REPO, pull.number, event="APPROVE", body="Good")
    ).parsed_data
    assert (review.state, review.commit_id) == ("APPROVED", pull.head.sha)
    granted = (await bot.rest.repos.async_get_collaborator_permission_level(OWNER, REPO, "octo-dev")).parsed_data
    assert (granted.permission, granted.role_name) == ("write", "write")
    assert await refused(bot.rest.pulls.async_merge(OWNER, REPO, pull.number)) == (405, "Pull Request is still a draft")
    await bot.async_graphql(READY, {"id": pull.node_id})
    assert await world.mergeable(pull.number) is True
    stale = bot.rest.pulls.async_merge(OWNER, REPO, pull.number, sha="0" * 40)
    assert await refused(stale) == (409, "Head branch was modified. Review and try the merge again.")
    merged = (
        await bot.rest.pulls.async_merge(
            OWNER,
            REPO,
            pull.number,
            sha=pull.head.sha,
            merge_method="squash",
            commit_title="Say hi",
            commit_message="Approved change",
        )
    ).parsed_data
    assert merged.merged
    assert await world.tip() == merged.sha
    landed = (await bot.rest.git.async_get_commit(OWNER, REPO, merged.sha)).parsed_data
    head = (await bot.rest.git.async_get_commit(OWNER, REPO, pull.head.sha)).parsed_data
    assert landed.tree.sha == head.tree.sha
    assert landed.message == "Say hi\n\nApproved change"
    assert (await bot.rest.issues.async_get(OWNER, REPO, issue)).parsed_data.state == "closed"
    after = (await bot.rest.pulls.async_get(OWNER, REPO, pull.number)).parsed_data
    assert (after.merged, after.state) == (True, "closed")
    assert after.merged_by
    assert after.merged_by.login == "pullwright[bot]"


async def test_every_model_that_the_bot_reads_validates():
    async with hub() as world:
        app, bot, person = world.app(), world.installation(), world.person("octo-dev")
        token = await world.mint()
        pull = await world.pull(token, draft=False)
        sha = pull["head"]["sha"]
        await world.ask("POST", f"{HOME}/statuses/{sha}", "octo-dev", {"state": "success", "context": "ci"})
        first = await world.ask(
            "POST",
            f"{HOME}/pulls/1/comments",
            "octo-dev",
            {"body": "hm", "commit_id": sha, "path": "new.txt", "line": 1, "side": "RIGHT"},
        )
        assert first.status_code == 201, first.text
        rest = bot.rest
        answers = [
            await app.rest.apps.async_get_authenticated(),
            await app.rest.apps.async_list_installations(),
            await app.rest.apps.async_get_installation(world.endpoint.installation_id),
            await app.rest.apps.async_get_repo_installation(OWNER, REPO),
            await app.rest.apps.async_create_installation_access_token(
                world.endpoint.installation_id, data={"repositories": [REPO], "permissions": {"contents": "read"}}
            ),
            await app.rest.apps.async_get_webhook_config_for_app(),
            await app.rest.apps.async_list_webhook_deliveries(),
            await rest.apps.async_list_repos_accessible_to_installation(),
            await rest.repos.async_get(OWNER, REPO),
            await rest.repos.async_list_branches(OWNER, REPO),
            await rest.repos.async_get_branch(OWNER, REPO, "main"),
            await rest.repos.async_get_branch_rules(OWNER, REPO, "main"),
            await rest.repos.async_list_commits(OWNER, REPO),
            await rest.repos.async_get_commit(OWNER, REPO, sha),
            await rest.repos.async_compare_commits(OWNER, REPO, f"main...{sha}"),
            await rest.repos.async_list_collaborators(OWNER, REPO),
            await rest.repos.async_get_combined_status_for_ref(OWNER, REPO, sha),
            await rest.repos.async_list_commit_statuses_for_ref(OWNER, REPO, sha),
            await rest.git.async_get_tree(OWNER, REPO, sha, recursive="1"),
            await rest.git.async_list_matching_refs(OWNER, REPO, "heads/"),
            await rest.issues.async_list_for_repo(OWNER, REPO, state="all"),
            await rest.issues.async_list_labels_for_repo(OWNER, REPO),
            await rest.issues.async_list_labels_on_issue(OWNER, REPO, 1),
            await rest.pulls.async_list_commits(OWNER, REPO, 1),
            await rest.pulls.async_list_reviews(OWNER, REPO, 1),
            await rest.pulls.async_list_requested_reviewers(OWNER, REPO, 1),
            await rest.pulls.async_list_review_comments(OWNER, REPO, 1),
            await rest.pulls.async_create_reply_for_review_comment(OWNER, REPO, 1, first.json()["id"], body="so"),
            await rest.reactions.async_create_for_pull_request_review_comment(
                OWNER, REPO, first.json()["id"], content="rocket"
            ),
            await rest.rate_limit.async_get(),
            await person.rest.users.async_get_authenticated(),
        ]
        for answer in answers:
            assert answer.parsed_data is not None
        contents = await rest.repos.async_get_content(OWNER, REPO, "README.md")
        assert base64.b64decode(contents.json()["content"]) == b"# hello\n"
        assert contents.parsed_data


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
async def test_both_prefixes_and_both_versions_are_served(prefix):
    async with hub() as world:
        token = await world.mint()
        await world.pull(token)
        path = f"{prefix}{HOME}/pulls/1"
        old = await world.ask("GET", path, token)
        assert "merge_commit_sha" in old.json()
        assert old.headers["x-github-api-version-selected"] == "2022-11-28"
        new = await world.ask("GET", path, token, X_GitHub_Api_Version="2026-03-10")
        assert "merge_commit_sha" not in new.json()
        assert "assignee" not in new.json()
        assert old.json()["url"] == f"{world.endpoint.url}{path}"
        other = await world.ask("GET", path, token, X_GitHub_Api_Version="2019-01-01")
        assert other.status_code == 400
