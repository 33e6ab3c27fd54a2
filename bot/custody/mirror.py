"""One bare store per repository: what the worker knows of it, in git's own objects.

Its config is written here, it has no hooks, no remotes and no work tree, and nothing is ever pruned from it.
Refs are plain files written by rename, so that a killed process leaves no lock behind.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TypeVar

from bot.custody import raw
from bot.custody.faults import DamagedResult, OverLimit, UpstreamFault, sha256_fault
from bot.custody.git import GitError, GitResult, git, isolated_index, spawn
from bot.custody.grammar import visible
from bot.custody.upstream import Upstream, local_url
from bot.domain.change import ChangedPath, TreeEntry
from bot.domain.errors import Transient
from bot.domain.ids import BlobId, CommitId, RepositoryId, TreeId, is_full_object_id

EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

_HARMLESS = (
    "badDate",
    "badDateOverflow",
    "badEmail",
    "badName",
    "badTimezone",
    "missingEmail",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "missingTaggerEntry",
    "multipleAuthors",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
)
"""Defects that old histories of well-known projects have; everything else that fsck finds is refused."""

_CONFIG = f"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
[attr]
\ttree = {EMPTY_TREE}
[gc]
\tauto = 0
[fetch "fsck"]
""" + "".join(f"\t{defect} = ignore\n" for defect in _HARMLESS)

RAW_DIFF = (
    "diff-tree",
    "-r",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    "--full-index",
    "--ignore-submodules=none",
)
"""The comparison that the change digest is made of (design §7)."""

_NAMED_LIKE_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})", re.IGNORECASE)
_GONE = re.compile(r"not our ref|couldn't find remote ref|unadvertised object|no such remote ref", re.IGNORECASE)
_REF = re.compile(r"refs/(?:heads|pull|tags)/[^\s:+*^~?\[\\]+")
_CACHED_TREES = 4
SHA256_DIGITS = 64
_FOR_PEOPLE = (
    "diff-tree",
    "-r",
    "-p",
    "-M",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=none",
)

Id = TypeVar("Id", bound=str)


@dataclass(frozen=True, slots=True)
class Author:
    """Who a commit made here is by."""

    name: str
    email: str


