"""Ordinary git against the stand-in: clone, fetch by id, push, and the pushes that are refused."""

from __future__ import annotations

import random
from pathlib import Path

from bot.emulators.github import Config, Protection, RepositorySeed, Seed, UserSeed
from tests.contracts.github_world import HOME, Hub, clone_url, hub, plain_git, receiving


async def _clone(world: Hub, token: str, directory: Path) -> Path:
    told = await plain_git("clone", "--quiet", clone_url(world.endpoint, token), str(directory))
    assert told.code == 0, told.stderr
    return directory


async def _commit(directory: Path, path: str, data: bytes) -> str:
    target = directory / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    await plain_git("add", "-A", directory=directory)
    await plain_git("commit", "--quiet", "-m", f"add {path}", directory=directory)
    return (await plain_git("rev-parse", "HEAD", directory=directory)).stdout.decode().strip()


async def _push(directory: Path, *refs: str) -> tuple[int, str]:
    told = await plain_git("push", "origin", *refs, directory=directory)
    return told.code, told.stderr.decode()


async def test_clone_push_and_pull_request(tmp_path):
    async with receiving() as receiver, hub(Config(webhook_url=receiver.url)) as world:
        token = await world.mint()
        copy = await _clone(world, token, tmp_path / "copy")
        assert (copy / "README.md").read_text() == "# hello\n"
        first = await _commit(copy, "new.txt", b"one\n")
        assert (await _push(copy, "HEAD:refs/heads/agent/1-x"))[0] == 0
        asked = {"title": "x", "head": "agent/1-x", "base": "main", "draft": True}
        assert (await world.ask("POST", f"{HOME}/pulls", token, asked)).status_code == 201
        second = await _commit(copy, "more.txt", b"two\n")
        assert (await _push(copy, "HEAD:refs/heads/agent/1-x"))[0] == 0
        pull = (await world.ask("GET", f"{HOME}/pulls/1", token)).json()
        assert (pull["head"]["sha"], pull["commits"]) == (second, 2)
        fetched = await plain_git("fetch", "--quiet", "origin", "refs/pull/1/head", directory=copy)
        assert fetched.code == 0
        await world.endpoint.settle()
        moved = receiver.named("pull_request", "synchronize")[0].payload
        assert (moved["before"], moved["after"]) == (first, second)
        pushed = receiver.named("push")[1].payload
        assert (pushed["before"], pushed["after"], pushed["ref"]) == (first, second, "refs/heads/agent/1-x")
        assert [one["id"] for one in pushed["commits"]] == [second]


async def test_a_commit_is_fetched_by_its_full_id(tmp_path):
    async with hub() as world:
        token = await world.mint(permissions={"contents": "read"})
        tip = await world.tip()
        await plain_git("init", "--quiet", str(tmp_path / "mirror"))
        told = await plain_git(
            "fetch", "--quiet", "--depth=1", clone_url(world.endpoint, token), tip, directory=tmp_path / "mirror"
        )
        assert told.code == 0, told.stderr
        assert (await plain_git("cat-file", "-t", tip, directory=tmp_path / "mirror")).stdout == b"commit\n"


async def test_a_large_push_survives_chunks_and_a_long_fetch_survives_gzip(tmp_path):
    async with hub() as world:
        token = await world.mint()
        copy = await _clone(world, token, tmp_path / "copy")
        noise = random.Random(1).randbytes(6_000_000)
        sha = await _commit(copy, "noise.bin", noise)
        code, told = await _push(copy, "HEAD:refs/heads/big")
        assert code == 0, told
        await plain_git("tag", "--force", "many", directory=copy)
        names = [f"refs/heads/b/{number}" for number in range(60)]
        assert (await _push(copy, *[f"HEAD:{name}" for name in names]))[0] == 0
        again = await _clone(world, token, tmp_path / "again")
        await plain_git("fetch", "--quiet", "origin", "big", directory=again)
        shown = await plain_git("cat-file", "blob", f"{sha}:noise.bin", directory=again)
        assert shown.stdout == noise


