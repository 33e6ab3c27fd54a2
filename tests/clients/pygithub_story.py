"""The story with PyGithub."""

from __future__ import annotations

from typing import Any

import github
import pytest
from github import Auth

from bot.emulators.github import Endpoint


def tell(endpoint: Endpoint) -> dict[str, Any]:
    """PyGithub is synchronous: run it in a thread."""
    app = Auth.AppAuth(endpoint.app_id, endpoint.private_key_pem)
    calm: dict[str, Any] = {"retry": None, "seconds_between_requests": None, "seconds_between_writes": None}
    bot = github.Github(auth=app.get_installation_auth(endpoint.installation_id), base_url=endpoint.url, **calm)
    person = github.Github(auth=Auth.Token(endpoint.users["octo-dev"].token), base_url=endpoint.url, **calm)
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
    files = [[one.filename, one.status, one.additions] for one in pull.get_files()]
    with pytest.raises(github.GithubException) as refused:
        pull.merge(sha=commit.sha)
    pull.mark_ready_for_review()
    merged = pull.merge(sha=commit.sha, merge_method="squash", commit_title="Greet", commit_message="ok")
    return {
        "slug": github.GithubIntegration(auth=app, base_url=endpoint.url).get_app().slug,
        "files": files,
        "refused": refused.value.status,
        "merged": merged.merged,
        "state": home.get_pull(pull.number).state,
        "issue": home.get_issue(issue.number).state,
        "reviews": [one.state for one in pull.get_reviews()],
        "comments": [[one.user.login, one.body] for one in home.get_issue(issue.number).get_comments()],
        "permission": home.get_collaborator_permission("octo-dev"),
        "ahead": home.compare(base, "main").ahead_by,
        "verified": home.get_git_commit(commit.sha).verification.verified,
    }
