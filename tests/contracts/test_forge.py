"""The forge port, on the production client against the stand-in of GitHub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from bot.domain.change import FileMode, TreeEntry
from bot.domain.errors import Transient
from bot.domain.event import ReviewState
from bot.domain.ids import BlobId, CommentId, CommitId, InstallationId, NodeId, RepositoryId
from bot.domain.pull import Permission
from bot.emulators.github import Config, RepositorySeed, Seed
from bot.providers.forge.githubkit import AppCredentials, GithubForge, GithubForges
from bot.providers.forge.port import (
    CheckConclusion,
    CheckReport,
    Forge,
    ForgeGone,
    ForgeRefused,
    Forges,
    NewPull,
    RepositoryMoved,
)
from tests.contracts.github_world import HOME, Hub, hub

SECRET = Config(
    seed=Seed(
        repositories=(
            RepositorySeed("octo-org/hello", contents={"README.md": "# hello\n", "app.py": "x\n"}),
            RepositorySeed("octo-org/secret", contents={"README.md": "# secret\n"}, installed=False),
        )
    )
)


@dataclass
class Stage:
    """The stand-in, the App on it, and one repository opened."""

    hub: Hub
    forges: GithubForges
    forge: GithubForge
    pauses: list[float] = field(default_factory=list)

    async def log(self) -> list[tuple[str, str, int]]:
        told = (await self.hub.http.get("/_stand-in/log")).json()
        return [(one["method"], one["path"].removeprefix(HOME), one["status"]) for one in told]

    async def tries(self, method: str, tail: str) -> int:
        return sum(1 for verb, path, _ in await self.log() if verb == method and path.endswith(tail))


@asynccontextmanager
async def opened(config: Config | None = None, prefix: str = "") -> AsyncIterator[Stage]:
    pauses: list[float] = []

    async def wait(seconds: float) -> None:
        pauses.append(seconds)

    async with hub(config) as world:
        credentials = AppCredentials.from_pem(str(world.endpoint.app_id), world.endpoint.private_key_pem)
        forges = GithubForges(credentials, base_url=world.endpoint.url + prefix, wait=wait)
        try:
            installation = InstallationId(world.endpoint.installation_id)
            forge = await forges.open(installation, RepositoryId(world.endpoint.repositories[0].id))
            yield Stage(world, forges, forge, pauses)
        finally:
            await forges.close()


async def _branch(forge: Forge, name: str, path: str = "new.py", data: bytes = b"new\n") -> CommitId:
    main = await forge.branch_head("main")
    assert main
    base = await forge.commit(main)
    blob = await forge.create_blob(data)
    tree = await forge.create_tree(base.tree, (TreeEntry(path, FileMode.EXECUTABLE, blob),), ("README.md",))
    commit = await forge.create_commit("Change it", tree, (main,))
    assert commit.tree == tree
    await forge.create_branch(name, commit.id)
    return commit.id


def test_the_client_fits_the_port() -> None:
    credentials = AppCredentials("1", None)

    def takes(_: type[Forge], __: type[Forges]) -> None: ...

    takes(GithubForge, GithubForges)
    assert "key" not in repr(credentials)


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
async def test_a_change_is_published_reviewed_and_landed(prefix):
    async with opened(prefix=prefix) as stage:
        forge = stage.forge
        head = await _branch(forge, "agent/1-x")
        assert await forge.find_pull("agent/1-x", "main") is None
        made = await forge.create_pull(NewPull("Change it", "words", "agent/1-x", "main"))
        assert (made.draft, made.open, made.merged, made.head_sha, made.mergeable) == (True, True, False, head, None)
        assert made.author == await stage.forges.bot()
        assert made.author.is_bot
        found = await forge.find_pull("agent/1-x", "main")
        assert found
        assert found.number == made.number
        await forge.update_pull_body(made.number, "other words")
        await stage.hub.ask("POST", f"{HOME}/pulls/1/reviews", "octo-dev", {"event": "APPROVE", "body": "ok"})
        (review,) = await forge.reviews(made.number)
        assert (review.state, review.commit_id, review.reviewer.login) == (ReviewState.APPROVED, head, "octo-dev")
        assert await forge.review(made.number, review.id) == review
        with pytest.raises(ForgeRefused) as refused:
            await forge.merge(made.number, head=head, title="T", message="M")
        assert refused.value.status == 405
        assert refused.value.message == "Pull Request is still a draft"
        await forge.mark_ready(made.node_id)
        await forge.convert_to_draft(made.node_id)
        await forge.mark_ready(made.node_id)
        with pytest.raises(ForgeRefused, match="409: Head branch was modified"):
            await forge.merge(made.number, head=CommitId("1" * 40), title="T", message="M")
        landed = await forge.merge(made.number, head=head, title="T", message="M")
        assert await forge.branch_head("main") == landed
        record = await forge.commit(landed)
        assert (record.message, record.tree) == ("T\n\nM", (await forge.commit(head)).tree)
        after = await forge.pull(made.number)
        assert (after.merged, after.open, after.body) == (True, False, "other words")


async def test_words_labels_and_reactions():
    async with opened() as stage:
        forge = stage.forge
        await stage.hub.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x", "labels": ["agent"]})
        issue = await forge.issue(1)
        assert (issue.title, issue.body, issue.labels, issue.is_pull, issue.open, issue.locked) == (
            "x",
            "",
            ("agent",),
            False,
            True,
            False,
        )
        assert (issue.author.login, issue.author.is_bot) == ("octo-dev", False)
        first = await forge.create_comment(1, "one")
        for number in range(101):
            await stage.hub.ask("POST", f"{HOME}/issues/1/comments", "octo-dev", {"body": str(number)})
        await forge.update_comment(first.id, "changed")
        await forge.react(first.id, "eyes")
        await forge.react(first.id, "eyes")
        comments = await forge.comments(1)
        assert [comment.body for comment in comments] == ["changed", *map(str, range(101))]
        await forge.add_label(1, "agent: area/core")
        assert set((await forge.issue(1)).labels) == {"agent", "agent: area/core"}
        await forge.remove_label(1, "agent: area/core")
        await forge.remove_label(1, "agent: area/core")
        assert (await forge.issue(1)).labels == ("agent",)
        with pytest.raises(ForgeGone):
            await forge.remove_label(99, "agent")
        with pytest.raises(ForgeGone):
            await forge.issue(99)
        with pytest.raises(ForgeGone):
            await forge.update_comment(CommentId(1), "x")
        with pytest.raises(ForgeRefused, match="422"):
            await forge.create_comment(1, "x" * 65_537)


async def test_permissions_fail_closed():
    async with opened() as stage:
        told = {login: await stage.forge.permission(login) for login in stage.hub.endpoint.users}
        assert told == {
            "octo-admin": Permission.ADMIN,
            "octo-dev": Permission.WRITE,
            "octo-triage": Permission.READ,
            "octo-reader": Permission.READ,
            "octo-stranger": Permission.NONE,
        }
        assert await stage.forge.permission("nobody-at-all") is Permission.NONE
        assert await stage.forge.permission("pullwright[bot]") is Permission.NONE
        await stage.hub.fault(kind="status", path="/permission$", status=500, times=3)
        with pytest.raises(Transient):
            await stage.forge.permission("octo-dev")
        path = f"/app/installations/{stage.hub.endpoint.installation_id}/suspended"
        await stage.hub.ask("PUT", path, "app")
        with pytest.raises(ForgeGone, match="suspended"):
            await stage.forge.permission("octo-dev")


async def test_branches_move_forward_only():
    async with opened() as stage:
        forge = stage.forge
        first = await _branch(forge, "agent/1-x")
        with pytest.raises(ForgeRefused, match="Reference already exists"):
            await forge.create_branch("agent/1-x", first)
        main = await forge.branch_head("main")
        assert main
        other = await forge.create_commit("Other", (await forge.commit(first)).tree, (main,))
        with pytest.raises(ForgeRefused, match="422: Update is not a fast forward"):
            await forge.advance_branch("agent/1-x", other.id)
        onward = await forge.create_commit("Onward", other.tree, (first,))
        await forge.advance_branch("agent/1-x", onward.id)
        assert await forge.branch_head("agent/1-x") == onward.id
        assert await forge.branch_head("no/such") is None
        assert await forge.create_tree(other.tree, (), ()) == other.tree
        with pytest.raises(ForgeRefused):
            await forge.create_tree(other.tree, (TreeEntry("a", FileMode.REGULAR, BlobId("1" * 40)),), ())


async def test_check_runs_are_made_found_and_finished():
    async with opened() as stage:
        forge = stage.forge
        head = await _branch(forge, "agent/1-x")
        assert await forge.find_check(head, "pullwright/gate") is None
        report = CheckReport("pullwright/gate", head, "Waiting", "…", None, "task-1")
        made = await forge.report_check(report, None)
        assert await forge.find_check(head, "pullwright/gate") == made
        done = CheckReport("pullwright/gate", head, "Approved", "ok", CheckConclusion.SUCCESS, "task-1")
        assert await forge.report_check(done, made) == made
        told = (await stage.hub.ask("GET", f"{HOME}/check-runs/{made}", await stage.hub.mint())).json()
        assert (told["status"], told["conclusion"], told["external_id"]) == ("completed", "success", "task-1")


async def test_only_covered_repositories_open():
    async with opened(SECRET) as stage:
        installation = InstallationId(stage.hub.endpoint.installation_id)
        hidden = next(one.id for one in stage.hub.endpoint.repositories if one.full_name == "octo-org/secret")
        for repository in (hidden, 1):
            with pytest.raises(ForgeGone):
                await stage.forges.open(installation, RepositoryId(repository))
        with pytest.raises(ForgeGone):
            await stage.forges.open(InstallationId(1), RepositoryId(stage.hub.endpoint.repositories[0].id))


async def test_each_phase_has_a_token_of_its_own_for_one_repository():
    async with opened(SECRET) as stage:
        await stage.forge.fetch_token()
        await _branch(stage.forge, "agent/1-x")
        tokens = stage.hub.endpoint.world.registry.tokens.values()
        assert all(token.repository_ids == frozenset({stage.hub.endpoint.repositories[0].id}) for token in tokens)
        granted = {tuple(sorted(token.permissions.items())) for token in tokens}
        assert (("contents", "read"), ("metadata", "read")) in granted
        assert (("contents", "write"), ("metadata", "read")) in granted
        assert len(tokens) == 3


async def test_many_first_calls_ask_for_one_token():
    async with opened() as stage:
        await asyncio.gather(*(stage.forge.create_blob(str(number).encode()) for number in range(10)))
        minted = [entry for entry in await stage.log() if entry[1].endswith("/access_tokens")]
        assert len(minted) == 2


async def test_a_refused_token_is_replaced_once():
    async with opened() as stage:
        await stage.hub.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        stage.hub.endpoint.world.registry.tokens.clear()
        assert (await stage.forge.issue(1)).title == "x"
        await stage.hub.http.post("/_stand-in/clock", json={"advance": 3700})
        assert (await stage.forge.create_comment(1, "x")).body == "x"
        await stage.hub.fault(kind="status", status=401, path="/issues/1$", times=2)
        with pytest.raises(ForgeGone):
            await stage.forge.issue(1)


@pytest.mark.parametrize("fault", [{"kind": "status", "status": 502}, {"kind": "drop"}])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_post_is_never_sent_twice(fault, when, record_property):
    async with opened() as stage:
        await stage.hub.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await stage.forge.create_comment(1, "first")
        await stage.hub.fault(method="POST", path="/comments$", when=when, **fault)
        with pytest.raises(Transient):
            await stage.forge.create_comment(1, "second")
        assert await stage.tries("POST", "/issues/1/comments") == 2
        there = len(await stage.forge.comments(1))
        assert there == (2 if when == "after" else 1)
        record_property("control", f"{there - 1} of what failed was done all the same")
        assert stage.pauses == []


async def test_a_read_is_tried_again_and_then_given_up():
    async with opened() as stage:
        await stage.hub.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await stage.hub.fault(method="GET", path="/issues/1$", kind="status", status=503, times=1)
        await stage.hub.fault(method="GET", path="/issues/1$", kind="drop", times=1)
        assert (await stage.forge.issue(1)).title == "x"
        assert stage.pauses == [1.0, 3.0]
        await stage.hub.fault(method="GET", path="/issues/1$", kind="status", status=503, times=3)
        with pytest.raises(Transient):
            await stage.forge.issue(1)


async def test_a_merge_of_unknown_fate_is_not_repeated():
    async with opened() as stage:
        head = await _branch(stage.forge, "agent/1-x")
        made = await stage.forge.create_pull(NewPull("x", "", "agent/1-x", "main", draft=False))
        await stage.hub.fault(method="PUT", path="/merge$", kind="status", status=502, when="after")
        with pytest.raises(Transient):
            await stage.forge.merge(made.number, head=head, title="T", message="M")
        assert await stage.tries("PUT", "/merge") == 1
        assert (await stage.forge.pull(made.number)).merged


@pytest.mark.parametrize(
    ("fault", "pauses", "retry_after"),
    [
        ({"kind": "secondary", "retry_after": 7}, [7.0], None),
        ({"kind": "secondary"}, [60.0], None),
        ({"kind": "secondary", "retry_after": 300}, [], 300),
        ({"kind": "primary", "retry_after": 3000}, [], 3000),
        ({"kind": "secondary", "retry_after": 1, "times": 2}, [1.0], 1),
        ({"kind": "secondary", "headers": {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}}, [1.0], None),
    ],
)
async def test_rate_limits_are_waited_out_when_short(fault, pauses, retry_after):
    async with opened() as stage:
        await stage.hub.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await stage.hub.fault(method="GET", path="/issues/1$", **fault)
        if retry_after is None:
            assert (await stage.forge.issue(1)).title == "x"
        else:
            with pytest.raises(Transient) as caught:
                await stage.forge.issue(1)
            assert caught.value.retry_after == pytest.approx(retry_after, abs=5)
        assert stage.pauses == pauses


async def test_a_renamed_repository_is_read_on_but_not_written_to_blindly():
    async with opened() as stage:
        await stage.hub.ask("POST", f"{HOME}/issues", "octo-dev", {"title": "x"})
        await stage.hub.ask("PATCH", HOME, "octo-admin", {"name": "renamed"})
        with pytest.raises(RepositoryMoved):
            await stage.forge.create_comment(1, "x")
        assert (await stage.forge.issue(1)).title == "x"
        assert (await stage.forge.repository()).full_name == "octo-org/renamed"
        assert (await stage.forge.create_comment(1, "x")).body == "x"


async def test_a_suspended_installation_is_gone():
    async with opened() as stage:
        path = f"/app/installations/{stage.hub.endpoint.installation_id}/suspended"
        await stage.hub.ask("PUT", path, "app")
        with pytest.raises(ForgeGone, match="suspended"):
            await stage.forge.repository()
        with pytest.raises(ForgeGone, match="suspended"):
            await stage.forge.create_blob(b"x")


async def test_a_right_that_was_not_granted_is_gone():
    async with opened(
        Config(permissions={"contents": "read", "issues": "read", "pull_requests": "read", "checks": "read"})
    ) as stage:
        with pytest.raises(ForgeGone, match="no token for publish"):
            await stage.forge.create_blob(b"x")


async def test_graphql_refusals_are_told():
    async with opened() as stage:
        with pytest.raises(ForgeGone, match="NOT_FOUND"):
            await stage.forge.mark_ready(NodeId("PR_nope"))
        await _branch(stage.forge, "agent/1-x")
        made = await stage.forge.create_pull(NewPull("x", "", "agent/1-x", "main", draft=False))
        with pytest.raises(ForgeRefused):
            await stage.forge.mark_ready(made.node_id)


async def test_one_version_is_asked_for_everywhere():
    async with opened() as stage:
        await _branch(stage.forge, "agent/1-x")
        told = (await stage.hub.http.get("/_stand-in/log")).json()
        assert {one["version"] for one in told} == {"2026-03-10"}
