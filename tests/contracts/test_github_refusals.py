"""What the stand-in refuses on issues, git data, pull requests and reviews, with status and words."""

from __future__ import annotations

import base64

from bot.emulators.github import Config, RepositorySeed, Seed
from tests.contracts.github_world import DRAFT, HOME, READY, Hub, expect, hub

LONG = "x" * 65_537


async def test_issues_and_comments_keep_their_limits():
    async with hub() as world:
        token = await world.mint()
        cases = [
            (422, '"title\\" wasn\'t supplied', "POST", "/issues", {}),
            (422, "is not a string", "POST", "/issues", {"title": 3}),
            (422, "missing_field", "POST", "/issues", {"title": "  "}),
            (422, "title is too long (maximum is 256 characters)", "POST", "/issues", {"title": "x" * 257}),
            (422, "body is too long (maximum is 65536 characters)", "POST", "/issues", {"title": "x", "body": LONG}),
            (404, "Not Found", "GET", "/issues/1", None),
            (404, "Not Found", "GET", "/issues/one", None),
            (404, "Not Found", "POST", "/issues/1/comments", {"body": "x"}),
        ]
        for status, words, method, path, body in cases:
            await expect(world, (status, words), method, path, token, body)
        await world.ask("POST", f"{HOME}/issues", token, {"title": "x", "body": "ü" * 65_536})
        for status, words, method, path, body in [
            (422, "Body is too long (maximum is 65536 characters)", "POST", "/issues/1/comments", {"body": LONG}),
            (422, "IssueComment", "POST", "/issues/1/comments", {"body": " "}),
            (422, "not a member of", "PATCH", "/issues/1", {"state": "gone"}),
            (404, "Label does not exist", "DELETE", "/issues/1/labels/nope", None),
            (422, "Reaction", "POST", "/issues/1/reactions", {"content": "thumbs"}),
            (404, "Not Found", "PATCH", "/issues/comments/1", {"body": "x"}),
            (404, "Not Found", "GET", "/no/such/path", None),
            (404, "Not Found", "DELETE", "/issues", None),
        ]:
            await expect(world, (status, words), method, path, token, body)
        bad = await world.http.post(
            f"{HOME}/issues",
            content=b"{",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        assert (bad.status_code, bad.json()["message"]) == (400, "Problems parsing JSON")


async def test_an_unknown_label_is_created_and_slashes_in_names_work():
    async with hub() as world:
        token = await world.mint()
        await world.ask("POST", f"{HOME}/issues", token, {"title": "x"})
        added = await world.ask("POST", f"{HOME}/issues/1/labels", token, {"labels": ["area/core"]})
        assert [one["name"] for one in added.json()] == ["area/core"]
        assert (await world.ask("GET", f"{HOME}/labels/area%2Fcore", token)).status_code == 200
        removed = await world.ask("DELETE", f"{HOME}/issues/1/labels/area%2Fcore", token)
        assert (removed.status_code, removed.json()) == (200, [])


async def test_a_locked_conversation_takes_no_words_from_the_app():
    async with hub() as world:
        token = await world.mint()
        await world.ask("POST", f"{HOME}/issues", token, {"title": "x"})
        assert (await world.ask("PUT", f"{HOME}/issues/1/lock", "octo-admin")).status_code == 204
        await expect(world, (403, "issue is locked"), "POST", "/issues/1/comments", token, {"body": "x"})
        assert (await world.ask("POST", f"{HOME}/issues/1/comments", "octo-dev", {"body": "x"})).status_code == 201


async def test_a_deleted_issue_is_gone():
    async with hub() as world:
        token = await world.mint()
        node = (await world.ask("POST", f"{HOME}/issues", token, {"title": "x"})).json()["node_id"]
        query = "mutation($id:ID!){deleteIssue(input:{issueId:$id}){clientMutationId}}"
        assert (await world.graphql(query, "octo-dev", id=node))["errors"][0]["type"] == "FORBIDDEN"
        assert "errors" not in await world.graphql(query, "octo-admin", id=node)
        await expect(world, (410, "deleted"), "GET", "/issues/1", token)
        await expect(world, (410, "deleted"), "POST", "/issues/1/comments", token, {"body": "x"})


async def test_permissions_of_issues_and_pull_requests_are_told_apart():
    async with hub() as world:
        full = await world.mint()
        await world.ask("POST", f"{HOME}/issues", full, {"title": "x"})
        pull = await world.pull(full)
        only_pulls = await world.mint(permissions={"pull_requests": "write"})
        only_issues = await world.mint(permissions={"issues": "write"})
        words = {"body": "x"}
        assert (
            await world.ask("POST", f"{HOME}/issues/{pull['number']}/comments", only_pulls, words)
        ).status_code == 201
        assert (
            await world.ask("POST", f"{HOME}/issues/{pull['number']}/comments", only_issues, words)
        ).status_code == 201
        assert (await world.ask("POST", f"{HOME}/issues/1/comments", only_pulls, words)).status_code == 403
        assert (await world.ask("GET", f"{HOME}/issues/{pull['number']}", only_issues)).status_code == 403
        assert (await world.ask("GET", f"{HOME}/pulls/{pull['number']}", only_issues)).status_code == 403
        assert (await world.ask("PUT", f"{HOME}/pulls/{pull['number']}/merge", only_pulls, {})).status_code == 403


async def test_git_data_is_checked():
    async with hub() as world:
        token = await world.mint()
        sha = await world.tip()
        blob = (await world.ask("POST", f"{HOME}/git/blobs", token, {"content": "x"})).json()["sha"]

        def tree(**entry: object) -> dict[str, object]:
            return {"base_tree": sha, "tree": [{"path": "a", "mode": "100644", "type": "blob", **entry}]}

        for status, words, path, body in [
            (422, "not valid Base64", "/git/blobs", {"content": "*", "encoding": "base64"}),
            (422, "utf-8 or base64", "/git/blobs", {"content": "x", "encoding": "hex"}),
            (422, "Invalid tree info", "/git/trees", {"base_tree": sha, "tree": []}),
            (422, "not a valid tree oid", "/git/trees", {**tree(sha=blob), "base_tree": "0" * 40}),
            (422, "malformed path", "/git/trees", tree(sha=blob, path="../a")),
            (422, "malformed path", "/git/trees", tree(sha=blob, path=".git/config")),
            (422, "malformed path", "/git/trees", tree(sha=blob, path="/a")),
            (422, "valid tree.mode", "/git/trees", tree(sha=blob, mode="100600")),
            (422, "does not match", "/git/trees", tree(sha=blob, mode="040000")),
            (422, "is not a valid blob", "/git/trees", tree(sha="1" * 40)),
            (422, "is not a valid blob", "/git/trees", tree(sha=sha)),
            (422, "either tree.sha or tree.content", "/git/trees", tree(sha=blob, content="y")),
            (422, "BadObjectState", "/git/trees", tree(sha=None, path="missing")),
            (422, "Tree SHA does not exist", "/git/commits", {"message": "x", "tree": sha, "parents": []}),
            (
                422,
                "Parent SHA",
                "/git/commits",
                {"message": "x", "tree": await _tree_of(world, sha), "parents": [blob]},
            ),
            (422, "Reference already exists", "/git/refs", {"ref": "refs/heads/main", "sha": sha}),
            (422, "Object does not exist", "/git/refs", {"ref": "refs/heads/x", "sha": "1" * 40}),
            (422, "Reference update failed", "/git/refs", {"ref": "refs/heads/x", "sha": blob}),
            (422, "must start with 'refs/'", "/git/refs", {"ref": "heads/x", "sha": sha}),
            (422, "valid ref name", "/git/refs", {"ref": "refs/heads/a..b", "sha": sha}),
            (422, "valid ref name", "/git/refs", {"ref": "refs/heads/" + "a" * 40, "sha": sha}),
            (422, "valid ref name", "/git/refs", {"ref": "refs/pull/9/head", "sha": sha}),
            (422, "Reference update failed", "/git/refs", {"ref": "refs/heads/main/x", "sha": sha}),
        ]:
            await expect(world, (status, words), "POST", path, token, body)
        await expect(world, (404, "Not Found"), "GET", "/git/ref/heads/nope", token)
        await expect(world, (422, "Reference does not exist"), "PATCH", "/git/refs/heads/nope", token, {"sha": sha})
        await expect(world, (422, "Reference does not exist"), "DELETE", "/git/refs/heads/nope", token)


async def _tree_of(world: Hub, sha: str) -> str:
    return str((await world.ask("GET", f"{HOME}/git/commits/{sha}", "octo-admin")).json()["tree"]["sha"])


async def test_trees_keep_modes_and_take_deletions():
    async with hub() as world:
        token = await world.mint()
        base = await world.tip()
        blob = (await world.ask("POST", f"{HOME}/git/blobs", token, {"content": "target"})).json()["sha"]
        entries = [
            {"path": "run", "mode": "100755", "type": "blob", "sha": blob},
            {"path": "link", "mode": "120000", "type": "blob", "sha": blob},
            {"path": "sub", "mode": "160000", "type": "commit", "sha": "1" * 40},
            {"path": "copy", "mode": "040000", "type": "tree", "sha": await _tree_of(world, base)},
            {"path": "app.py/inner", "mode": "100644", "type": "blob", "content": "now a folder"},
            {"path": "README.md", "mode": "100644", "type": "blob", "sha": None},
        ]
        made = await world.ask("POST", f"{HOME}/git/trees", token, {"base_tree": base, "tree": entries})
        assert made.status_code == 201, made.text
        listed = await world.ask("GET", f"{HOME}/git/trees/{made.json()['sha']}?recursive=1", token)
        found = {one["path"]: one["mode"] for one in listed.json()["tree"] if one["type"] != "tree"}
        assert found == {
            "app.py/inner": "100644",
            "copy/README.md": "100644",
            "copy/app.py": "100644",
            "link": "120000",
            "run": "100755",
            "sub": "160000",
        }


async def test_only_what_github_writes_for_an_app_is_verified():
    async with hub() as world:
        token = await world.mint()
        sha = await world.tip()
        body = {"message": "x", "tree": await _tree_of(world, sha), "parents": [sha]}
        author = {"name": "Somebody", "email": "some@example.com"}
        signed = (await world.ask("POST", f"{HOME}/git/commits", token, body)).json()
        assert signed["verification"]["verified"] is True
        assert signed["author"]["name"] == "pullwright[bot]"
        own = (await world.ask("POST", f"{HOME}/git/commits", token, {**body, "author": author})).json()
        assert (own["verification"]["verified"], own["verification"]["reason"]) == (False, "unsigned")
        person = (await world.ask("POST", f"{HOME}/git/commits", "octo-dev", body)).json()
        assert person["verification"]["verified"] is False


async def test_a_ref_moves_forward_unless_forced():
    async with hub() as world:
        token = await world.mint()
        base = await world.tip()
        left = await world.commit({"a": "left"}, parent=base, token=token)
        right = await world.commit({"a": "right"}, parent=base, token=token)
        assert (await world.branch("x", left, token)).status_code == 201
        answer = await world.advance("x", right, token)
        assert (answer.status_code, answer.json()["message"]) == (422, "Update is not a fast forward")
        assert (await world.advance("x", right, token, force=True)).status_code == 200
        assert (await world.ask("DELETE", f"{HOME}/git/refs/heads/x", token)).status_code == 204


async def test_workflow_files_need_their_own_permission():
    async with hub() as world:
        token = await world.mint()
        sha = await world.tip()
        entry = {"path": ".github/workflows/ci.yml", "mode": "100644", "type": "blob", "content": "on: push\n"}
        refused = await world.ask("POST", f"{HOME}/git/trees", token, {"base_tree": sha, "tree": [entry]})
        assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
        person = world.token("octo-dev")
        commit = await world.commit({entry["path"]: "on: push\n"}, parent=sha, token=person)
        assert (await world.branch("ci", commit, token)).status_code == 403
        assert (await world.branch("ci", commit, person)).status_code == 201
        asked = {"title": "x", "head": "ci", "base": "main"}
        assert (await world.ask("POST", f"{HOME}/pulls", token, asked)).status_code == 201
        merge = await world.ask("PUT", f"{HOME}/pulls/1/merge", token, {})
        assert merge.status_code == 403
        assert "without `workflows` permission" in merge.json()["message"]


async def test_a_pull_request_needs_branches_and_commits():
    async with hub() as world:
        token = await world.mint()
        pull = await world.pull(token)
        head = pull["head"]["ref"]
        for words, body in [
            ('"head\\" wasn\'t supplied', {"title": "x", "base": "main"}),
            ('"field": "head"', {"title": "x", "head": "nope", "base": "main"}),
            ('"field": "head"', {"title": "x", "head": "somebody:main", "base": "main"}),
            ('"field": "base"', {"title": "x", "head": head, "base": "nope"}),
            ("No commits between main and main", {"title": "x", "head": "main", "base": "main"}),
            (f"A pull request already exists for octo-org:{head}.", {"title": "x", "head": head, "base": "main"}),
            ("body is too long", {"title": "x", "head": head, "base": "main", "body": LONG}),
        ]:
            await expect(world, (422, words), "POST", "/pulls", token, body)
        await expect(world, (404, "Not Found"), "GET", "/pulls/9", token)
        draft = await world.ask("PATCH", f"{HOME}/pulls/{pull['number']}", token, {"draft": False})
        assert draft.json()["draft"] is True


async def test_draft_state_changes_only_through_graphql_and_needs_contents_write():
    async with hub() as world:
        pull = await world.pull(await world.mint())
        weak = await world.mint(permissions={"pull_requests": "write", "contents": "read"})
        told = await world.graphql(READY, weak, id=pull["node_id"])
        assert told["errors"][0]["type"] == "FORBIDDEN"
        assert told["errors"][0]["message"] == "Resource not accessible by integration"
        strong = await world.mint(permissions={"pull_requests": "write", "contents": "write"})
        assert (await world.graphql(READY, strong, id="PR_nope"))["errors"][0]["type"] == "NOT_FOUND"
        ready = await world.graphql(READY, strong, id=pull["node_id"])
        assert ready["data"] == {"markPullRequestReadyForReview": {"pullRequest": {"isDraft": False}}}
        assert (await world.graphql(READY, strong, id=pull["node_id"]))["errors"][0]["type"] == "UNPROCESSABLE"
        back = await world.graphql(DRAFT, strong, id=pull["node_id"])
        assert back["data"]["convertPullRequestToDraft"]["pullRequest"]["isDraft"] is True
        assert "errors" in await world.graphql("query { viewer { shoeSize } }", strong)
        assert (await world.graphql("query { viewer { login } }", strong))["data"]["viewer"][
            "login"
        ] == "pullwright[bot]"


async def test_reviews_keep_their_rules():
    async with hub() as world:
        token = await world.mint()
        first = await world.pull(token, draft=False)
        sha = first["head"]["sha"]
        second = await world.commit({"b": "b"}, parent=sha, token=token)
        await world.advance(first["head"]["ref"], second, token)
        path = "/pulls/1/reviews"
        for words, who, body in [
            ("Can not approve your own pull request", token, {"event": "APPROVE"}),
            ("Can not request changes on your own", token, {"event": "REQUEST_CHANGES", "body": "x"}),
            ("Body can't be blank", "octo-dev", {"event": "REQUEST_CHANGES"}),
            ("not part of the pull request", "octo-dev", {"event": "APPROVE", "commit_id": "1" * 40}),
            ("not a member of", "octo-dev", {"event": "SHRUG"}),
        ]:
            await expect(world, (422, words), "POST", path, who, body)
        older = await world.ask("POST", HOME + path, "octo-dev", {"event": "APPROVE", "commit_id": sha})
        assert older.json()["commit_id"] == sha
        newest = await world.ask("POST", HOME + path, "octo-admin", {"event": "APPROVE"})
        assert newest.json()["commit_id"] == second
        number = newest.json()["id"]
        await expect(world, (422, "wasn't supplied"), "PUT", f"{path}/{number}/dismissals", "octo-admin", {})
        gone = await world.ask("PUT", f"{HOME}{path}/{number}/dismissals", "octo-admin", {"message": "no"})
        assert gone.json()["state"] == "DISMISSED"
        await expect(
            world,
            (422, "Can not dismiss a dismissed"),
            "PUT",
            f"{path}/{number}/dismissals",
            "octo-admin",
            {"message": "x"},
        )
        own = {"reviewers": ["octo-stranger"]}
        await expect(world, (422, "not a collaborator"), "POST", "/pulls/1/requested_reviewers", token, own)


async def test_a_large_diff_is_refused_but_files_are_listed():
    async with hub() as world:
        token = await world.mint()
        many = {f"f/{number}": "x\n" for number in range(301)}
        await world.pull(token, branch="many", files=many)
        await world.pull(token, branch="tall", files={"tall": "x\n" * 20_001})
        small = await world.pull(token, branch="small")
        accept = "application/vnd.github.diff"
        too_many = await world.ask("GET", f"{HOME}/pulls/1", token, Accept=accept)
        assert too_many.status_code == 406
        assert too_many.json()["errors"] == [{"resource": "PullRequest", "field": "diff", "code": "too_large"}]
        assert "maximum number of files (300)" in too_many.json()["message"]
        too_tall = await world.ask("GET", f"{HOME}/pulls/2", token, Accept=accept)
        assert "maximum number of lines (20000)" in too_tall.json()["message"]
        diff = await world.ask("GET", f"{HOME}/pulls/{small['number']}", token, Accept=accept)
        assert diff.text.startswith("diff --git a/new.txt b/new.txt\n")
        page = await world.ask("GET", f"{HOME}/pulls/1/files?per_page=100&page=4", token)
        assert len(page.json()) == 1
        assert 'rel="first"' in page.headers["link"]


async def test_check_runs_keep_their_limits():
    async with hub() as world:
        token = await world.mint()
        sha = await world.tip()
        note = {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
        action = {"label": "Go", "description": "Do it", "identifier": "go"}
        run = {"name": "x", "head_sha": sha}
        for words, body in [
            ("No commit found for SHA", {**run, "head_sha": "1" * 40}),
            ("not a member of", {**run, "conclusion": "stale"}),
            ('"conclusion\\" wasn\'t supplied', {**run, "status": "completed"}),
            ('"summary\\" wasn\'t supplied', {**run, "output": {"title": "x"}}),
            ("Only 65535 characters", {**run, "output": {"title": "x", "summary": "x" * 65_536}}),
            ("no more than 50", {**run, "output": {"title": "x", "summary": "s", "annotations": [note] * 51}}),
            ("no more than 3", {**run, "actions": [action] * 4}),
            ("only 20 characters", {**run, "actions": [{**action, "label": "x" * 21}]}),
        ]:
            await expect(world, (422, words), "POST", "/check-runs", token, body)
        made = await world.ask(
            "POST",
            f"{HOME}/check-runs",
            token,
            {**run, "output": {"title": "t", "summary": "s", "annotations": [note]}},
        )
        more = {"output": {"title": "t", "summary": "s", "annotations": [note, note]}}
        updated = await world.ask("PATCH", f"{HOME}/check-runs/{made.json()['id']}", token, more)
        assert updated.json()["output"]["annotations_count"] == 3
        weak = await world.mint(permissions={"contents": "write"})
        assert (await world.ask("POST", f"{HOME}/check-runs", weak, run)).status_code == 403


async def test_an_empty_repository_has_no_git_data():
    config = Config(seed=Seed(repositories=(RepositorySeed("octo-org/hello"),)))
    async with hub(config) as world:
        token = await world.mint()
        await expect(world, (409, "Git Repository is empty."), "GET", "/git/ref/heads/main", token)
        await expect(world, (409, "Git Repository is empty."), "POST", "/git/blobs", token, {"content": "x"})
        await expect(world, (404, "This repository is empty."), "GET", "/contents/README.md", token)


async def test_contents_tell_files_folders_links_and_missing_ones_apart():
    async with hub() as world:
        token = await world.mint()
        base = await world.tip()
        entries = [
            {"path": "dir/link", "mode": "120000", "type": "blob", "content": "../app.py"},
            {"path": "dir/sub", "mode": "160000", "type": "commit", "sha": "1" * 40},
        ]
        tree = (await world.ask("POST", f"{HOME}/git/trees", token, {"base_tree": base, "tree": entries})).json()["sha"]
        body = {"message": "x", "tree": tree, "parents": [base]}
        sha = (await world.ask("POST", f"{HOME}/git/commits", token, body)).json()["sha"]
        await world.branch("odd/branch", sha, token)
        listed = await world.ask("GET", f"{HOME}/contents/dir?ref=odd/branch", token)
        assert {one["name"]: one["type"] for one in listed.json()} == {"link": "symlink", "sub": "file"}
        new = await world.ask("GET", f"{HOME}/contents/dir?ref={sha}", token, X_GitHub_Api_Version="2026-03-10")
        assert {one["name"]: one["type"] for one in new.json()} == {"link": "symlink", "sub": "submodule"}
        link = (await world.ask("GET", f"{HOME}/contents/dir/link?ref={sha}", token)).json()
        assert (link["type"], link["target"]) == ("symlink", "../app.py")
        raw = await world.ask("GET", f"{HOME}/contents/README.md", token, Accept="application/vnd.github.raw")
        assert raw.text == "# hello\n"
        plain = (await world.ask("GET", f"{HOME}/contents/README.md", token)).json()
        assert base64.b64decode(plain["content"]) == b"# hello\n"
        await expect(world, (404, "Not Found"), "GET", "/contents/.github/pullwright.toml", token)
        await expect(world, (404, "No commit found for the ref nope"), "GET", "/contents/README.md?ref=nope", token)


async def test_an_archived_repository_is_read_only():
    async with hub() as world:
        token = await world.mint()
        await world.ask("PATCH", HOME, "octo-admin", {"archived": True})
        await expect(world, (403, "archived so is read-only"), "POST", "/issues", token, {"title": "x"})
        assert (await world.ask("GET", HOME, token)).json()["archived"] is True
