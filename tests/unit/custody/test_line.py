"""There and back: a tree into a sandbox, work done in it, the change out again."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.custody.faults import DamagedResult, ForbiddenPath, OverLimit, TreeMismatch
from bot.custody.importer import capture, populate
from bot.custody.mirror import Mirror
from bot.custody.result import Limits
from bot.custody.script import script
from bot.domain.change import Change
from bot.domain.ids import CommitId, RepositoryId, TreeId
from bot.providers.sandbox.port import CommandResult
from tests.unit.custody.local import Clone, LocalSandbox

FILES = {
    "a.py": "a\n",
    "src/deep/b.py": "b\n",
    "crlf.txt": "x\r\n",
    ".gitattributes": "*.txt text eol=lf\n* export-ignore ident filter=evil\n",
    ".gitignore": "*.log\nbuild/\n",
    "kept.log": "tracked though ignored\n",
    "caf\u00e9 \t.txt": "odd\n",
    "empty": "",
    "id": "$Id$\n",
}


class Bench:
    """One base commit, populated."""

    def __init__(self, mirror: Mirror, sandbox: LocalSandbox, base: CommitId, tree: TreeId) -> None:
        self.mirror = mirror
        self.sandbox = sandbox
        self.base = base
        self.tree = tree
        self.work = sandbox.work

    def write(self, path: str, content: str | bytes = "new\n") -> None:
        target = self.work / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    async def run(self, command: str) -> str:
        result = await self.sandbox.run(command, timeout_seconds=30)
        assert result.exit_code == 0, result.stderr
        return result.stdout.strip()

    async def capture(self, limits: Limits | None = None) -> Change:
        return await capture(self.mirror, self.sandbox, self.base, limits=limits)

    async def changes(self) -> dict[str, str]:
        return {path.path: path.kind for path in (await self.capture()).paths}


async def make_bench(mirror: Mirror, sandbox: LocalSandbox, clone: Clone) -> Bench:
    clone.write(FILES)
    (clone.path / "run.sh").write_text("#!/bin/sh\n")
    (clone.path / "run.sh").chmod(0o755)
    (clone.path / "link").symlink_to("src/deep")
    (clone.path / "dangling").symlink_to("nowhere")
    clone.git("-c", "filter.evil.clean=cat", "add", "-A", "-f")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor/sub")
    clone.git("commit", "-q", "-m", "base")
    base = await mirror.from_directory(clone.path)
    tree = await mirror.tree_of(base)
    await populate(mirror, sandbox, tree)
    return Bench(mirror, sandbox, base, tree)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Bench]:
    """Made once; every test works on a copy."""
    root = tmp_path_factory.mktemp("line")
    mirror = Mirror(root / "mirrors", RepositoryId(42))
    return root, asyncio.run(make_bench(mirror, LocalSandbox(root / "sandbox"), Clone(root / "clone")))


@pytest.fixture
def bench(template: tuple[Path, Bench], tmp_path: Path) -> Bench:
    root, made = template
    for name in ("mirrors", "sandbox"):
        shutil.copytree(root / name, tmp_path / name, symlinks=True)
    mirror = Mirror(tmp_path / "mirrors", RepositoryId(42))
    return Bench(mirror, LocalSandbox(tmp_path / "sandbox"), made.base, made.tree)


async def test_files_modes_and_links_stand_as_committed(bench: Bench) -> None:
    blobs = {entry.path: entry for entry in await bench.mirror.entries(bench.tree)}
    assert (bench.work / "caf\u00e9 \t.txt").read_text() == "odd\n"
    assert (bench.work / "id").read_text() == "$Id$\n"
    assert (bench.work / "crlf.txt").read_bytes() == await bench.mirror.blob(blobs["crlf.txt"].blob)
    assert os.access(bench.work / "run.sh", os.X_OK)
    assert not os.access(bench.work / "a.py", os.X_OK)
    assert (bench.work / "link").readlink() == Path("src/deep")
    assert list((bench.work / "vendor/sub").iterdir()) == []


async def test_the_repository_inside_is_fresh_and_clean(bench: Bench) -> None:
    assert await bench.run("git rev-parse HEAD^{tree}") == bench.tree
    assert await bench.run("git rev-list --count --all") == "1"
    bench.write("a.py")
    bench.write("__pycache__/x.pyc")
    status = await bench.run(
        "git status --porcelain -- a.py __pycache__; git -c core.quotepath=off diff --stat -- a.py"
    )
    assert status.splitlines()[0].strip() == "M a.py"
    assert "__pycache__" not in status


async def test_untouched_it_is_the_empty_change(bench: Bench) -> None:
    change = await bench.capture()
    assert change.empty
    assert change.paths == ()


async def test_what_was_done_comes_back(bench: Bench) -> None:
    bench.write("a.py", "changed\n")
    bench.write("src/new/c.py")
    (bench.work / "src/deep/b.py").unlink()
    (bench.work / "run.sh").chmod(0o644)
    (bench.work / "empty").chmod(0o755)
    bench.write("kept.log", "edited\n")
    (bench.work / "dangling").unlink()
    (bench.work / "dangling").symlink_to("a.py")
    change = await bench.capture()
    assert {path.path: path.kind for path in change.paths} == {
        "a.py": "modified",
        "src/new/c.py": "added",
        "src/deep/b.py": "deleted",
        "run.sh": "modified",
        "empty": "modified",
        "kept.log": "modified",
        "dangling": "modified",
    }
    entries = {entry.path: entry for entry in await bench.mirror.entries(change.tree)}
    assert await bench.mirror.blob(entries["a.py"].blob) == b"changed\n"
    assert entries["vendor/sub"].blob == "1" * 40
    assert change.base == bench.base
    assert change.base_tree == bench.tree


async def test_a_second_capture_sees_edits_of_the_same_length_made_at_once(bench: Bench) -> None:
    for text in ("aaaa", "bbbb", "cccc", "dddd"):
        bench.write("a.py", text)
        bench.write("fresh.py", text)
        change = await bench.capture()
        contents = {path.path: path.new.blob for path in change.paths if path.new}
        assert await bench.mirror.blobs(contents.values()) == {contents["a.py"]: text.encode()}


async def test_junk_and_ignored_files_stay_behind(bench: Bench) -> None:
    for path in (
        "node_modules/x/i.js",
        "a/__pycache__/m.pyc",
        ".venv/bin/py",
        "x.log",
        "build/out.bin",
        "m.pyc",
        ".coverage",
    ):
        bench.write(path)
    assert await bench.changes() == {}


async def test_the_repositorys_own_ignore_rules_are_read_as_they_are_now(bench: Bench) -> None:
    bench.write(".gitignore", "*.tmp\n")
    bench.write("x.tmp")
    bench.write("x.log")
    assert await bench.changes() == {".gitignore": "modified", "x.log": "added"}


@pytest.mark.parametrize(
    "command",
    [
        "git add -A",
        "git add -A && git commit -q -m work",
        "git checkout -q -b other && git add -A && git commit -q -m work",
        "rm -rf .git",
        "rm -rf .git && git init -q",
        "echo '*' > .git/info/exclude",
        "rm -rf .git && echo garbage > .git",
        "git config core.fsmonitor false && git config core.excludesFile /etc/passwd",
    ],
)
async def test_whatever_is_done_to_the_repository_inside_the_files_count(bench: Bench, command: str) -> None:
    bench.write("new.py")
    bench.write("a.py", "changed\n")
    await bench.run(command)
    assert await bench.changes() == {"new.py": "added", "a.py": "modified"}


async def test_an_ignored_file_that_was_added_on_purpose_comes_along(bench: Bench) -> None:
    bench.write("needed.log")
    await bench.run("git add -f needed.log")
    assert await bench.changes() == {"needed.log": "added"}


async def test_a_file_turned_directory_and_a_directory_turned_link(bench: Bench) -> None:
    (bench.work / "a.py").unlink()
    bench.write("a.py/inner.py")
    (bench.work / "src/deep/b.py").unlink()
    (bench.work / "src/deep").rmdir()
    bench.write("moved/b.py", "b\n")
    (bench.work / "src/deep").symlink_to("../moved")
    assert await bench.changes() == {
        "a.py": "deleted",
        "a.py/inner.py": "added",
        "moved/b.py": "added",
        "src/deep": "added",
        "src/deep/b.py": "deleted",
    }


async def test_a_tree_taken_out_goes_into_another_sandbox(bench: Bench, tmp_path: Path) -> None:
    bench.write("a.py", "changed\n")
    change = await bench.capture()
    other = LocalSandbox(tmp_path / "other")
    await populate(bench.mirror, other, change.tree)
    assert (other.work / "a.py").read_text() == "changed\n"
    again = await capture(bench.mirror, other, bench.base)
    assert again == change


async def test_populating_again_leaves_nothing_of_before(bench: Bench) -> None:
    bench.write("left/over.py")
    bench.write("__pycache__/x.pyc")
    (bench.work / "to-etc").symlink_to("/etc")
    await populate(bench.mirror, bench.sandbox, bench.tree)
    assert not (bench.work / "left").exists()
    assert not (bench.work / "__pycache__").exists()
    assert (await bench.capture()).empty


async def test_without_git_inside_the_files_still_cross(mirror: Mirror, clone: Clone, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "cat"):
        (tools / name).symlink_to(f"/bin/{name}")
    (tools / "python3").symlink_to("/usr/bin/python3")
    sandbox = LocalSandbox(tmp_path / "bare", path=os.fspath(tools))
    bench = await make_bench(mirror, sandbox, clone)
    assert not (bench.work / ".git").exists()
    bench.write("new.py")
    bench.write("node_modules/x.js")
    bench.write("a/__pycache__/m.pyc")
    (bench.work / "pointer").symlink_to("src")
    assert await bench.changes() == {"new.py": "added", "pointer": "added"}


async def test_a_repository_inside_the_repository_is_refused(bench: Bench) -> None:
    await bench.run(
        "git init -q sub && cd sub && touch x && git add x && git -c user.name=a -c user.email=b commit -q -m x"
    )
    with pytest.raises(ForbiddenPath, match="nested_repository") as caught:
        await bench.capture()
    assert caught.value.path == "sub/"


async def test_files_put_under_a_submodule_are_refused(bench: Bench) -> None:
    bench.write("vendor/sub/x.py")
    with pytest.raises(ForbiddenPath, match="inside_submodule"):
        await bench.capture()


async def test_a_pipe_in_the_place_of_a_file_is_refused(bench: Bench) -> None:
    (bench.work / "a.py").unlink()
    os.mkfifo(bench.work / "a.py")
    with pytest.raises(ForbiddenPath, match="special_file"):
        await bench.capture()


async def test_a_work_directory_that_was_removed_is_an_emptied_one(bench: Bench) -> None:
    shutil.rmtree(bench.work)
    with pytest.raises(DamagedResult, match="emptied") as caught:
        await bench.capture()
    assert "Traceback" not in str(caught.value)


async def test_too_much_is_refused_before_it_is_sent(bench: Bench) -> None:
    for number in range(5):
        bench.write(f"big{number}", b"x" * 900)
    with pytest.raises(OverLimit, match="total_size") as caught:
        await bench.capture(Limits(total_bytes=2000))
    assert caught.value.path == "big2"
    with pytest.raises(OverLimit, match="file_size"):
        await bench.capture(Limits(file_bytes=800))


async def test_a_giant_is_refused_without_being_read(bench: Bench) -> None:
    with (bench.work / "giant").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OverLimit, match="file_size"):
        await bench.capture()


async def test_a_name_that_is_not_utf8_is_refused(bench: Bench) -> None:
    os.close(os.open(os.fsencode(bench.work) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    with pytest.raises(ForbiddenPath, match="path_not_utf8"):
        await bench.capture()


async def test_an_unreadable_answer_is_damage(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        CommandResult(0, "{}", "", 0.1),
        CommandResult(1, "", "boom", 0.1),
        CommandResult(0, "", "", 9, timed_out=True),
    ]

    class Lying(LocalSandbox):
        async def run(self, command: str, **options) -> CommandResult:
            return answers.pop(0)

    lying = Lying(bench.sandbox.root)
    (bench.sandbox.root / ".pullwright/result").unlink(missing_ok=True)
    for _ in range(3):
        with pytest.raises(DamagedResult):
            await capture(bench.mirror, lying, bench.base)
    answers += [CommandResult(0, text, "", 0.1) for text in ('{"tree": "x"}', "[]", "no json")]
    with pytest.raises(TreeMismatch):
        await populate(bench.mirror, lying, bench.tree)
    for _ in range(2):
        with pytest.raises(DamagedResult):
            await populate(bench.mirror, lying, bench.tree)


async def test_a_disk_that_differs_from_the_tree_is_refused(bench: Bench) -> None:
    class Tampering(LocalSandbox):
        async def write(self, path: str, data: bytes) -> None:
            await super().write(path, data.replace(b"a\n", b"e\n") if "part-" in path else data)

    with pytest.raises(TreeMismatch, match="tree_on_disk"):
        await populate(bench.mirror, Tampering(bench.sandbox.root), bench.tree)


async def test_a_base_that_carries_dot_git_is_not_worked_on(
    mirror: Mirror, sandbox: LocalSandbox, clone: Clone
) -> None:
    clone.commit({"a": "1"})
    blob = (await mirror.write_blobs([b"evil"]))[0]
    inner = clone.git("mktree", "-z", "--missing", data=f"100644 blob {blob}\tconfig\0".encode())
    outer = clone.git("mktree", "-z", "--missing", data=f"040000 tree {inner}\tGIT~1\0".encode())
    for tree in (inner, outer):
        await _copy(mirror, clone, tree)
    with pytest.raises(ForbiddenPath, match="dot_git"):
        await populate(mirror, sandbox, TreeId(outer))


async def _copy(mirror: Mirror, clone: Clone, tree: str) -> None:
    loose = Path("objects") / tree[:2] / tree[2:]
    target = mirror.git_dir / loose
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes((clone.path / ".git" / loose).read_bytes())


def test_the_script_is_the_same_bytes_every_time() -> None:
    first = script()
    script.cache_clear()
    assert script() == first


def test_a_python_of_another_version_compiles_the_script_itself(tmp_path: Path) -> None:
    def run(**spoiled: str) -> int:
        file = tmp_path / "script.py"
        text = script().decode()
        for name, value in spoiled.items():
            text = re.sub(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
        file.write_text(text, "utf-8")
        words = ["capture", str(tmp_path), str(tmp_path), "tree", "a" * 40]
        return subprocess.run(
            [sys.executable, "-I", "-S", str(file), *words], capture_output=True, check=False
        ).returncode

    assert run() == run(MAGIC="b'other'") == run(MAGIC="b'other'", COMPILED="{}") == 3
    assert run(COMPILED="{}") == 1