async def test_git_credentials_are_checked(tmp_path):
    async with hub() as world:
        for token, words in [
            ("ghs_wrong", "Authentication failed"),
            (world.token("octo-stranger"), "not found"),
            (await world.mint(permissions={"issues": "write"}), "403"),
        ]:
            clone = await plain_git("clone", clone_url(world.endpoint, token), str(tmp_path / "no"))
            assert clone.code != 0
            assert words in clone.stderr.decode()
        reader = await _clone(world, await world.mint(permissions={"contents": "read"}), tmp_path / "reader")
        await _commit(reader, "x", b"x")
        code, told = await _push(reader, "HEAD:refs/heads/x")
        assert code != 0
        assert "403" in told
        person = await _clone(world, world.token("octo-dev"), tmp_path / "person")
        await _commit(person, "x", b"x")
        assert (await _push(person, "HEAD:refs/heads/x"))[0] == 0
        expired = await world.mint()
        await world.http.post("/_stand-in/clock", json={"advance": 3601})
        assert (await plain_git("ls-remote", clone_url(world.endpoint, expired))).code != 0


async def test_a_push_of_workflow_files_by_the_app_is_refused(tmp_path):
    async with hub() as world:
        copy = await _clone(world, await world.mint(), tmp_path / "copy")
        await _commit(copy, ".github/workflows/ci.yml", b"on: push\n")
        await _commit(copy, "other.txt", b"x\n")
        code, told = await _push(copy, "HEAD:refs/heads/x")
        assert code != 0
        words = "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml`"
        assert f"{words} without `workflows` permission" in told
        assert (await world.ask("GET", f"{HOME}/git/ref/heads/x", "octo-dev")).status_code == 404
        url = clone_url(world.endpoint, world.token("octo-dev"))
        assert (await plain_git("push", url, "HEAD:refs/heads/x", directory=copy)).code == 0


async def test_hidden_and_protected_refs_take_no_push(tmp_path):
    contents = {"README.md": "# hello\n"}
    rules = (Protection(pull_request=True),)
    seed = Seed(repositories=(RepositorySeed("octo-org/hello", contents=contents, protections=rules),))
    async with hub(Config(seed=seed)) as world:
        copy = await _clone(world, world.token("octo-admin"), tmp_path / "copy")
        await _commit(copy, "x", b"x")
        code, told = await _push(copy, "HEAD:refs/pull/1/head")
        assert code != 0
        assert "hidden ref" in told
        code, told = await _push(copy, "HEAD:refs/heads/main")
        assert code != 0
        assert "GH013: Repository rule violations found for refs/heads/main." in told
        assert "push declined due to repository rule violations" in told


async def test_a_stale_lease_and_a_non_fast_forward_are_rejected(tmp_path):
    async with hub() as world:
        url = world.token("octo-dev")
        one, two = await _clone(world, url, tmp_path / "one"), await _clone(world, url, tmp_path / "two")
        await _commit(one, "a", b"a")
        await _commit(two, "b", b"b")
        assert (await _push(one, "HEAD:refs/heads/main"))[0] == 0
        code, told = await _push(two, "HEAD:refs/heads/main")
        assert code != 0
        assert "rejected" in told
        code, told = await _push(two, "--force-with-lease", "HEAD:refs/heads/main")
        assert code != 0


async def test_deleting_the_head_closes_the_pull_request_and_pushing_it_to_the_base_merges_it(tmp_path):
    async with hub() as world:
        token = await world.mint()
        await world.pull(token, branch="gone")
        await world.pull(token, branch="landed", files={"landed.txt": "x\n"})
        copy = await _clone(world, world.token("octo-dev"), tmp_path / "copy")
        assert (await _push(copy, ":refs/heads/gone"))[0] == 0
        assert (await world.ask("GET", f"{HOME}/pulls/1", token)).json()["state"] == "closed"
        assert (await _push(copy, "refs/remotes/origin/landed:refs/heads/main"))[0] == 0
        landed = (await world.ask("GET", f"{HOME}/pulls/2", token)).json()
        assert (landed["merged"], landed["merged_by"]["login"]) == (True, "octo-dev")


