"""Git in memory: the plumbing that the stand-in and the mirror ask for, on real object ids. `test_memory_git.py` holds it against git.

A process per question costs ten milliseconds; ten thousand histories ask some millions of questions.
Files differ as wholes: two sides that change one file in two ways are a conflict, so histories change whole files.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.custody.faults import UpstreamFault
from bot.custody.git import GitError, GitResult
from bot.custody.mirror import Mirror
from bot.custody.upstream import Upstream
from bot.domain.ids import CommitId, RepositoryId, TreeId
from bot.emulators.github.gitside.bare import ZERO, Bare

Files = dict[str, tuple[str, str]]
"""Path to mode and blob."""


@dataclass
class MemoryGit:
    """One store of objects, refs and index files; `run` answers like the git command line."""

    objects: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    indexes: dict[str, Files] = field(default_factory=dict)
    _files: dict[str, Files] = field(default_factory=dict)

    # objects

    def write(self, kind: str, data: bytes) -> str:
        sha = hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
        self.objects[sha] = (kind, data)
        return sha

    def tree(self, files: Files) -> str:
        """Write the tree that holds these files."""
        inside: dict[str, Files] = {}
        entries: list[tuple[str, str, str]] = []
        for path, (mode, sha) in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                inside.setdefault(name, {})[rest] = (mode, sha)
            else:
                entries.append((name, mode, sha))
        entries += [(name, "40000", self.tree(below)) for name, below in inside.items()]
        entries.sort(key=lambda entry: entry[0] + ("/" if entry[1] == "40000" else ""))
        sha = self.write("tree", b"".join(f"{m} {n}\0".encode() + bytes.fromhex(s) for n, m, s in entries))
        self._files[sha] = dict(sorted(files.items()))
        return sha

    def files(self, treeish: str) -> Files:
        tree = self.tree_of(treeish)
        if tree not in self._files:
            found: Files = {}
            for mode, name, sha in self._entries(tree):
                if mode == "40000":
                    found |= {f"{name}/{path}": entry for path, entry in self.files(sha).items()}
                else:
                    found[name] = (mode, sha)
            self._files[tree] = found
        return self._files[tree]

    def _entries(self, tree: str) -> Iterable[tuple[str, str, str]]:
        data = self.objects[tree][1]
        while data:
            head, _, rest = data.partition(b"\0")
            mode, _, name = head.decode().partition(" ")
            yield mode, name, rest[:20].hex()
            data = rest[20:]

    def tree_of(self, name: str) -> str:
        sha = self.resolve(name)
        kind, data = self.objects[sha]
        return data[5:45].decode() if kind == "commit" else sha

    def parents(self, commit: str) -> list[str]:
        head = self.objects[commit][1].partition(b"\n\n")[0].decode("utf-8", "replace")
        return [line[7:] for line in head.split("\n") if line.startswith("parent ")]

    def resolve(self, name: str) -> str:
        name = re.sub(r"\^\{\w+\}$", "", name)
        found = self.refs.get(name, name)
        if found not in self.objects:
            raise KeyError(name)
        return found

    def commit(self, files: Mapping[str, str], parents: Sequence[str], message: str, moment: int) -> str:
        """A commit of these texts."""
        blobs: Files = {path: ("100644", self.write("blob", text.encode())) for path, text in files.items()}
        who = f"Somebody <somebody@users.noreply.github.com> {moment} +0000"
        lines = [f"tree {self.tree(blobs)}", *(f"parent {p}" for p in parents), f"author {who}", f"committer {who}"]
        return self.write("commit", ("\n".join(lines) + f"\n\n{message}\n").encode())

    # history

    def ancestors(self, *commits: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(commits)
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += self.parents(one)
        return seen

    def merge_base(self, one: str, other: str) -> str | None:
        shared = self.ancestors(one) & self.ancestors(other)
        best = [c for c in shared if not any(c != d and c in self.ancestors(d) for d in shared)]
        return max(best, key=self._date) if best else None

    def _date(self, commit: str) -> tuple[int, str]:
        found = re.search(rb"\ncommitter .*> (\d+) ", self.objects[commit][1])
        return int(found[1]) if found else 0, commit

    def between(self, new: Sequence[str], old: Sequence[str]) -> list[str]:
        """Commits of `new` without those of `old`, children first."""
        left = self.ancestors(*new) - (self.ancestors(*old) if old else set())
        return sorted(left, key=lambda commit: len(self.ancestors(commit)), reverse=True)

    def merge_tree(self, one: str, other: str) -> str | None:
        base = self.merge_base(one, other)
        if base is None:
            return None
        old, ours, theirs = self.files(base), self.files(one), self.files(other)
        merged: Files = {}
        for path in {*ours, *theirs}:
            was, mine, yours = old.get(path), ours.get(path), theirs.get(path)
            if yours in (mine, was):
                chosen = mine
            elif mine == was:
                chosen = yours
            else:
                return None
            if chosen is not None:
                merged[path] = chosen
        return self.tree(merged)

    def raw_diff(self, one: str, other: str) -> bytes:
        old, new = self.files(one), self.files(other)
        out = bytearray()
        for path in sorted({*old, *new}, key=str.encode):
            was, now = old.get(path), new.get(path)
            if was != now:
                letter = "A" if was is None else "D" if now is None else "M"
                left, right = was or ("000000", ZERO), now or ("000000", ZERO)
                out += f":{left[0]} {right[0]} {left[1]} {right[1]} {letter}\0{path}\0".encode()
        return bytes(out)

    def patch(self, one: str, other: str) -> str:
        old, new = self.files(one), self.files(other)
        out: list[str] = []
        for path in sorted({*old, *new}):
            if old.get(path) != new.get(path):
                was, now = self._lines(old.get(path)), self._lines(new.get(path))
                diff = difflib.unified_diff(was, now, f"a/{path}", f"b/{path}", lineterm="")
                out += [f"diff --git a/{path} b/{path}", *diff]
        return "\n".join(out)

    def _lines(self, entry: tuple[str, str] | None) -> list[str]:
        return self.objects[entry[1]][1].decode("utf-8", "replace").splitlines() if entry else []

    # the command line

    def run(self, args: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None) -> GitResult:
        args = [arg for arg in args if arg != "--literal-pathspecs"]
        try:
            answer = _COMMANDS[args[0]](self, args[1:], stdin, (env or {}).get("GIT_INDEX_FILE", ""))
        except KeyError as missing:
            return GitResult(128, b"", f"fatal: {missing}".encode())
        if isinstance(answer, int):
            return GitResult(answer, b"", b"")
        return GitResult(0, answer.encode("utf-8", "surrogateescape") if isinstance(answer, str) else answer, b"")


Answer = str | bytes | int
_Command = Callable[[MemoryGit, Sequence[str], bytes, str], Answer]


def _rev_parse(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    name = args[-1]
    sha = git.tree_of(name) if name.endswith("^{tree}") else git.resolve(name)
    if name.endswith("^{commit}") and git.objects[sha][0] != "commit":
        return 1
    return f"{sha}\n"


def _cat_file(git: MemoryGit, args: Sequence[str], stdin: bytes, _index: str) -> Answer:
    if args[0] == "-t":
        return f"{git.objects[args[1]][0]}\n"
    if not args[0].startswith("--"):
        return git.objects[git.resolve(args[1])][1]
    out = bytearray()
    for name in stdin.decode().split():
        if name not in git.objects:
            out += f"{name} missing\n".encode()
            continue
        kind, data = git.objects[name]
        if args[0] == "--batch-check=%(objecttype)":
            out += f"{kind}\n".encode()
        else:
            out += f"{name} {kind} {len(data)}\n".encode()
            out += data + b"\n" if args[0] == "--batch" else b""
    return bytes(out)


def _ls_tree(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    names = list(args)
    wanted = names.pop() if "--" in names else None
    treeish = next(name for name in names if not name.startswith("-"))
    out = ""
    for path, (mode, sha) in git.files(treeish).items():
        if wanted is None or path == wanted:
            size = f" {len(git.objects[sha][1]):>7}" if "--long" in names else ""
            out += f"{mode} blob {sha}{size}\t{path}\0"
    return out


def _merge_base(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    if args[0] == "--is-ancestor":
        return "" if git.resolve(args[1]) in git.ancestors(git.resolve(args[2])) else 1
    found = git.merge_base(git.resolve(args[0]), git.resolve(args[1]))
    return f"{found}\n" if found else 1


def _rev_list(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    names = [arg for arg in args if not arg.startswith("--") or arg in {"--not", "--", "--branches"}]
    path = names[names.index("--") + 1] if "--" in names else None
    names = names[: names.index("--")] if path else names
    if ".." in names[0]:
        old, _, new = names[0].partition("..")
        found = git.between([git.resolve(new)], [git.resolve(old)])
    else:
        cut = names.index("--not") if "--not" in names else len(names)
        known = [
            sha
            for ref, sha in git.refs.items()
            if "--branches" in names and ref.startswith(("refs/heads/", "refs/tags/"))
        ]
        known += [git.resolve(name) for name in names[cut + 1 :] if not name.startswith("--")]
        found = git.between([git.resolve(name) for name in names[:cut]], known)
    if path:
        found = [commit for commit in found if _touches(git, commit, path)]
    return "".join(f"{sha}\n" for sha in (reversed(found) if "--reverse" in args else found))


def _touches(git: MemoryGit, commit: str, path: str) -> bool:
    def below(treeish: str) -> Files:
        return {name: entry for name, entry in git.files(treeish).items() if name.startswith(f"{path}/")}

    return all(below(parent) != below(commit) for parent in git.parents(commit)) and bool(below(commit))


def _diff_tree(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    if "--name-only" in args:
        under = args[args.index("--") + 1]
        return "".join(f"{name}\0" for name in git.files(args[args.index("--") - 1]) if name.startswith(under))
    one, other = [arg for arg in args if not arg.startswith("-")]
    raw = git.raw_diff(one, other)
    if "--raw" in args:
        return raw
    if "--numstat" in args:
        return b"".join(b"1\t1\t" + path + b"\0" for path in raw.split(b"\0")[1::2])
    return git.patch(one, other)


def _patch_id(_git: MemoryGit, _args: Sequence[str], stdin: bytes, _index: str) -> Answer:
    kept = [line for line in stdin.decode().splitlines() if not line.startswith("@@")]
    return f"{hashlib.sha1(chr(10).join(kept).encode(), usedforsecurity=False).hexdigest()} {ZERO}\n" if kept else ""


def _update_ref(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    names = [arg for arg in args if arg != "--no-deref"]
    if names[0] == "-d":
        git.refs.pop(names[1], None)
        return ""
    name, new, *old = names
    if old and git.refs.get(name, ZERO) != old[0]:
        return 128
    if any(ref.startswith(f"{name}/") or name.startswith(f"{ref}/") for ref in git.refs):
        return 128
    git.refs[name] = git.resolve(new)
    return ""


def _update_index(git: MemoryGit, _args: Sequence[str], stdin: bytes, index: str) -> Answer:
    files = git.indexes.setdefault(index, {})
    for line in filter(None, stdin.decode("utf-8", "surrogateescape").split("\0")):
        meta, _, path = line.partition("\t")
        mode, sha = meta.split(" ")[:2]
        if mode == "0":
            files.pop(path, None)
        else:
            files[path] = (mode, sha)
    return ""


def _read_tree(git: MemoryGit, args: Sequence[str], _stdin: bytes, index: str) -> Answer:
    git.indexes[index] = {} if args[0] == "--empty" else dict(git.files(args[0]))
    return ""


def _merge_tree(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    one, other = (git.resolve(name) for name in args if not name.startswith("-"))
    found = git.merge_tree(one, other)
    return f"{found}\n" if found else 1


def _listed(git: MemoryGit, args: Sequence[str], _stdin: bytes, _index: str) -> Answer:
    return "".join(f"{sha} {name}\n" for name, sha in sorted(git.refs.items()) if name.startswith(args[-1].rstrip("/")))


_COMMANDS: dict[str, _Command] = {
    "rev-parse": _rev_parse,
    "cat-file": _cat_file,
    "hash-object": lambda git, args, stdin, _: f"{git.write(args[args.index('-t') + 1], stdin)}\n",
    "ls-tree": _ls_tree,
    "for-each-ref": _listed,
    "show-ref": lambda git, args, _, __: f"{git.refs[args[-1]]}\n",
    "check-ref-format": lambda _, args, __, ___: (
        "" if re.fullmatch(r"refs/(?:(?!\.\.|@\{|//)[^\s~^:?*\[\\])+", args[-1]) else 1
    ),
    "update-ref": _update_ref,
    "symbolic-ref": lambda _, __, ___, ____: "",
    "merge-base": _merge_base,
    "rev-list": _rev_list,
    "merge-tree": _merge_tree,
    "diff-tree": _diff_tree,
    "patch-id": _patch_id,
    "read-tree": _read_tree,
    "ls-files": lambda git, _, __, index: "".join(f"{path}\0" for path in git.indexes[index]),
    "update-index": _update_index,
    "write-tree": lambda git, _, __, index: f"{git.tree(git.indexes.get(index, {}))}\n",
}


class MemoryBare(Bare):
    """A repository of the stand-in whose git is in memory."""

    def __init__(self, path: Path, git: MemoryGit) -> None:
        super().__init__(path)
        self._memory = git

    async def run(
        self,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: frozenset[int] = frozenset({0}),
    ) -> GitResult:
        return _checked(args, self._memory.run(args, stdin, env), ok)

    async def initialise(self, default_branch: str) -> None:
        """There is nothing to make."""


class MemoryMirror(Mirror):
    """The product's mirror on the same objects: fetching copies nothing, but refuses a ref that moved meanwhile."""

    def __init__(self, root: Path, repository: RepositoryId, git: MemoryGit) -> None:
        super().__init__(root, repository)
        self._memory = git

    async def _git(
        self,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: frozenset[int] = frozenset({0}),
    ) -> GitResult:
        return _checked(args, self._memory.run(args, stdin, env), ok)

    async def human_diff(self, old: TreeId, new: TreeId, *, limit: int = 200_000) -> str:
        """Close to what git shows: it is only compared with another one."""
        lines: list[str] = []
        for change in await self.diff(old, new):
            before, after = [
                (await self.blob(side.blob)).decode().splitlines() if side else [] for side in (change.old, change.new)
            ]
            lines.append(f"diff --git a/{change.path} b/{change.path}")
            lines += list(difflib.unified_diff(before, after, lineterm=""))[2:]
        return "\n".join(lines)[:limit]

    async def fetch(
        self, upstream: Upstream, *, commits: Sequence[CommitId] = (), refs: Mapping[str, CommitId] | None = None
    ) -> None:
        for commit in commits:
            if commit not in self._memory.objects:
                raise UpstreamFault("commit_absent", detail=commit)
        for name, commit in (refs or {}).items():
            got = self._memory.refs.get(name)
            if got != commit:
                raise UpstreamFault("ref_moved", name, f"is {got}, not {commit}")


def _checked(args: Sequence[str], result: GitResult, ok: frozenset[int]) -> GitResult:
    if result.code not in ok:
        raise GitError(args, result.code, result.stderr)
    return result
