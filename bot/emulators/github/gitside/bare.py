"""One bare repository: objects and refs, through the product's single door to git."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.custody.git import GitError, GitResult, git, isolated_index

_OK = frozenset({0})
_MAYBE = frozenset({0, 1, 128})
_LONGEST_ARGUMENT = 16_384
_NO_NAME = b"not a name: it holds a zero byte or is too long"
ZERO = "0" * 40


@dataclass(frozen=True, slots=True)
class TreeEntry:
    mode: str
    kind: str
    sha: str
    size: int | None
    path: str


@dataclass(frozen=True, slots=True)
class Placement:
    """One line of a tree to be built; `sha` None removes the path."""

    path: str
    mode: str
    sha: str | None


class Bare:
    """Reads and writes one bare repository. Every method is one or a few git processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def run(
        self,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: frozenset[int] = _OK,
    ) -> GitResult:
        """One git call; a name that no command line can carry is one that git does not know."""
        if any("\0" in arg or len(arg) > _LONGEST_ARGUMENT for arg in args):
            if 128 in ok:
                return GitResult(128, b"", _NO_NAME)
            raise GitError(args[:1], 128, _NO_NAME)
        return await git(args, git_dir=self.path, stdin=stdin, env=env, ok=ok)

    async def text(self, *args: str) -> str:
        return (await self.run(*args)).stdout.decode("utf-8", "replace").strip()

    async def initialise(self, default_branch: str) -> None:
        await git(["init", "--quiet", "--bare", f"--initial-branch={default_branch}", str(self.path)], git_dir=None)

    async def point_head(self, branch: str) -> None:
        await self.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")

    async def resolve(self, revision: str, kind: str = "commit") -> str | None:
        """The full id behind a name, or None. Short ids and names are accepted as GitHub accepts them."""
        if not revision or revision.startswith("-") or any(c in revision for c in "^~: \n@{"):
            return None
        for candidate in _candidates(revision):
            found = await self.run("rev-parse", "--verify", "--quiet", f"{candidate}^{{{kind}}}", ok=_MAYBE)
            if found.code == 0:
                return found.stdout.decode().strip()
        return None

    async def kinds(self, shas: Sequence[str]) -> list[str | None]:
        """The type of each object, None where it is missing."""
        asked = "".join(f"{sha}\n" for sha in shas).encode()
        told = (await self.run("cat-file", "--batch-check=%(objecttype)", stdin=asked)).stdout.decode().splitlines()
        return [line if line in {"blob", "tree", "commit", "tag"} else None for line in told]

    async def kind(self, sha: str) -> str | None:
        return (await self.kinds([sha]))[0] if is_sha(sha) else None

    async def blob(self, sha: str) -> bytes:
        return (await self.run("cat-file", "blob", sha)).stdout

    async def write(self, kind: str, content: bytes) -> str:
        """Store one object. Raises GitError when git finds it malformed."""
        return (await self.run("hash-object", "-w", "-t", kind, "--stdin", stdin=content)).stdout.decode().strip()

    async def tree(self, treeish: str, *, recursive: bool = False) -> list[TreeEntry]:
        flags = ["-r", "-t"] if recursive else []
        listing = (await self.run("ls-tree", "-z", "--long", "--full-tree", *flags, treeish)).stdout
        return [_tree_entry(line) for line in listing.split(b"\0") if line]

    async def at(self, treeish: str, path: str) -> TreeEntry | None:
        listing = (await self.run("ls-tree", "-z", "--long", "--full-tree", treeish, "--", path)).stdout
        entries = [_tree_entry(line) for line in listing.split(b"\0") if line]
        return entries[0] if entries and entries[0].path == path else None

    async def build_tree(self, base: str | None, placements: Sequence[Placement]) -> str:
        """Write the tree that `base` becomes after `placements`; raises GitError on a path git refuses."""
        with tempfile.TemporaryDirectory(prefix="stand-in-index-") as directory:
            env = isolated_index(Path(directory))
            await self.run("read-tree", base or "--empty", env=env)
            present: set[bytes] = set()
            if any(item.sha is None or item.mode == "040000" for item in placements):
                present = set((await self.run("ls-files", "-z", env=env)).stdout.split(b"\0")) - {b""}
            lines = [line for item in placements for line in await self._lines(item, present)]
            stdin = b"".join(line + b"\0" for line in lines)
            await self.run("update-index", "-z", "--index-info", stdin=stdin, env=env)
            return (await self.run("write-tree", env=env)).stdout.decode().strip()

    async def _lines(self, placement: Placement, present: set[bytes]) -> list[bytes]:
        """What `update-index --index-info` must be told for one placement."""
        name = placement.path.encode("utf-8", "surrogateescape")
        if placement.sha is not None and placement.mode != "040000":
            return [f"{placement.mode} {placement.sha}\t".encode() + name]
        covered = {name} if name in present else {path for path in present if path.startswith(name + b"/")}
        if placement.sha is None and not covered:
            raise GitError(["update-index"], 1, b"%s is not in the tree" % name)
        present -= covered
        lines = [f"0 {ZERO}\t".encode() + path for path in sorted(covered)]
        if placement.sha is not None:
            inside = [entry for entry in await self.tree(placement.sha, recursive=True) if entry.kind != "tree"]
            lines += [
                f"{entry.mode} {entry.sha}\t".encode() + name + b"/" + entry.path.encode("utf-8", "surrogateescape")
                for entry in inside
            ]
        return lines

    async def refs(self, prefix: str = "refs/") -> dict[str, str]:
        """Full names to ids of what they point at, sorted by name."""
        listing = await self.text("for-each-ref", "--format=%(objectname) %(refname)", prefix)
        return {name: sha for sha, name in (line.split(" ", 1) for line in listing.splitlines())}

    async def ref(self, name: str) -> str | None:
        found = await self.run("show-ref", "--verify", "--hash", "--", name, ok=_MAYBE)
        return found.stdout.decode().strip() if found.code == 0 else None

    async def acceptable(self, name: str) -> bool:
        return (await self.run("check-ref-format", name, ok=_MAYBE)).code == 0

    async def move(self, name: str, new: str, old: str) -> bool:
        """Compare and swap; False when the ref is not at `old` (ZERO: must not exist) or the name collides."""
        told = await self.run("update-ref", "--no-deref", name, new, old, ok=_MAYBE)
        return told.code == 0

    async def borrow(self, other: Path, ref: str) -> None:
        """Copy the objects behind a ref of another repository on this machine; no ref is moved."""
        fetch = ["fetch", "--quiet", "--no-write-fetch-head", "--no-tags", str(other), ref]
        await git(fetch, git_dir=self.path, protocols="file")

    async def force(self, name: str, new: str) -> None:
        await self.run("update-ref", "--no-deref", name, new)

    async def drop(self, name: str) -> None:
        await self.run("update-ref", "--no-deref", "-d", name, ok=_MAYBE)


def is_sha(text: str) -> bool:
    return len(text) == 40 and all(c in "0123456789abcdef" for c in text)


def _candidates(revision: str) -> tuple[str, ...]:
    if is_sha(revision):
        return (revision,)
    if revision.startswith("refs/") or revision == "HEAD":
        return (revision,)
    return (f"refs/heads/{revision}", f"refs/tags/{revision}", f"refs/{revision}", revision)


def _tree_entry(line: bytes) -> TreeEntry:
    meta, path = line.split(b"\t", 1)
    mode, kind, sha, size = meta.decode().split()
    return TreeEntry(mode, kind, sha, None if size == "-" else int(size), path.decode("utf-8", "surrogateescape"))
