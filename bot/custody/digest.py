"""The change digest (design §7): what a reviewer approves, and what anybody can compute again with git and sha256sum."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.custody.faults import UpstreamFault, sha256_fault
from bot.custody.git import GitError, git
from bot.custody.mirror import RAW_DIFF, SHA256_DIGITS, Mirror
from bot.custody.upstream import local_url
from bot.domain.change import ChangeDigest
from bot.domain.ids import CommitId, Digest, RepositoryId, is_full_object_id

VERSION = "pullwright-change-v1"
_NO_NUMBER = RepositoryId(0)


def digest_of(base_ref: str, raw_diff: bytes) -> Digest:
    """The digest of a raw comparison made for a branch named `base_ref`."""
    return Digest(hashlib.sha256(f"{VERSION}\0{base_ref}\0".encode() + raw_diff).hexdigest())


async def change_digest(mirror: Mirror, base_ref: str, base: CommitId, head: CommitId) -> ChangeDigest:
    """The digest of what `head` brings to the branch `base_ref`, whose tip is `base`; both are in the mirror."""
    merge_base = await mirror.merge_base(base, head)
    old, new = await mirror.tree_of(merge_base), await mirror.tree_of(head)
    value = digest_of(base_ref, await mirror.raw_diff(old, new))
    return ChangeDigest(value, base_ref, merge_base, head, old, new)


async def digest_of_directory(directory: Path, base: str, head: str, *, base_ref: str) -> ChangeDigest:
    """The digest between two revisions of a clone, or a directory in one. Its config, hooks and work tree play no part.

    Raises UpstreamFault.
    """
    async with borrowed(root_of(directory)) as mirror:
        return await change_digest(mirror, base_ref, await _commit(mirror, base), await _commit(mirror, head))


@asynccontextmanager
async def borrowed(directory: Path, number: RepositoryId = _NO_NUMBER) -> AsyncIterator[Mirror]:
    """A store of our own that borrows a clone's objects and refs, so that its config is never read; what is written goes with it."""
    git_dir = git_dir_of(directory)
    with TemporaryDirectory(prefix="digest-") as fresh:
        mirror = Mirror(Path(fresh), number)
        mirror.open()
        (mirror.git_dir / "objects/info/alternates").write_text(f"{git_dir / 'objects'}\n")
        if (git_dir / "shallow").is_file():
            (mirror.git_dir / "shallow").write_bytes((git_dir / "shallow").read_bytes())
        lines = sorted(await _refs(mirror, directory), key=lambda line: line[41:])
        refs = [line.replace("\t", " ") for line in lines if line[41:].startswith("refs/") and "^{}" not in line]
        (mirror.git_dir / "packed-refs").write_text("".join(f"{ref}\n" for ref in refs), "utf-8", "surrogateescape")
        head = next((line[:40] for line in lines if line[41:] == "HEAD"), None)
        if head:
            (mirror.git_dir / "HEAD").write_text(f"{head}\n")
        yield mirror


async def _refs(mirror: Mirror, directory: Path) -> list[str]:
    try:
        listing = await git(["ls-remote", "--", local_url(directory)], git_dir=mirror.git_dir, protocols="file")
    except GitError as error:
        raise UpstreamFault("unreadable", detail=error.stderr.strip()) from None
    lines = listing.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if any(line[40:41] != "\t" for line in lines):
        raise sha256_fault()
    return lines


def root_of(directory: Path) -> Path:
    """Where the clone begins that the directory stands in; the directory itself when it stands in none."""
    inside = directory.resolve()
    return next((place for place in (inside, *inside.parents) if is_clone(place)), directory)


def is_clone(place: Path) -> bool:
    """Whether a repository begins here: `.git` stands in it, or it is a bare one itself."""
    return (place / ".git").exists() or all((place / part).exists() for part in ("HEAD", "objects", "refs"))


def git_dir_of(directory: Path) -> Path:
    """Where a clone keeps its objects: itself when bare, `.git`, or what a work tree's `.git` file leads to."""
    dot = directory / ".git"
    if dot.is_file():
        dot = (directory / dot.read_text().removeprefix("gitdir:").strip()).resolve()
        common = dot / "commondir"
        dot = (dot / common.read_text().strip()).resolve() if common.is_file() else dot
    found = dot if dot.is_dir() else directory.resolve()
    if not (found / "objects").is_dir():
        raise UpstreamFault("not_a_repository", detail=f"{directory} is no git repository")
    return found.resolve()


async def _commit(mirror: Mirror, revision: str) -> CommitId:
    try:
        result = await git(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"], git_dir=mirror.git_dir
        )
    except GitError:
        if len(revision) == SHA256_DIGITS and is_full_object_id(revision):
            raise sha256_fault() from None
        raise UpstreamFault("commit_absent", detail=f"{revision} is no commit here") from None
    return CommitId(result.stdout.decode("ascii").strip())


def shell_line(base: str, head: str, *, base_ref: str) -> str:
    """The line with which anybody recomputes the digest in a clone, with nothing but a shell, git and sha256sum."""
    old = f'"$(git --no-replace-objects merge-base {shlex.quote(base)} {shlex.quote(head)})^{{tree}}"'
    new = shlex.quote(f"{head}^{{tree}}")
    diff = shlex.join(["git", "--no-replace-objects", *RAW_DIFF])
    return f"{{ printf '{VERSION}\\0%s\\0' {shlex.quote(base_ref)}; {diff} {old} {new}; }} | sha256sum"