class Mirror:
    """The bare store of one repository, in a directory named by the repository's number."""

    def __init__(self, root: Path, repository: RepositoryId) -> None:
        self.repository = repository
        self.git_dir = root / str(int(repository))
        self._trees: dict[CommitId, TreeId] = {}
        self._entries: dict[TreeId, tuple[TreeEntry, ...]] = {}

    def open(self) -> None:
        """Make the store if it is not there; the config is ours again in any case."""
        if not (self.git_dir / "HEAD").exists():
            self.git_dir.parent.mkdir(parents=True, exist_ok=True)
            fresh = Path(mkdtemp(prefix="new-", dir=self.git_dir.parent))
            for part in ("objects/info", "objects/pack", "refs/custody"):
                (fresh / part).mkdir(parents=True)
            (fresh / "config").write_text(_CONFIG)
            (fresh / "HEAD").write_text("ref: refs/heads/none\n")
            try:
                fresh.rename(self.git_dir)
            except OSError:  # another process was first
                shutil.rmtree(fresh)
        if (self.git_dir / "config").read_text() != _CONFIG:
            _write(self.git_dir / "config", _CONFIG)

    async def _git(
        self,
        *args: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: frozenset[int] = frozenset({0}),
    ) -> GitResult:
        return await git(args, git_dir=self.git_dir, stdin=stdin, env=env, ok=ok)

    async def _line(self, *args: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        return (await self._git(*args, stdin=stdin, env=env)).stdout.decode("ascii").strip()

    # fetching

    async def has(self, commit: CommitId) -> bool:
        """Whether the commit, with all its trees and blobs, is here."""
        _whole(commit)
        if not (self.git_dir / "refs/custody" / f"c-{commit}").exists():
            return False
        result = await self._git("cat-file", "-t", commit, ok=frozenset({0, 128}))
        return result.stdout == b"commit\n"

    async def fetch(
        self, upstream: Upstream, *, commits: Sequence[CommitId] = (), refs: Mapping[str, CommitId] | None = None
    ) -> None:
        """Bring these commits here by full id; a ref is fetched too and must point at the id it is given with.

        Raises UpstreamFault when the upstream lacks a commit, a ref points elsewhere, or a ref is named like a commit;
        Transient when it cannot answer.
        """
        self.open()
        wanted = [_whole(commit) for commit in dict.fromkeys(commits) if not await self.has(commit)]
        named = dict(refs or {})
        if not wanted and not named:
            return
        for name, commit in named.items():
            if not _REF.fullmatch(name):
                raise UpstreamFault("ref_name", name)
            _whole(commit)
        await self.refuse_disguised_refs(upstream)
        nonce = secrets.token_hex(8)
        incoming = {name: f"refs/incoming/{nonce}-{index}" for index, name in enumerate(named)}
        try:
            await self._fetch(upstream, [*wanted, *(f"+{name}:{target}" for name, target in incoming.items())])
            for name, commit in named.items():
                got = await self._line("rev-parse", "--verify", incoming[name])
                if got != commit:
                    raise UpstreamFault("ref_moved", name, f"is {got}, not {commit}")
        finally:
            for target in incoming.values():
                (self.git_dir / target).unlink(missing_ok=True)
        for commit in [*wanted, *named.values()]:
            await self._keep(commit)

    async def reachable(self, upstream: Upstream, commit: CommitId) -> bool:
        """Whether a branch or tag of the upstream leads to the commit; a fork network serves others by id too."""
        into = f"refs/incoming/{secrets.token_hex(8)}"
        try:
            await self._fetch(upstream, [f"+refs/{kind}/*:{into}/{kind}/*" for kind in ("heads", "tags")])
            args = ("--count=1", "--format=%(objectname)", f"--contains={_whole(commit)}", into)
            return bool(await self._line("for-each-ref", *args))
        finally:
            shutil.rmtree(self.git_dir / into, ignore_errors=True)

    async def _fetch(self, upstream: Upstream, refspecs: Sequence[str], *options: str) -> None:
        args = ["fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"]
        await self._ask(upstream, [*args, "--quiet", *options, "--", upstream.url, *refspecs])

    async def _ask(self, upstream: Upstream, args: Sequence[str]) -> bytes:
        """A call that goes over the network."""
        try:
            result = await git(
                args,
                git_dir=self.git_dir,
                env=upstream.environment(),
                protocols=upstream.protocols,
                timeout_seconds=600,
            )
        except GitError as error:
            if "fsck error" in error.stderr:
                raise UpstreamFault("objects_refused", detail=error.stderr.strip()) from None
            if _GONE.search(error.stderr):
                raise UpstreamFault("commit_absent", detail=error.stderr.strip()) from None
            raise Transient(f"git {args[0]}: {error.stderr.strip()}") from None
        return result.stdout

    async def refuse_disguised_refs(self, upstream: Upstream) -> None:
        """A branch or tag named like a commit fools every tool that takes a name or an id (specs/security.md §2.6).

        Raises UpstreamFault for one, Transient when the upstream cannot answer.
        """
        listing = await self._ask(upstream, ["ls-remote", "--heads", "--tags", "--refs", "--", upstream.url])
        for line in listing.decode("utf-8", "replace").splitlines():
            name = line.partition("\t")[2]
            if _NAMED_LIKE_ID.fullmatch(name.removeprefix("refs/heads/").removeprefix("refs/tags/")):
                raise UpstreamFault("ref_named_like_commit", name)

    async def _keep(self, commit: CommitId) -> None:
        if await self._line("cat-file", "-t", commit) != "commit":
            raise UpstreamFault("not_a_commit", detail=commit)
        _write(self.git_dir / "refs/custody" / f"c-{commit}", f"{commit}\n")

    async def from_directory(self, path: Path, ref: str = "HEAD", *, alone: bool = False) -> CommitId:
        """Import the commit that `ref` names in a local clone, `alone`: without history. Files on disk and config are not looked at."""
        self.open()
        if ref.startswith("-"):
            raise UpstreamFault("ref_name", ref)
        local = Upstream(local_url(path), protocols="file")
        listing = await self._ask(local, ["ls-remote", "--", local.url])
        lines = (line.partition("\t") for line in listing.decode("utf-8", "replace").splitlines())
        known = {name: identifier for identifier, _, name in lines}
        names = (ref, f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}", f"refs/remotes/{ref}")
        found = ref if is_full_object_id(ref) else next((known[name] for name in names if name in known), None)
        if found is None:
            raise UpstreamFault("commit_absent", detail=f"{ref} is no branch or tag of {path.name}")
        if len(found) == SHA256_DIGITS:
            raise sha256_fault()
        commit = CommitId(found)
        if not await self.has(commit):
            await self._fetch(local, [commit], "--depth=1" if alone else "--update-shallow")
            await self._keep(commit)
        return commit

    # reading

    async def tree_of(self, commit: CommitId) -> TreeId:
        """The tree of a commit that is here."""
        if commit not in self._trees:
            self._trees[commit] = TreeId(await self._line("rev-parse", "--verify", f"{_whole(commit)}^{{tree}}"))
        return self._trees[commit]

    async def merge_base(self, one: CommitId, other: CommitId) -> CommitId:
        """The best common ancestor. Raises UpstreamFault when there is none."""
        result = await self._git("merge-base", _whole(one), _whole(other), ok=frozenset({0, 1}))
        if result.code:
            raise UpstreamFault("no_common_history", detail=f"{one} and {other}")
        return CommitId(result.stdout.decode("ascii").strip())

    async def merge_tree(self, base: CommitId, head: CommitId) -> TreeId | None:
        """The tree a merge of the two commits has; None when they conflict."""
        args = ("merge-tree", "--write-tree", "--no-messages", _whole(base), _whole(head))
        result = await self._git(*args, ok=frozenset({0, 1}))
        return None if result.code else TreeId(result.stdout.split(b"\n", 1)[0].decode("ascii"))

    async def raw_diff(self, old: TreeId, new: TreeId) -> bytes:
        """The raw comparison of two trees, byte for byte what the digest covers."""
        return (await self._git(*RAW_DIFF, _whole(old), _whole(new))).stdout

    async def diff(self, old: TreeId, new: TreeId) -> tuple[ChangedPath, ...]:
        """The raw comparison of two trees as values, sorted by path."""
        changed = raw.parse_raw_diff(await self.raw_diff(old, new))
        return tuple(sorted(changed, key=lambda change: raw.octets(change.path)))

    async def human_diff(self, old: TreeId, new: TreeId, *, limit: int = 200_000) -> str:
        """The comparison as people read it: hidden characters shown, no attribute obeyed, cut after `limit` bytes."""
        async with spawn([*_FOR_PEOPLE, _whole(old), _whole(new)], git_dir=self.git_dir) as process:
            if process.stdout is None:
                raise DamagedResult("no_output")
            data = bytearray()
            while len(data) <= limit and (part := await process.stdout.read(limit + 1 - len(data))):
                data += part
        shown = visible(bytes(data[:limit]).decode("utf-8", "replace"))
        return shown + f"\n[cut after {limit:,} bytes]\n" if len(data) > limit else shown

    async def listing(self, tree: TreeId) -> bytes:
        """`ls-tree -r -z` of a tree, as git prints it."""
        return (await self._git("ls-tree", "-r", "-z", "--full-tree", _whole(tree))).stdout

    async def entries(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Every file, symlink and submodule pointer of a tree."""
        if tree not in self._entries:
            found = raw.parse_listing(await self.listing(tree))
            while len(self._entries) >= _CACHED_TREES:
                self._entries.pop(next(iter(self._entries)))
            self._entries[tree] = found
        return self._entries[tree]

    async def sizes(self, blobs: Iterable[BlobId]) -> dict[BlobId, int]:
        """How long each of these blobs is."""
        asked = "".join(f"{_whole(blob)}\n" for blob in blobs).encode()
        out = (await self._git("cat-file", "--batch-check", "--buffer", stdin=asked)).stdout.decode("ascii")
        words = [line.split(" ") for line in out.splitlines()]
        for line in words:
            if len(line) != 3 or line[1] != "blob":
                raise DamagedResult("object_missing", detail=" ".join(line))
        return {BlobId(line[0]): int(line[2]) for line in words}

    async def batch(self, blobs: Iterable[BlobId]) -> bytes:
        """`cat-file --batch` of these blobs, as git prints it."""
        asked = "".join(f"{_whole(blob)}\n" for blob in blobs).encode()
        return (await self._git("cat-file", "--batch", "--buffer", stdin=asked)).stdout

    async def blobs(self, blobs: Iterable[BlobId]) -> dict[BlobId, bytes]:
        """The contents of these blobs, by one process."""
        return dict(raw.parse_batch(await self.batch(dict.fromkeys(blobs))))

    async def blob(self, blob: BlobId) -> bytes:
        """The content of one blob."""
        return (await self.blobs([blob]))[blob]

    async def file_at(self, commit: CommitId, path: str, *, limit: int = 5_000_000) -> bytes | None:
        """The bytes of a regular file of a commit; None when there is none at this path. OverLimit above `limit`."""
        args = ("ls-tree", "-z", "--full-tree", _whole(commit), "--", path)
        found = raw.parse_listing((await self._git("--literal-pathspecs", *args)).stdout)
        entry = next((item for item in found if item.path == path and item.mode.value.startswith("100")), None)
        if entry is None:
            return None
        if (await self.sizes([entry.blob]))[entry.blob] > limit:
            raise OverLimit("file_size", path)
        return await self.blob(entry.blob)

    # writing

    async def write_blobs(self, contents: Sequence[bytes]) -> tuple[BlobId, ...]:
        """Store these bytes, by one process; their ids in the same order."""
        ids = tuple(raw.blob_id(data) for data in contents)
        distinct = dict(zip(ids, contents, strict=True))
        if distinct:
            await self._git("unpack-objects", "-q", stdin=raw.pack_of_blobs(list(distinct.values())))
        return ids

    async def write_tree(self, base: TreeId, *, put: Sequence[TreeEntry] = (), removed: Sequence[str] = ()) -> TreeId:
        """The tree that results from `base` when `removed` are taken out, then `put` are put in. Blobs must be here."""
        with TemporaryDirectory(prefix="index-") as directory:
            env = isolated_index(Path(directory))
            await self._git("read-tree", _whole(base), env=env)
            await self._git("update-index", "-z", "--index-info", stdin=raw.index_lines(removed, put), env=env)
            return TreeId(await self._line("write-tree", env=env))

    async def commit_tree(
        self, tree: TreeId, parents: Sequence[CommitId], *, message: str, author: Author, date: str
    ) -> CommitId:
        """A commit object, fully determined by its arguments. `date` is ISO 8601 with a zone, or `@SECONDS +0000`."""
        who = {"NAME": author.name, "EMAIL": author.email, "DATE": date}
        env = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        args = [part for parent in parents for part in ("-p", _whole(parent))]
        commit = CommitId(await self._line("commit-tree", _whole(tree), *args, stdin=message.encode(), env=env))
        await self._keep(commit)
        return commit


def _whole(identifier: Id) -> Id:
    if not is_full_object_id(identifier):
        raise ValueError(f"not a whole object id: {identifier!r}")
    return identifier


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    fresh.write_text(content)
    fresh.replace(path)
