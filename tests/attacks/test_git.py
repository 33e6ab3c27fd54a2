"""Repositories made to run something on the worker, through every trusted-side operation (cases G01-G26)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.custody.digest import digest_of_directory
from bot.custody.export import populate
from bot.custody.faults import ForbiddenPath, LineFault
from bot.custody.git import GitError, environment
from bot.custody.importer import capture
from bot.custody.mirror import Author, Mirror
from bot.custody.upstream import Upstream, local_url
from bot.domain.errors import Transient
from bot.domain.ids import CommitId, RepositoryId
from tests.attacks.conftest import Control
from tests.unit.custody.local import Clone, LocalSandbox

ROOT = Path(__file__).parents[2]


@dataclass
class Trap:
    """A clone that would touch `marker`, or change or show `victim`, if somebody's git believed it."""

    clone: Clone
    marker: Path
    victim: Path
    spare: Path

    @property
    def run(self) -> str:
        return f"touch {self.marker}; cat"

    def config(self, **settings: str) -> None:
        for name, value in settings.items():
            self.clone.git("config", name.replace("__", "."), value)

    def script(self, place: str) -> None:
        path = self.clone.path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{self.run} >/dev/null </dev/null\n")
        path.chmod(0o755)

    def ordinary(self, *args: str, cwd: str = ".", data: bytes = b"", **env: str) -> bytes:
        """What an unsuspecting tool does: git in the work tree."""
        os.utime(self.clone.path / "a", (1, 1))
        settings = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **env}
        done = subprocess.run(
            ["git", *args],
            cwd=self.clone.path / cwd,
            env=settings,
            input=data,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return done.stdout

    @property
    def sprung(self) -> bool:
        return self.marker.exists() or not self.victim.exists() or self.victim.read_text() != "victim\n"

    def reset(self) -> None:
        self.marker.unlink(missing_ok=True)
        self.victim.write_text("victim\n")


Act = Callable[[Trap], object]


@dataclass(frozen=True)
class Case:
    arm: Act
    control: Act


def who() -> tuple[str, ...]:
    return ("-c", "user.name=a", "-c", "user.email=a@b")


def hooks(place: str) -> Act:
    def arm(trap: Trap) -> None:
        for name in (
            "post-index-change",
            "reference-transaction",
            "pre-commit",
            "post-checkout",
            "pre-push",
            "pre-receive",
            "update",
        ):
            trap.script(f"{place}/{name}")

    return arm


def both(*acts: Act) -> Act:
    return lambda trap: [act(trap) for act in acts]


def config(**settings: str) -> Act:
    return lambda trap: trap.config(**{name: value.replace("RUN", trap.run) for name, value in settings.items()})


def program(setting: str, **others: str) -> Act:
    """For settings that name a file to run, not a line for a shell. It stands in `.git`, so that no tree holds it."""

    def arm(trap: Trap) -> None:
        trap.script(".git/program")
        trap.config(**{setting: os.fspath(trap.clone.path / ".git/program")}, **others)

    return arm


def git(*args: str, **options: str) -> Act:
    return lambda trap: trap.ordinary(*args, **options)  # type: ignore[arg-type]


def attributes(trap: Trap) -> None:
    (trap.clone.path / ".git/info").mkdir(exist_ok=True)
    (trap.clone.path / ".git/info/attributes").write_text("* filter=evil diff=evil merge=evil\n")


def conflict(trap: Trap) -> None:
    trap.ordinary(*who(), "checkout", "-q", "-b", "side", "HEAD~1")
    (trap.clone.path / "a").write_text("other\n")
    trap.ordinary(*who(), "commit", "-qam", "other")
    trap.ordinary(*who(), "merge", "main")


def promisor(trap: Trap) -> None:
    blob = trap.clone.git("rev-parse", "HEAD~1:a")
    trap.config(
        remote__o__url=os.fspath(trap.clone.path),
        remote__o__promisor="true",
        remote__o__uploadpack=trap.run,
        extensions__partialClone="o",
        core__repositoryFormatVersion="1",
    )
    (trap.clone.path / ".git/objects" / blob[:2] / blob[2:]).unlink()


def nested(trap: Trap) -> None:
    inner = Clone(trap.clone.path / "inner")
    commit = inner.commit({"x": "1"})
    inner.git("config", "core.fsmonitor", trap.run)
    trap.clone.write({".gitmodules": '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n'})
    trap.clone.git("update-index", "--add", "--cacheinfo", f"160000,{commit},inner")
    trap.clone.git("add", ".gitmodules")
    trap.clone.git("commit", "-qm", "inner")


def bare_inside(trap: Trap) -> None:
    inner = trap.clone.path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", inner], check=True)
    for name, value in (("core.bare", "false"), ("core.worktree", "."), ("core.fsmonitor", trap.run)):
        subprocess.run(["git", f"--git-dir={inner}", "config", name, value], check=True)
    trap.clone.commit(message="a bare repository inside")


def linked(name: str) -> Act:
    def arm(trap: Trap) -> None:
        place = trap.clone.path / ".git" / name
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(trap.victim)

    return arm


def lent(trap: Trap) -> None:
    other = Clone(trap.spare)
    other.commit({"a": "1\n", "secret": "of another\n"})
    (trap.clone.path / ".git/objects/info/alternates").write_text(f"{other.path}/.git/objects\n")


def shows_lent(trap: Trap) -> None:
    other = Clone(trap.spare)
    if trap.ordinary("cat-file", "-p", other.git("rev-parse", "HEAD:secret")) == b"of another\n":
        trap.marker.touch()


def replaced(trap: Trap) -> None:
    trap.clone.git("replace", "HEAD", "HEAD~1")


def shows_replaced(trap: Trap) -> None:
    if trap.ordinary("show", "HEAD:a") == b"1\n":
        trap.marker.touch()


GIT_FILE = "ref: refs/heads/main\n"

CASES: dict[str, Case] = {
    "G01 fsmonitor": Case(config(core__fsmonitor="RUN"), git("status")),
    "G02 hooksPath": Case(both(hooks("hooks"), config(core__hooksPath="hooks")), git("status")),
    "G03 hooks": Case(hooks(".git/hooks"), git("status")),
    "G04 filter": Case(config(filter__evil__clean="RUN", filter__evil__smudge="RUN"), git("status")),
    "G05 filter process": Case(config(filter__evil__process="RUN"), git("status")),
    "G06 external diff": Case(config(diff__external="RUN"), git("diff", "HEAD~1")),
    "G06 textconv": Case(both(attributes, config(diff__evil__textconv="RUN")), git("diff", "HEAD~1")),
    "G06 diff command": Case(config(diff__evil__command="RUN"), git("diff", "HEAD~1")),
    "G07 merge driver": Case(config(merge__evil__driver="RUN"), conflict),
    "G08 ssh": Case(config(core__sshCommand="RUN", remote__o__url="ssh://x/y"), git("fetch", "o")),
    "G08 proxy": Case(program("core.gitProxy", remote__o__url="git://x/y"), git("fetch", "o")),
    "G09 editor and pager": Case(
        config(core__editor="RUN", core__pager="RUN", pager__diff="RUN", sequence__editor="RUN"),
        git(*who(), "commit", "--allow-empty"),
    ),
    "G10 credential helper": Case(
        config(credential__helper="!RUN", core__askPass="RUN"),
        lambda trap: trap.ordinary("credential", "fill", data=b"protocol=https\nhost=x\n\n"),
    ),
    "G11 signing program": Case(
        program("gpg.program", commit__gpgsign="true"), git(*who(), "commit", "--allow-empty", "-m", "x")
    ),
    "G12 include": Case(
        both(
            lambda trap: trap.clone.write({"evil.inc": f"[core]\n\tfsmonitor = {trap.run}\n"}),
            config(include__path="../evil.inc"),
        ),
        git("status"),
    ),
    "G13 rewritten address": Case(
        lambda trap: trap.config(protocol__ext__allow="always", remote__o__url=f"ext::sh -c touch% {trap.marker}"),
        git("fetch", "o"),
    ),
    "G14 upload-pack": Case(
        lambda trap: trap.config(
            remote__o__url=os.fspath(trap.clone.path), remote__o__uploadpack=trap.run, remote__o__receivepack=trap.run
        ),
        git("fetch", "o"),
    ),
    "G15 lazy fetch": Case(promisor, git("log", "-p")),
    "G16 submodule command": Case(
        both(nested, config(submodule__inner__update="!RUN", submodule__inner__url="./inner")),
        git("-c", "protocol.file.allow=always", "submodule", "update", "--init", "--force"),
    ),
    "G17 nested repository": Case(nested, git("status")),
    "G18 bare repository inside": Case(bare_inside, git("status", cwd="bare")),
    "G19 linked message": Case(linked("COMMIT_EDITMSG"), git(*who(), "commit", "--allow-empty", "-m", "x")),
    "G19 linked log": Case(linked("logs/HEAD"), git(*who(), "commit", "--allow-empty", "-m", "x")),
    "G20 work tree elsewhere": Case(
        lambda trap: trap.config(core__worktree=os.fspath(trap.victim.parent)), git("clean", "-fdxq")
    ),
    "G21 alias": Case(config(alias__st="!RUN", core__alternateRefsCommand="RUN", tar__tar__command="RUN"), git("st")),
    "G21 trailer": Case(
        config(trailer__t__key="T", trailer__t__command="RUN"),
        lambda trap: trap.ordinary("interpret-trailers", data=b"x\n\ny\n"),
    ),
    "G21 difftool": Case(config(difftool__t__cmd="RUN"), git("difftool", "-y", "-t", "t", "HEAD~1")),
    "G22 lent objects": Case(lent, shows_lent),
    "G23 replaced commit": Case(replaced, shows_replaced),
}


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    outside = tmp_path / "outside"
    outside.mkdir()
    clone = Clone(tmp_path / "clone")
    clone.commit({".gitattributes": "* filter=evil diff=evil merge=evil\n", "a": "1\n"})
    clone.commit({"a": "2\n"})
    made = Trap(clone, tmp_path / "fired", outside / "victim", tmp_path / "spare")
    made.reset()
    return made


async def every_operation(trap: Trap, root: Path) -> list[object]:
    """All that the worker ever does with a repository. What refuses is as good as what is inert."""
    mirror, said = Mirror(root / "mirrors", RepositoryId(1)), list[object]()

    async def tried(act: Awaitable[object]) -> None:
        try:
            said.append(await act)
        except (LineFault, GitError, Transient, ValueError) as refusal:
            said.append(refusal)

    await tried(mirror.from_directory(trap.clone.path))
    head, before = _heads(trap.clone)
    await tried(mirror.fetch(Upstream(local_url(trap.clone.path), protocols="file"), commits=[head, before]))
    await tried(digest_of_directory(trap.clone.path, before, head, base_ref="main"))
    with suppress(LineFault, GitError):
        old, new = await mirror.tree_of(before), await mirror.tree_of(head)
        for act in (
            mirror.human_diff(old, new),
            mirror.diff(old, new),
            mirror.merge_tree(before, head),
            mirror.merge_base(before, head),
            mirror.listing(new),
        ):
            await tried(act)
        await tried(mirror.file_at(head, "a"))
        await tried(mirror.write_tree(new, removed=["a"]))
        await tried(mirror.commit_tree(new, [head], message="m", author=Author("a", "a@b"), date="@1 +0000"))
        sandbox = LocalSandbox(root / "sandbox")
        await tried(populate(mirror, sandbox, new))
        await tried(capture(mirror, sandbox, head))
    return said


def _heads(clone: Clone) -> tuple[CommitId, CommitId]:
    """Read from the files, because asking git in this clone is what must not be done."""
    head = (clone.path / ".git/refs/heads/main").read_text().strip()
    settings = {
        "PATH": "/usr/bin:/bin",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "HOME": "/nonexistent",
    }
    found = subprocess.run(
        ["git", "-c", "core.fsmonitor=false", f"--git-dir={clone.path}/.git", "rev-parse", f"{head}~1"],
        env=settings,
        capture_output=True,
        check=True,
    )
    return CommitId(head), CommitId(found.stdout.decode().strip())


@pytest.mark.parametrize("name", CASES)
async def test_a_repository_made_to_run_something_runs_nothing_here(
    name: str, trap: Trap, control: Control, tmp_path: Path
):
    case = CASES[name]
    case.arm(trap)
    trap.reset()
    said = await every_operation(trap, tmp_path)
    assert not trap.sprung, said
    case.control(trap)
    control(trap.sprung, "an ordinary git in the clone is taken in")
    if name == "G22 lent objects":
        assert not any("of another" in str(item) for item in said)
    if name == "G23 replaced commit":
        assert b"2\n" in said


async def test_g17_a_repository_nested_in_the_result_is_refused(trap: Trap, control: Control, tmp_path: Path):
    mirror, sandbox = Mirror(tmp_path / "m", RepositoryId(1)), LocalSandbox(tmp_path / "s")
    base = await mirror.from_directory(trap.clone.path)
    await populate(mirror, sandbox, await mirror.tree_of(base))
    await sandbox.run(
        f"git init -q inner && git -C inner config core.fsmonitor 'touch {trap.marker}' && echo 1 > inner/x && git -C inner add x",
        timeout_seconds=20,
    )
    control(trap.marker.exists(), "git in it runs its fsmonitor")
    trap.reset()
    with pytest.raises(ForbiddenPath, match="nested_repository"):
        await capture(mirror, sandbox, base)


async def test_g24_nothing_is_ever_pushed_by_git(trap: Trap, control: Control, tmp_path: Path):
    hooks(".git/hooks")(trap)
    trap.reset()
    trap.ordinary("push", "-q", os.fspath(trap.clone.path), "HEAD:refs/heads/x")
    control(trap.marker.exists(), "a push to a repository on this machine runs its hooks")
    words = re.compile(r"""["'](push|send-pack|receive-pack)["']""")
    assert [path.name for path in (ROOT / "bot/custody").rglob("*.py") if words.search(path.read_text())] == []


async def test_g25_git_variables_of_our_own_process_change_nothing(
    trap: Trap, control: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    evil = {
        "GIT_EXTERNAL_DIFF": trap.run,
        "GIT_SSH_COMMAND": trap.run,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": trap.run,
    }
    trap.ordinary("diff", "HEAD~1", **evil)  # type: ignore[arg-type]
    control(trap.marker.exists(), "they steer an ordinary git")
    trap.reset()
    for name, value in {**evil, "GIT_DIR": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere"}.items():
        monkeypatch.setenv(name, value)
    mirror = Mirror(tmp_path / "m", RepositoryId(1))
    base = await mirror.from_directory(trap.clone.path)
    assert await mirror.file_at(base, "a") == b"2\n"
    assert not trap.sprung
    assert not any(value in environment().values() for value in evil.values() if value != "1")


def test_g26_git_is_started_in_one_module_and_no_shell_by_python(control: Control):
    lint = re.compile(
        r"""shell=True|^\s*(?:import|from) (?:git|dulwich|pygit2)\b|(?:run|Popen|exec|call)\(\s*\[?["']git["']""",
        re.MULTILINE,
    )
    control(
        lint.search("subprocess.run(['git', 'status'])")
        and lint.search("import dulwich")
        and lint.search("f(shell=True)"),
        "the rule finds what it looks for",
    )
    allowed = {"bot/custody/inside/disk.py", "bot/custody/inside/fill.py", "bot/custody/inside/tell.py"}
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "bot").rglob("*.py")
        if lint.search(path.read_text("utf-8")) and "demo/repository" not in str(path)
    }
    assert found <= allowed
