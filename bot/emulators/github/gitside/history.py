"""Questions about history: ancestry, differences, and the three-way merge."""

from __future__ import annotations

from dataclasses import dataclass

from bot.emulators.github.gitside.bare import Bare
from bot.emulators.github.gitside.commits import Draft, Identity, read_commit, write_commit

_NONE = frozenset({0, 1, 128})
_STATUS = {"A": "added", "D": "removed", "M": "modified", "T": "changed", "R": "renamed", "C": "copied"}
_PATCH_LIMIT = 500_000


@dataclass(frozen=True, slots=True)
class FileChange:
    status: str
    path: str
    previous: str | None
    sha: str
    additions: int
    deletions: int
    patch: str | None


async def merge_base(bare: Bare, left: str, right: str) -> str | None:
    told = await bare.run("merge-base", left, right, ok=_NONE)
    return told.stdout.decode().split("\n", 1)[0].strip() or None


async def is_ancestor(bare: Bare, older: str, newer: str) -> bool:
    return (await bare.run("merge-base", "--is-ancestor", older, newer, ok=_NONE)).code == 0


async def between(bare: Bare, base: str, head: str) -> list[str]:
    """Commits of `head` that `base` lacks, oldest first."""
    listing = await bare.text("rev-list", "--reverse", "--topo-order", f"{base}..{head}")
    return listing.split()


async def merged_tree(bare: Bare, ours: str, theirs: str) -> str | None:
    """The tree of a real three-way merge, None on conflict or without common history."""
    told = await bare.run("merge-tree", "--write-tree", ours, theirs, ok=_NONE)
    return told.stdout.decode().split("\n", 1)[0].strip() if told.code == 0 else None


async def replay(bare: Bare, commit_sha: str, onto: str, committer: Identity) -> str | None:
    """Cherry-pick one commit onto another; None on conflict.

    git 2.39 cannot name a merge base for merge-tree, so a throwaway commit gives `onto`'s tree the right parent.
    """
    commit = await read_commit(bare, commit_sha)
    target = await read_commit(bare, onto)
    throwaway = Draft(target.tree, commit.parents[:1], "base of a replay\n", committer, committer)
    tree = await merged_tree(bare, await write_commit(bare, throwaway), commit_sha)
    if tree is None:
        return None
    return await write_commit(bare, Draft(tree, (onto,), commit.message, commit.author, committer))


async def patch_id(bare: Bare, base: str, head: str) -> str:
    """Equal for two ranges that make the same textual change."""
    diff = (await bare.run("diff-tree", "-p", "--no-renames", base, head)).stdout
    return (await bare.run("patch-id", "--stable", stdin=diff)).stdout.decode().split(" ")[0]


async def diff_text(bare: Bare, base: str, head: str) -> bytes:
    return (await bare.run("diff-tree", "-r", "-p", "-M", "--no-ext-diff", "--no-textconv", base, head)).stdout


async def changes(bare: Bare, base: str, head: str) -> list[FileChange]:
    """The files that differ between two trees, with counts and patches where GitHub would show them."""
    raw = (await bare.run("diff-tree", "-r", "-M", "--raw", "-z", "--no-abbrev", base, head)).stdout
    counted = (await bare.run("diff-tree", "-r", "-M", "--numstat", "-z", base, head)).stdout
    entries = _raw_entries(raw.split(b"\0"))
    counts = _counts(counted.split(b"\0"))
    patches = _patches(await diff_text(bare, base, head))
    found = []
    position = 0
    for (code, sha, previous, path), (added, deleted) in zip(entries, counts, strict=False):
        patch = patches[position] if position < len(patches) else None
        position += 2 if code == "T" else 1  # a change of type is printed as a removal and an addition
        found.append(FileChange(_STATUS.get(code, "changed"), path, previous, sha, added, deleted, patch))
    return found


async def touched_workflows(bare: Bare, new: str, *known: str) -> str | None:
    """The first workflow file that commits new to the repository create or change, if any."""
    exclude = known or ("--branches", "--tags")
    told = await bare.text("rev-list", new, "--not", *exclude, "--", ".github/workflows")
    for sha in told.split():
        names = await bare.run(
            "diff-tree", "--root", "-r", "-m", "--name-only", "--no-commit-id", "-z", sha, "--", ".github/workflows"
        )
        first = names.stdout.split(b"\0")[0].decode("utf-8", "replace")
        if first:
            return first
    return None


def _raw_entries(parts: list[bytes]) -> list[tuple[str, str, str | None, str]]:
    found: list[tuple[str, str, str | None, str]] = []
    index = 0
    while index < len(parts) and parts[index].startswith(b":"):
        _, _, old, new, code = parts[index].decode().split(" ")
        letter = code[0]
        names = [part.decode("utf-8", "surrogateescape") for part in parts[index + 1 : index + 3]]
        sha = old if letter == "D" else new
        if letter in "RC":
            found.append((letter, sha, names[0], names[1]))
            index += 3
        else:
            found.append((letter, sha, None, names[0]))
            index += 2
    return found


def _counts(parts: list[bytes]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    index = 0
    while index < len(parts) and parts[index].count(b"\t") >= 2:
        added, deleted, path = parts[index].split(b"\t", 2)
        found.append((_number(added), _number(deleted)))
        index += 1 if path else 3
    return found


def _number(text: bytes) -> int:
    return 0 if text == b"-" else int(text)


def _patches(diff: bytes) -> list[str | None]:
    found: list[str | None] = []
    for chunk in (b"\n" + diff).split(b"\ndiff --git ")[1:]:
        _, marker, hunks = chunk.partition(b"\n@@ ")
        if not marker or len(hunks) > _PATCH_LIMIT:
            found.append(None)
        else:
            found.append("@@ " + hunks.decode("utf-8", "replace").rstrip("\n"))
    return found
