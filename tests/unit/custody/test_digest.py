from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bot.custody.digest import change_digest, digest_of_directory, shell_line
from bot.custody.faults import UpstreamFault
from bot.custody.mirror import Mirror
from bot.domain.ids import CommitId
from tests.unit.custody.local import Clone


def with_shell(clone: Clone, line: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=clone.path,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return done.stdout.split()[0]


class Story:
    """A base branch `main` and a branch `work` that changes files of every kind."""

    def __init__(self, clone: Clone) -> None:
        self.clone = clone
        self.root = clone.commit({"a.py": "if x:\n    y()\n", "b.bin": b"\0\1", "keep": "k\n"})
        clone.git("checkout", "-q", "-b", "work")
        clone.write({"a.py": "if x:\n    z()\n", "odd \t name": "o", "b.bin": b"\0\2"})
        (clone.path / "link").symlink_to("a.py")
        (clone.path / "keep").chmod(0o755)
        self.head = clone.commit()

    async def digest(self, base: CommitId | None = None, head: CommitId | None = None, base_ref: str = "main") -> str:
        found = await digest_of_directory(self.clone.path, base or self.root, head or self.head, base_ref=base_ref)
        return found.value


@pytest.fixture
def story(clone: Clone) -> Story:
    return Story(clone)


@pytest.mark.parametrize("base_ref", ["main", "release/1.0", "a%sb\\n", "it's", "0"])
async def test_anybody_recomputes_it_with_one_shell_line(story: Story, base_ref: str) -> None:
    line = shell_line(story.root, story.head, base_ref=base_ref)
    assert with_shell(story.clone, line) == await story.digest(base_ref=base_ref)
    assert "\n" not in line


async def test_the_mirror_and_the_clone_agree(story: Story, mirror: Mirror) -> None:
    await mirror.from_directory(story.clone.path, story.head)
    found = await change_digest(mirror, "main", story.root, story.head)
    assert found == await digest_of_directory(story.clone.path, "main", "work", base_ref="main")
    assert found.merge_base == story.root
    assert found.head == story.head


async def test_names_revisions_bare_clones_and_work_trees_are_understood(story: Story, tmp_path: Path) -> None:
    wanted = await story.digest()
    clone = story.clone
    clone.git("clone", "-q", "--bare", os.fspath(clone.path), os.fspath(tmp_path / "bare.git"))
    clone.git("worktree", "add", "-q", os.fspath(tmp_path / "tree"), "main")
    for directory, base, head in [
        (clone.path, "main", "HEAD"),
        (clone.path, "work~1", "work"),
        (tmp_path / "bare.git", "main", "work"),
        (tmp_path / "tree", "HEAD", "work"),
    ]:
        assert (await digest_of_directory(directory, base, head, base_ref="main")).value == wanted
    with pytest.raises(UpstreamFault, match="commit_absent"):
        await digest_of_directory(clone.path, "main", "--all", base_ref="main")
    with pytest.raises(UpstreamFault, match="not_a_repository"):
        await digest_of_directory(tmp_path, "main", "work", base_ref="main")


@pytest.mark.parametrize(
    "setting",
    [
        ("diff.noprefix", "true"),
        ("diff.renames", "copies"),
        ("diff.context", "9"),
        ("diff.algorithm", "patience"),
        ("core.abbrev", "5"),
        ("core.quotePath", "false"),
        ("diff.ignoreSubmodules", "all"),
        ("diff.relative", "true"),
        ("diff.orderFile", "order"),
        ("core.fileMode", "false"),
        ("diff.external", "false"),
    ],
)
async def test_no_configuration_of_the_clone_changes_it(story: Story, setting: tuple[str, str]) -> None:
    clone = story.clone
    clone.write({"order": "z*\n"})
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},sub")
    clone.git("commit", "-q", "-m", "a submodule pointer")
    head = clone.head()
    wanted = await story.digest(head=head)
    clone.git("config", *setting)
    assert await story.digest(head=head) == wanted
    assert with_shell(clone, shell_line("main", "work", base_ref="main")) == wanted


async def test_attributes_and_replace_refs_change_nothing(story: Story) -> None:
    clone = story.clone
    wanted = await story.digest()
    evil = clone.commit({"a.py": "evil\n"})
    clone.git("replace", story.head, evil)
    clone.write({".git/info/attributes": "* -diff binary filter=x\n"})
    assert await story.digest() == wanted
    assert with_shell(clone, shell_line(story.root, story.head, base_ref="main")) == wanted


ODD = {
    b"\xff\xfe": b"no utf-8",
    b"line\nfeed": b"1",
    b'q"uote\ttab': b"1",
    b"l" * 255: b"long",
    b"/".join([b"d" * 100] * 6): b"deep",
    b"Case": b"1",
    b"case": b"2",
    "\u00e9".encode(): b"composed",
    "e\u0301".encode(): b"decomposed",
    b"--option": b"1",
    b":(glob)*": b"1",
    b"$(touch x); `y`": b"1",
    b"empty": b"",
    b".gitattributes": b"* text eol=crlf filter=x ident export-ignore working-tree-encoding=UTF-16\n",
    b"crlf": b"$Id$\r\n",
}