async def test_a_world_starts_from_a_folder_or_another_repository(tmp_path):
    folder = tmp_path / "folder"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "run").write_text("#!/bin/sh\n")
    (folder / "bin" / "run").chmod(0o755)
    (folder / "link").symlink_to("bin/run")
    source = tmp_path / "source"
    await plain_git("init", "--quiet", "--initial-branch=trunk", str(source))
    sha = await _commit(source, "a", b"a")
    seed = Seed(
        repositories=(
            RepositorySeed("octo-org/hello", files=str(folder)),
            RepositorySeed("octo-org/history", repository=str(source), default_branch="trunk"),
        )
    )
    async with hub(Config(seed=seed)) as world:
        token = await world.mint()
        tree = await world.ask("GET", f"{HOME}/git/trees/main?recursive=1", token)
        modes = {one["path"]: one["mode"] for one in tree.json()["tree"] if one["type"] == "blob"}
        assert modes == {"bin/run": "100755", "link": "120000"}
        branch = await world.ask("GET", "/repos/octo-org/history/branches/trunk", token)
        assert branch.json()["commit"]["sha"] == sha


FORKED = Config(
    seed=Seed(
        users=(
            UserSeed("octo-dev", "none", permissions={"octo-org/hello": "write"}),
            UserSeed("octo-stranger", "none"),
        ),
        repositories=(
            RepositorySeed("octo-org/hello", contents={"README.md": "# hello\n"}, private=False),
            RepositorySeed("octo-stranger/hello", fork_of="octo-org/hello", private=False, installed=False),
        ),
    )
)


async def test_a_stranger_proposes_from_a_fork_and_pushes_on(tmp_path):
    async with receiving() as receiver, hub(FORKED) as world:
        await world.ask("PATCH", "/app/hook/config", "app", {"url": receiver.url})
        url = clone_url(world.endpoint, world.token("octo-stranger")).replace("octo-org", "octo-stranger")
        await plain_git("clone", "--quiet", url, str(tmp_path / "fork"))
        first = await _commit(tmp_path / "fork", "a.txt", b"a\n")
        assert (await _push(tmp_path / "fork", "HEAD:refs/heads/idea"))[0] == 0
        asked = {"title": "Idea", "head": "octo-stranger:idea", "base": "main"}
        assert (await world.ask("POST", f"{HOME}/pulls", "octo-dev", asked)).status_code == 422
        pull = await world.ask("POST", f"{HOME}/pulls", "octo-stranger", asked)
        assert pull.status_code == 201, pull.text
        assert pull.json()["head"]["repo"]["full_name"] == "octo-stranger/hello"
        assert pull.json()["head"]["label"] == "octo-stranger:idea"
        second = await _commit(tmp_path / "fork", "b.txt", b"b\n")
        assert (await _push(tmp_path / "fork", "HEAD:refs/heads/idea"))[0] == 0
        await world.endpoint.settle()
        (moved,) = receiver.named("pull_request", "synchronize")
        assert (moved.payload["before"], moved.payload["after"]) == (first, second)
        assert moved.payload["repository"]["full_name"] == "octo-org/hello"
        token = await world.mint()
        merged = await world.ask("PUT", f"{HOME}/pulls/1/merge", token, {"sha": second})
        assert merged.status_code == 200, merged.text


async def test_a_public_repository_is_cloned_without_a_credential_and_takes_no_push(tmp_path):
    async with hub(FORKED) as world:
        copy = tmp_path / "copy"
        url = f"{world.endpoint.url}/octo-org/hello.git"
        assert (await plain_git("clone", "--quiet", url, str(copy))).code == 0
        await _commit(copy, "a", b"a")
        assert (await _push(copy, "HEAD:refs/heads/x"))[0] != 0


async def test_updating_the_branch_merges_the_base_into_it_and_is_not_for_apps():
    async with hub() as world:
        token = await world.mint()
        pull = await world.pull(token)
        other = await world.commit({"other": "x"}, parent=await world.tip(), token=token)
        await world.advance("main", other, token)
        path = f"{HOME}/pulls/1/update-branch"
        assert (await world.ask("PUT", path, token, {})).status_code == 403
        stale = await world.ask("PUT", path, "octo-dev", {"expected_head_sha": other})
        assert stale.status_code == 422
        done = await world.ask("PUT", path, "octo-dev", {"expected_head_sha": pull["head"]["sha"]})
        assert done.status_code == 202
        head = (await world.ask("GET", f"{HOME}/pulls/1", token)).json()["head"]["sha"]
        commit = (await world.ask("GET", f"{HOME}/commits/{head}", token)).json()
        assert [one["sha"] for one in commit["parents"]] == [pull["head"]["sha"], other]
