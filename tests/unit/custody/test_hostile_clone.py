"""Clones and trees made to run something on the worker (shared corpus G01-G23, N05-N07): nothing of theirs is ever run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.custody.digest import digest_of_directory
from bot.custody.faults import UpstreamFault
from bot.custody.git import command, environment
from bot.custody.importer import capture, populate
from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.domain.ids import RepositoryId
from tests.unit.custody.local import Clone, LocalSandbox

Arm = Callable[[Clone, str], None]


def configured(*settings: str) -> Arm:
    def arm(clone: Clone, run: str) -> None:
        for setting in settings:
            name, _, value = setting.partition("=")
            clone.git("config", name, value.replace("RUN", run))

    return arm


def hooks(clone: Clone, run: str) -> None:
    for name in (
        "post-index-change",
        "reference-transaction",
        "pre-receive",
        "post-checkout",
        "pre-push",
        "post-commit",
    ):
        hook = clone.path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{run}\n")
        hook.chmod(0o755)


def include(clone: Clone, run: str) -> None:
    clone.write({"evil.inc": f"[core]\n\tfsmonitor = {run}\n"})
    clone.git("config", "include.path", "../evil.inc")


ARMS: dict[str, Arm] = {
    "G01 fsmonitor": configured("core.fsmonitor=RUN"),
    "G03 hooks": hooks,
    "G04 filter": configured("filter.evil.clean=RUN", "filter.evil.smudge=RUN", "filter.evil.process=RUN"),
    "G06 diff drivers": configured("diff.external=RUN", "diff.evil.textconv=RUN", "diff.evil.command=RUN"),
    "G07 merge driver": configured("merge.evil.driver=RUN"),
    "G08 ssh": configured("core.sshCommand=RUN", "core.gitProxy=RUN"),
    "G09 pager": configured("core.pager=RUN", "pager.diff=RUN", "core.editor=RUN"),
    "G10 credentials": configured("credential.helper=!RUN", "core.askPass=RUN"),
    "G12 include": include,
    "G13 url rewriting": configured("protocol.ext.allow=always", "url.ext::RUN.insteadOf=/"),
    "G14 upload-pack": configured("remote.origin.uploadpack=RUN", "uploadpack.packObjectsHook=RUN"),
    "G16 submodule update": configured("submodule.x.update=!RUN"),
    "G21 the rest": configured("core.alternateRefsCommand=RUN", "alias.ls-remote=!RUN", "tar.tar.command=RUN"),
}
FIRES_ON_STATUS = {"G01 fsmonitor", "G03 hooks", "G04 filter", "G12 include"}


@pytest.mark.parametrize("name", ARMS)
async def test_config_and_hooks_of_a_clone_are_never_obeyed(
    name: str, clone: Clone, mirror: Mirror, sandbox: LocalSandbox, tmp_path: Path
) -> None:
    marker = tmp_path / "fired"
    clone.commit({".gitattributes": "* filter=evil diff=evil merge=evil\n", "a": "1\n"})
    clone.commit({"a": "2\n"})
    ARMS[name](clone, f"touch {marker};cat")
    base = await mirror.from_directory(clone.path)
    await digest_of_directory(clone.path, "HEAD~1", "HEAD", base_ref="main")
    tree = await mirror.tree_of(base)
    await mirror.human_diff(tree, tree)
    await populate(mirror, sandbox, tree)
    assert (await capture(mirror, sandbox, base)).empty
    assert not marker.exists()
    if name in FIRES_ON_STATUS:  # positive control: an ordinary git runs it
        os.utime(clone.path / "a", (1, 1))
        clone.git("status")
        assert marker.exists()


async def test_g16_objects_that_fsck_refuses_do_not_come_in(clone: Clone, mirror: Mirror) -> None:
    clone.commit({".gitmodules": SUBMODULE})
    with pytest.raises(UpstreamFault, match="objects_refused"):
        await mirror.from_directory(clone.path)


async def test_an_old_commit_with_an_odd_time_zone_is_no_attack(clone: Clone, mirror: Mirror) -> None:
    tree = clone.git("rev-parse", f"{clone.commit({'a': '1'})}^{{tree}}")
    odd = f"tree {tree}\nauthor A <a@b> 1 +051800\ncommitter A <a@b> 1 +051800\n\nodd\n"
    commit = clone.git("hash-object", "-w", "-t", "commit", "--literally", "--stdin", data=odd.encode())
    clone.git("update-ref", "refs/heads/odd", commit)
    assert await mirror.from_directory(clone.path, "odd") == commit


SUBMODULE = '[submodule "x"]\n\tpath = x\n\turl = ../x\n\tupdate = !touch fired\n'


async def test_g23_n07_a_replaced_commit_is_still_itself(clone: Clone, mirror: Mirror) -> None:
    good = clone.commit({"a": "good"})
    evil = clone.commit({"a": "evil"})
    clone.git("replace", good, evil)
    assert clone.git("show", f"{good}:a") == "evil", "positive control"
    await mirror.from_directory(clone.path, good)
    assert await mirror.file_at(good, "a") == b"good"


async def test_g22_objects_lent_from_elsewhere_stay_elsewhere(clone: Clone, mirror: Mirror, tmp_path: Path) -> None:
    other = Clone(tmp_path / "other")
    secret = other.commit({"secret": "s"})
    (clone.path / ".git/objects/info/alternates").write_text(f"{other.path}/.git/objects\n")
    base = await mirror.from_directory(clone.path, clone.commit({"a": "1"}))
    assert await mirror.has(base)
    assert not await mirror.has(secret)
    assert not (mirror.git_dir / "objects/info/alternates").exists()


async def test_n05_n06_tampering_inside_is_seen_whatever_git_says(
    clone: Clone, mirror: Mirror, sandbox: LocalSandbox
) -> None:
    base = await mirror.from_directory(clone.path, clone.commit({"a": "1\n", "b": "1\n"}))
    await populate(mirror, sandbox, await mirror.tree_of(base))
    for command_line in (
        "git update-index --skip-worktree a",
        "git update-index --assume-unchanged b",
        "echo c >> .git/info/exclude",
    ):
        assert (await sandbox.run(command_line, timeout_seconds=20)).exit_code == 0
    for name in "abc":
        (sandbox.work / name).write_text("2\n")
    assert (await sandbox.run("git status --porcelain", timeout_seconds=20)).stdout == "", "positive control"
    assert {path.path for path in (await capture(mirror, sandbox, base)).paths} == {"a", "b", "c"}


def test_g25_variables_of_our_own_process_do_not_reach_git(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "LD_PRELOAD", "SECRET"):
        monkeypatch.setenv(name, "evil")
    assert "evil" not in environment().values()
    assert "SECRET" not in environment()


def test_a_token_is_in_the_environment_and_not_among_the_arguments() -> None:
    env = environment(extra=Upstream("https://github.com/a/b", "ghs_secret").environment())
    assert env["GIT_CONFIG_VALUE_0"].startswith("Authorization: Basic ")
    assert not any("ghs_secret" in part or env["GIT_CONFIG_VALUE_0"] in part for part in command(None, ["fetch"]))
    assert Upstream("https://github.com/a/b").environment() == {}


async def test_a_store_of_another_repository_is_never_read(tmp_path: Path, clone: Clone) -> None:
    one = Mirror(tmp_path / "m", RepositoryId(1))
    commit = await one.from_directory(clone.path, clone.commit({"a": "1"}))
    two = Mirror(tmp_path / "m", RepositoryId(2))
    two.open()
    with pytest.raises(Exception, match="rev-parse"):
        await two.tree_of(commit)