async def test_names_that_only_bytes_can_tell_are_told_alike(clone: Clone) -> None:
    root = clone.plumb({b"a": ("100644", b"a")})
    parent = root
    trees = [
        {name: ("100644", data) for name, data in ODD.items()},
        {**dict.fromkeys(ODD, ("100755", b"x")), b"dangling": ("120000", b"nowhere"), b"circle": ("120000", b"circle")},
        {b"circle": ("100644", b"a file now"), b"Case": ("120000", b"/etc/passwd"), b"sub": ("160000", b"")},
    ]
    seen = set()
    for tree in trees:
        head = clone.plumb(tree, parent)
        wanted = (await digest_of_directory(clone.path, root, head, base_ref="main")).value
        assert with_shell(clone, shell_line(root, head, base_ref="main")) == wanted
        parent = head
        seen.add(wanted)
    assert len(seen) == len(trees)


async def test_any_history_has_the_merge_base_that_git_finds(clone: Clone) -> None:
    file = ("100644", b"x")
    root = clone.plumb({b"f": file})
    one, two = clone.plumb({b"f": file, b"1": file}, root), clone.plumb({b"f": file, b"2": file}, root)
    left = clone.plumb({b"f": file, b"1": file, b"2": file}, one, two)
    right = clone.plumb({b"f": file, b"1": file, b"2": file, b"r": file}, two, one)
    for base, head in ((left, right), (right, left), (root, left), (left, root), (left, left)):
        found = await digest_of_directory(clone.path, base, head, base_ref="main")
        assert with_shell(clone, shell_line(base, head, base_ref="main")) == found.value
    with pytest.raises(UpstreamFault, match="no_common_history"):
        await digest_of_directory(clone.path, root, clone.plumb({b"other": file}), base_ref="main")


async def test_a_clone_without_any_branch_and_a_directory_in_one_will_do(clone: Clone) -> None:
    root = clone.plumb({b"f": ("100644", b"x")})
    head = clone.plumb({b"f": ("100644", b"y")}, root)
    assert clone.git("for-each-ref") == ""
    wanted = (await digest_of_directory(clone.path, root, head, base_ref="main")).value
    assert with_shell(clone, shell_line(root, head, base_ref="main")) == wanted
    (clone.path / "in" / "it").mkdir(parents=True)
    assert (await digest_of_directory(clone.path / "in" / "it", root, head, base_ref="main")).value == wanted


@pytest.mark.parametrize("named", [False, True], ids=["by id", "by branch"])
async def test_a_repository_of_sha256_is_refused_in_words(tmp_path: Path, mirror: Mirror, named: bool) -> None:
    clone = Clone(tmp_path / "long", "--object-format=sha256")
    head = clone.plumb({b"f": ("100644", b"x")})
    if named:
        clone.git("update-ref", "refs/heads/main", head)
    revision = "main" if named else head
    with pytest.raises(UpstreamFault, match="only repositories with SHA-1"):
        await digest_of_directory(clone.path, revision, revision, base_ref="main")
    with pytest.raises(UpstreamFault, match="only repositories with SHA-1"):
        await mirror.from_directory(clone.path, revision)


async def test_it_is_stable_when_the_base_moves_elsewhere(story: Story) -> None:
    wanted = await story.digest()
    story.clone.git("checkout", "-q", "main")
    moved = story.clone.commit({"elsewhere": "e\n"})
    assert await story.digest(base=moved) == wanted


async def test_every_mutation_changes_it(story: Story) -> None:
    clone = story.clone
    seen = {await story.digest(), await story.digest(base_ref="other")}
    steps: list[tuple[str, object]] = [
        ("content", lambda: clone.write({"a.py": "if x:\n    zz()\n"})),
        ("dedent", lambda: clone.write({"a.py": "if x:\n    z()\nq()\n"})),
        ("mode", lambda: (clone.path / "a.py").chmod(0o755)),
        ("link", lambda: clone.link("link", "keep")),
        ("binary", lambda: clone.write({"b.bin": b"\0\3"})),
        ("deletion", (clone.path / "keep").unlink),
        ("rename", lambda: (clone.path / "b.bin").rename(clone.path / "c.bin")),
        ("hidden by an attribute", lambda: clone.write({".gitattributes": "* -diff\n", "a.py": "evil\n"})),
    ]
    for count, (_, act) in enumerate(steps, start=3):
        act()  # type: ignore[operator]
        seen.add(await story.digest(head=clone.commit()))
        assert len(seen) == count
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{'3' * 40},sub")
    clone.git("commit", "-q", "-m", "pointer")
    assert await story.digest(head=clone.head()) not in seen
