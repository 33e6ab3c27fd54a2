"""Merging on the stand-in: every refusal, real three-way merges, rules of protected branches, and `mergeable`."""

from __future__ import annotations

import asyncio

import pytest

from bot.emulators.github import Config, Protection, RepositorySeed, Seed
from tests.contracts.github_world import HOME, expect, hub


def _protected(**rules: object) -> Config:
    protection = Protection(**rules)  # type: ignore[arg-type]
    contents = {"README.md": "# hello\n", "app.py": "one\ntwo\nthree\n"}
    return Config(
        seed=Seed(repositories=(RepositorySeed("octo-org/hello", contents=contents, protections=(protection,)),))
    )


async def test_a_merge_is_refused_for_each_reason():
    async with hub() as world:
        token = await world.mint()
        pull = await world.pull(token, files={"app.py": "ours\n"}, draft=False)
        merge = f"/pulls/{pull['number']}/merge"
        await expect(world, (409, "Head branch was modified"), "PUT", merge, token, {"sha": "1" * 40})
        await expect(world, (422, "40 characters"), "PUT", merge, token, {"sha": "short"})
        await expect(world, (422, "not a member of"), "PUT", merge, token, {"merge_method": "octopus"})
        await world.ask("PATCH", HOME, "octo-admin", {"allow_rebase_merge": False})
        await expect(world, (405, "Rebase merges are not allowed"), "PUT", merge, token, {"merge_method": "rebase"})
        await world.fault(kind="base_moves")
        await expect(world, (405, "Base branch was modified. Review"), "PUT", merge, token, {})
        other = await world.commit({"app.py": "theirs\n"}, parent=await world.tip(), token=token)
        await world.advance("main", other, token)
        await expect(world, (405, "Pull Request is not mergeable"), "PUT", merge, token, {"sha": pull["head"]["sha"]})
        assert await world.mergeable(pull["number"]) is False
        await world.ask("PATCH", f"{HOME}/pulls/{pull['number']}", token, {"state": "closed"})
        await expect(world, (405, "Pull Request is not mergeable"), "PUT", merge, token, {})


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_merge_keeps_what_others_changed_meanwhile(method):
    async with hub() as world:
        token = await world.mint()
        pull = await world.pull(token, draft=False)
        other = await world.commit({"theirs.txt": "theirs\n"}, parent=await world.tip(), token=token)
        await world.advance("main", other, token)
        asked = {"merge_method": method, "sha": pull["head"]["sha"], "commit_title": "T", "commit_message": ""}
        merged = await world.ask("PUT", f"{HOME}/pulls/1/merge", token, asked)
        assert merged.status_code == 200, merged.text
        commit = (await world.ask("GET", f"{HOME}/commits/{merged.json()['sha']}", token)).json()
        parents = [one["sha"] for one in commit["parents"]]
        assert parents == ([other, pull["head"]["sha"]] if method == "merge" else [other])
        listed = await world.ask("GET", f"{HOME}/git/trees/{commit['sha']}", token)
        assert [one["path"] for one in listed.json()["tree"]] == ["README.md", "app.py", "new.txt", "theirs.txt"]
        assert commit["commit"]["message"] == ("change" if method == "rebase" else "T")
        assert (await world.ask("GET", f"{HOME}/pulls/1/merge", token)).status_code == 204


async def test_protection_counts_reviews_checks_and_pushers():
    config = _protected(
        pull_request=True,
        required_approving_review_count=1,
        dismiss_stale_reviews_on_push=True,
        required_status_checks=("pullwright/gate",),
    )
    async with hub(config) as world:
        token = await world.mint()
        pull = await world.pull(token, draft=False)
        await expect(world, (405, "At least 1 approving review is required"), "PUT", "/pulls/1/merge", token, {})
        await world.ask("POST", f"{HOME}/pulls/1/reviews", "octo-reader", {"event": "APPROVE"})
        await expect(world, (405, "At least 1 approving review"), "PUT", "/pulls/1/merge", token, {})
        await world.ask("POST", f"{HOME}/pulls/1/reviews", "octo-dev", {"event": "APPROVE"})
        await expect(world, (405, 'Required status check \\"pullwright/gate\\"'), "PUT", "/pulls/1/merge", token, {})
        second = await world.commit({"b": "b"}, parent=pull["head"]["sha"], token=token)
        await world.advance(pull["head"]["ref"], second, token)
        reviews = (await world.ask("GET", f"{HOME}/pulls/1/reviews", token)).json()
        assert {one["state"] for one in reviews} == {"DISMISSED"}
        await world.ask("POST", f"{HOME}/pulls/1/reviews", "octo-dev", {"event": "APPROVE"})
        run = {"name": "pullwright/gate", "head_sha": second, "conclusion": "success"}
        assert (await world.ask("POST", f"{HOME}/check-runs", token, run)).status_code == 201
        await expect(world, (422, "through a pull request"), "PATCH", "/git/refs/heads/main", token, {"sha": second})
        assert (await world.ask("PUT", f"{HOME}/pulls/1/merge", token, {"sha": second})).status_code == 200
        rules = (await world.ask("GET", f"{HOME}/rules/branches/main", token)).json()
        assert {one["type"] for one in rules} >= {"pull_request", "required_status_checks"}
        assert (await world.ask("GET", f"{HOME}/branches/main", token)).json()["protected"] is True


async def test_a_merge_queue_takes_no_direct_merge():
    async with hub(_protected(merge_queue=True)) as world:
        token = await world.mint()
        await world.pull(token, draft=False)
        await expect(world, (405, "Changes must be made through the merge queue"), "PUT", "/pulls/1/merge", token, {})


async def test_mergeable_is_null_until_it_is_computed():
    async with hub(Config(mergeable_delay_seconds=0.2)) as world:
        token = await world.mint()
        pull = await world.pull(token)
        assert pull["mergeable"] is None
        first = (await world.ask("GET", f"{HOME}/pulls/1", token)).json()
        assert (first["mergeable"], first["mergeable_state"]) == (None, "unknown")
        await asyncio.sleep(0.6)
        later = (await world.ask("GET", f"{HOME}/pulls/1", token)).json()
        assert (later["mergeable"], later["mergeable_state"]) == (True, "draft")
        refs = (await world.ask("GET", f"{HOME}/git/matching-refs/pull/1", token)).json()
        assert [one["ref"] for one in refs] == ["refs/pull/1/head", "refs/pull/1/merge"]
        assert refs[0]["object"]["sha"] == pull["head"]["sha"]
