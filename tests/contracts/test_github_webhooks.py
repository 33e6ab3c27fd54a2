"""Deliveries of the stand-in: signatures, headers, payloads, the log, redelivery, and misfortune."""

from __future__ import annotations

import uuid

import httpx
import pytest

from bot.emulators.github import Config, Protection, RepositorySeed, Seed
from tests.contracts.github_world import DRAFT, HOME, OWNER, READY, REPO, clone_url, hub, plain_git, receiving


async def test_a_delivery_carries_every_header_and_a_valid_signature():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await world.endpoint.settle()
        (event,) = receiver.events
        headers = event.headers
        assert headers["x-github-event"] == "issues"
        assert str(uuid.UUID(headers["x-github-delivery"])) == headers["x-github-delivery"]
        assert headers["x-github-hook-installation-target-type"] == "integration"
        assert headers["x-github-hook-installation-target-id"] == str(world.endpoint.app_id)
        assert headers["x-github-hook-id"].isdigit()
        assert headers["content-type"] == "application/json"
        assert headers["user-agent"].startswith("GitHub-Hookshot/")
        assert headers["x-hub-signature"].startswith("sha1=")
        assert event.signed_with(world.endpoint.webhook_secret)
        assert not event.signed_with("another")
        payload = event.payload
        assert payload["installation"]["id"] == world.endpoint.installation_id
        assert payload["installation"]["node_id"]
        assert payload["repository"]["full_name"] == f"{OWNER}/{REPO}"
        assert payload["sender"]["login"] == "octo-dev"
        assert payload["issue"]["title"] == "x"


async def test_a_new_address_is_pinged_and_a_new_secret_signs():
    async with receiving() as receiver, hub() as world:
        answer = await world.ask("PATCH", "/app/hook/config", "app", {"url": receiver.url, "secret": "fresh"})
        assert answer.json() == {
            "content_type": "json",
            "insecure_ssl": "0",
            "secret": "********",
            "url": receiver.url,
        }
        await world.endpoint.settle()
        assert receiver.names() == ["ping"]
        assert receiver.events[0].signed_with("fresh")
        assert receiver.events[0].payload["zen"]


async def test_the_life_of_a_pull_request_is_told():
    rules = (Protection(dismiss_stale_reviews_on_push=True),)
    seed = Seed(repositories=(RepositorySeed("octo-org/hello", contents={"a": "a\n"}, protections=rules),))
    async with receiving() as receiver, hub(Config(seed=seed, webhook_url=receiver.url)) as world:
        token = await world.mint()
        pull = await world.pull(token)
        other = await world.commit({"b": "b"}, parent=await world.tip(), token=token)
        await world.branch("decoy", other, token)
        path = f"{HOME}/pulls/1"
        await world.ask("PATCH", path, token, {"title": "New title", "body": "New body"})
        await world.ask("PATCH", path, token, {"base": "decoy"})
        await world.ask("PATCH", path, token, {"base": "main"})
        await world.graphql(READY, token, id=pull["node_id"])
        await world.graphql(DRAFT, token, id=pull["node_id"])
        await world.ask("POST", f"{HOME}/issues/1/labels", token, {"labels": ["agent"]})
        await world.ask("POST", f"{path}/requested_reviewers", token, {"reviewers": ["octo-dev"]})
        line = {"path": "new.txt", "line": 1, "body": "here"}
        review = {"event": "APPROVE", "body": "ok", "comments": [line]}
        number = (await world.ask("POST", f"{path}/reviews", "octo-dev", review)).json()["id"]
        await world.ask("PUT", f"{path}/reviews/{number}", "octo-dev", {"body": "really"})
        second = await world.commit({"c": "c"}, parent=pull["head"]["sha"], token=token)
        await world.advance(pull["head"]["ref"], second, token)
        await world.ask("PATCH", path, token, {"state": "closed"})
        await world.ask("PATCH", path, token, {"state": "open"})
        await world.endpoint.settle()
        told = [name for name in receiver.names() if name.startswith("pull_request")]
        assert sorted(told) == sorted(
            [
                "pull_request.opened",
                "pull_request.edited",
                "pull_request.edited",
                "pull_request.edited",
                "pull_request.ready_for_review",
                "pull_request.converted_to_draft",
                "pull_request.labeled",
                "pull_request.review_requested",
                "pull_request_review.submitted",
                "pull_request_review_comment.created",
                "pull_request_review.edited",
                "pull_request_review.dismissed",
                "pull_request.synchronize",
                "pull_request.closed",
                "pull_request.reopened",
            ]
        )
        changes = [event.payload["changes"] for event in receiver.named("pull_request", "edited")]
        assert {"title": {"from": "Change it"}, "body": {"from": "words"}} in changes
        assert any(change.get("base", {}).get("ref") == {"from": "decoy"} for change in changes)
        assert any(change.get("base", {}).get("sha") == {"from": other} for change in changes)
        submitted = receiver.named("pull_request_review", "submitted")[0].payload
        assert submitted["review"]["state"] == "approved"
        assert submitted["review"]["commit_id"] == pull["head"]["sha"]
        opened = receiver.named("pull_request", "opened")[0].payload["pull_request"]
        assert "merge_commit_sha" in opened
        assert opened["user"]["type"] == "Bot"
        labelled = receiver.named("pull_request", "labeled")[0].payload
        assert labelled["label"]["name"] == "agent"


