"""The git in memory answers as git does, question by question, on random histories of commits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bot.custody.git import git
from bot.custody.mirror import RAW_DIFF
from tests.histories.memory_git import MemoryGit

NAMES = ("a.py", "b.py", "lib/c.py", "lib/deep/d.py", ".github/workflows/ci.yml")


def grown(seed: int) -> tuple[MemoryGit, list[str]]:
    """A store with a dozen commits: chains, forks and merges."""
    draw, store = random.Random(seed), MemoryGit()
    commits: list[str] = []
    texts: dict[str, dict[str, str]] = {}
    for number in range(12):
        parents = draw.sample(commits[-5:], min(len(commits), draw.choice([1, 1, 1, 2]))) if commits else []
        files = dict(texts[parents[0]]) if parents else {"a.py": "0\n"}
        for name in draw.sample(NAMES, 2):
            if name in files and draw.random() < 0.3 and len(files) > 1:
                del files[name]
            else:
                files[name] = f"{draw.randrange(3)}\n"
        commit = store.commit(files, parents, f"Commit {number}", 1_800_000_000 + number)
        commits.append(commit)
        texts[commit] = files
    return store, commits


@pytest.mark.parametrize("seed", range(3))
async def test_it_answers_as_git_does(seed: int, tmp_path: Path):
    store, commits = grown(seed)
    home = tmp_path / "real.git"
    await git(["init", "--quiet", "--bare", str(home)], git_dir=None)
    for sha, (kind, data) in store.objects.items():
        written = await git(["hash-object", "-w", "-t", kind, "--stdin"], git_dir=home, stdin=data)
        assert written.stdout.decode().strip() == sha
    draw = random.Random(seed)
    for _ in range(12):
        one, other = draw.sample(commits, 2)
        asked = (
            ("merge-base", "--is-ancestor", one, other),
            ("rev-parse", "--verify", f"{one}^{{tree}}"),
            ("cat-file", "-t", one),
            (*RAW_DIFF, one, other),
            ("ls-tree", "-r", "-z", "--full-tree", one),
        )
        for question in asked:
            real = await git(question, git_dir=home, ok=frozenset(range(256)))
            mine = store.run(question)
            assert (mine.code, mine.stdout) == (real.code, real.stdout), question
        listed = await git(["rev-list", f"{one}..{other}"], git_dir=home)
        assert set(store.run(["rev-list", f"{one}..{other}"]).stdout.split()) == set(listed.stdout.split())
        await same_merge(store, home, one, other)


async def same_merge(store: MemoryGit, home: Path, one: str, other: str) -> None:
    """Where there is one best merge base, git and we merge alike, conflicts included."""
    bases = await git(["merge-base", "--all", one, other], git_dir=home, ok=frozenset({0, 1}))
    if len(bases.stdout.split()) != 1:
        return
    assert store.run(["merge-base", one, other]).stdout == bases.stdout
    real = await git(["merge-tree", "--write-tree", "--no-messages", one, other], git_dir=home, ok=frozenset({0, 1}))
    mine = store.run(["merge-tree", "--write-tree", "--no-messages", one, other])
    assert mine.code == real.code
    if real.code == 0:
        assert mine.stdout == real.stdout