async def test_an_edited_comment_tells_what_it_was():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        made = await world.ask("POST", f"{HOME}/issues/1/comments", "octo-dev", {"body": "/agent run"})
        path = f"{HOME}/issues/comments/{made.json()['id']}"
        await world.ask("PATCH", path, "octo-admin", {"body": "/agent merge"})
        await world.ask("DELETE", path, "octo-admin")
        await world.endpoint.settle()
        edited = receiver.named("issue_comment", "edited")[0].payload
        assert edited["changes"] == {"body": {"from": "/agent run"}}
        assert (edited["sender"]["login"], edited["comment"]["user"]["login"]) == ("octo-admin", "octo-dev")
        assert receiver.named("issue_comment", "deleted")


async def test_nothing_is_redelivered_by_itself_and_redelivery_keeps_the_guid():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        receiver.answer = 500
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await world.endpoint.settle()
        assert len(receiver.events) == 1
        (failed,) = (await world.ask("GET", "/app/hook/deliveries?status=failure", "app")).json()
        assert (failed["status_code"], failed["event"], failed["action"]) == (500, "issues", "opened")
        assert failed["repository_id"] == world.endpoint.repositories[0].id
        receiver.answer = 200
        again = await world.ask("POST", f"/app/hook/deliveries/{failed['id']}/attempts", "app")
        assert again.status_code == 202
        await world.endpoint.settle()
        assert [event.headers["x-github-delivery"] for event in receiver.events] == [failed["guid"]] * 2
        assert receiver.events[0].body == receiver.events[1].body
        listed = (await world.ask("GET", "/app/hook/deliveries", "app")).json()
        assert [(one["status"], one["redelivery"]) for one in listed] == [
            ("OK", True),
            ("Invalid HTTP Response: 500", False),
        ]
        detail = (await world.ask("GET", f"/app/hook/deliveries/{failed['id']}", "app")).json()
        assert detail["request"]["payload"]["action"] == "opened"
        assert detail["request"]["headers"]["X-GitHub-Event"] == "issues"
        assert detail["response"]["payload"] == "noted"
        missing = await world.ask("POST", "/app/hook/deliveries/1/attempts", "app")
        assert missing.status_code == 404
        await world.http.post("/_stand-in/clock", json={"advance": 4 * 86_400})
        assert (await world.ask("GET", "/app/hook/deliveries", "app")).json() == []


async def test_the_delivery_log_is_paged_by_cursor():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        for number in range(5):
            await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": str(number)})
        await world.endpoint.settle()
        seen: list[int] = []
        address: str | None = "/app/hook/deliveries?per_page=2"
        while address:
            page = await world.ask("GET", address, "app")
            seen += [one["id"] for one in page.json()]
            address = page.links.get("next", {}).get("url")
        assert len(seen) == 5
        assert seen == sorted(seen, reverse=True)


async def test_a_slow_receiver_is_cut_off():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url, webhook_timeout_seconds=0.2)) as world:
        receiver.hold = 1.0
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await world.endpoint.settle()
        (entry,) = (await world.ask("GET", "/app/hook/deliveries", "app")).json()
        assert (entry["status"], entry["status_code"]) == ("timed out", 504)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"kind": "drop", "event": "issues"}, []),
        ({"kind": "duplicate", "event": "issues"}, ["issues.opened", "issues.opened"]),
    ],
)
async def test_deliveries_are_dropped_or_doubled_on_request(fault, expected):
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await world.fault(target="delivery", **fault)
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await world.endpoint.settle()
        assert receiver.names() == expected
        assert len({event.headers["x-github-delivery"] for event in receiver.events}) <= 1
        assert len((await world.http.get("/_stand-in/deliveries")).json()) == 1


async def test_deliveries_are_reordered_on_request():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        await world.fault(target="delivery", kind="reorder", event=r"issues\.opened")
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x", "labels": ["agent"]})
        await world.endpoint.settle()
        assert receiver.names().index("issues.labeled") < receiver.names().index("issues.opened")


async def test_a_suspended_installation_hears_nothing_but_of_itself():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        path = f"/app/installations/{world.endpoint.installation_id}/suspended"
        await world.ask("PUT", path, "app")
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await world.ask("DELETE", path, "app")
        await world.http.post("/_stand-in/installation", json={"action": "created"})
        await world.endpoint.settle()
        assert sorted(receiver.names()) == ["installation.created", "installation.suspend", "installation.unsuspend"]


async def test_events_without_subscription_stay_away():
    config = Config(events=("pull_request",))
    async with receiving() as receiver, hub(config) as world:
        world.endpoint.world.app.webhook_url = receiver.url
        await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await world.pull(await world.mint())
        await world.endpoint.settle()
        assert receiver.names() == ["pull_request.opened"]


@pytest.mark.parametrize(
    ("fault", "status", "effect"),
    [
        ({"kind": "status", "status": 502}, 502, 0),
        ({"kind": "status", "status": 500, "when": "after"}, 500, 1),
        ({"kind": "secondary"}, 403, 0),
        ({"kind": "secondary", "retry_after": 7, "status": 429}, 429, 0),
        ({"kind": "primary", "retry_after": 30}, 403, 0),
    ],
)
async def test_requests_fail_on_request_before_or_after_their_effect(fault, status, effect):
    async with hub() as world:
        await world.fault(method="POST", path="/issues$", **fault)
        answer = await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        assert answer.status_code == status
        assert ("retry-after" in answer.headers) == (fault.get("kind") == "secondary" and "retry_after" in fault)
        assert len((await world.ask("GET", f"{HOME}/issues", "octo-dev")).json()) == effect
        assert (await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})).status_code == 201


@pytest.mark.parametrize(("when", "effect"), [("before", 0), ("after", 1)])
async def test_a_connection_breaks_on_request(when, effect):
    async with hub() as world:
        await world.fault(method="POST", path="/issues$", kind="drop", when=when)
        with pytest.raises(httpx.TransportError):
            await world.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        assert len((await world.ask("GET", f"{HOME}/issues", "octo-dev")).json()) == effect


async def test_a_rebase_with_the_same_patch_rebinds_the_approval(tmp_path):
    """Seen on the real service; so a review's commit is no witness of what was read."""
    async with hub() as world:
        token = await world.mint()
        pull = await world.pull(token, draft=False)
        await world.ask("POST", f"{HOME}/pulls/1/reviews", "octo-dev", {"event": "APPROVE"})
        other = await world.commit({"other": "x"}, parent=await world.tip(), token=token)
        await world.advance("main", other, token)
        copy = tmp_path / "copy"
        await plain_git("clone", "--quiet", clone_url(world.endpoint, token), str(copy))
        await plain_git("checkout", "--quiet", pull["head"]["ref"], directory=copy)
        await plain_git("rebase", "--quiet", "origin/main", directory=copy)
        assert (await plain_git("push", "--force", "--quiet", directory=copy)).code == 0
        after = (await world.ask("GET", f"{HOME}/pulls/1", token)).json()["head"]["sha"]
        assert after != pull["head"]["sha"]
        (review,) = (await world.ask("GET", f"{HOME}/pulls/1/reviews", token)).json()
        assert (review["state"], review["commit_id"]) == ("APPROVED", after)


async def test_the_owner_changes_what_the_app_may_reach():
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        token = await world.mint()
        change = f"{world.endpoint.stand_in_url}/installation"
        name = f"{OWNER}/{REPO}"
        assert (await world.http.post(change, json={"action": "removed", "repository": name})).status_code == 202
        assert (await world.ask("GET", HOME, token)).status_code == 404
        assert (await world.http.post(change, json={"action": "removed", "repository": name})).status_code == 422
        assert (await world.http.post(change, json={"action": "added", "repository": name})).status_code == 202
        assert (await world.ask("GET", HOME, token)).status_code == 200
        asked = {"action": "permissions", "permissions": {"contents": "read"}}
        assert (await world.http.post(change, json=asked)).status_code == 202
        path = f"/app/installations/{world.endpoint.installation_id}"
        assert (await world.ask("GET", path, "app")).json()["permissions"] == {"contents": "read", "metadata": "read"}
        assert (await world.http.post(change, json={"action": "deleted"})).status_code == 202
        assert (await world.ask("GET", HOME, token)).status_code == 401
        assert (await world.ask("POST", f"{path}/access_tokens", "app")).status_code == 404
        await world.endpoint.settle()
        assert sorted(receiver.names()) == [
            "installation.deleted",
            "installation.new_permissions_accepted",
            "installation_repositories.added",
            "installation_repositories.removed",
        ]
        for event in receiver.events:
            assert event.payload["installation"]["id"] == world.endpoint.installation_id
