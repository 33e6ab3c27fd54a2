"""The first-parent history of a clone as facts: what each commit says and what it changes. Nothing is checked out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

from bot.custody import raw
from bot.custody.faults import UpstreamFault
from bot.custody.git import git
from bot.custody.mirror import RAW_DIFF, Mirror
from bot.domain.change import ChangedPath, CommitFacts
from bot.domain.ids import CommitId

_AT_ONCE = 32
_NO_HEAD = 128
_ID = re.compile(rb"[0-9a-f]{40}")

Compared = tuple[tuple[ChangedPath, ...], int]


async def walk(mirror: Mirror, most: int) -> AsyncIterator[CommitFacts]:
    """At most so many commits from HEAD, the newest first, each compared with its first parent. Raises UpstreamFault without a HEAD."""
    args = ("log", "--first-parent", f"--max-count={most}", "-z", "--format=%H%n%P%n%B", "HEAD", "--")
    listed = await git(args, git_dir=mirror.git_dir, ok=frozenset({0, _NO_HEAD}))
    if listed.code:
        raise UpstreamFault("commit_absent", detail="there is no commit")
    commits = [tuple(one.split("\n", 2)) for one in listed.stdout.decode("utf-8", "replace").split("\0") if one]
    for begin in range(0, len(commits), _AT_ONCE):
        some = commits[begin : begin + _AT_ONCE]
        asked = "".join(f"{commit} {parents.split()[0]}\n" for commit, parents, _ in some if parents)
        out = (await git([*RAW_DIFF, "--numstat", "--stdin"], git_dir=mirror.git_dir, stdin=asked.encode())).stdout
        compared = dict(parse_compared(out))
        for commit, parents, message in some:
            changes, lines = compared.get(CommitId(commit), ((), 0))
            parent = CommitId(parents.split()[0]) if parents else None
            yield CommitFacts(CommitId(commit), parent, message, changes, lines)


def parse_compared(out: bytes) -> Iterator[tuple[CommitId, Compared]]:
    """`diff-tree --stdin -z --raw --numstat`: for each commit with a change its paths, and how many lines came and went."""
    commit, found, lines = b"", b"", 0
    fields = iter(out.split(b"\0"))
    for field in fields:
        if field.startswith(b":"):
            found += field + b"\0" + next(fields) + b"\0"
        elif _ID.fullmatch(field):
            if commit:
                yield CommitId(commit.decode()), (raw.parse_raw_diff(found), lines)
            commit, found, lines = field, b"", 0
        elif field:
            lines += sum(int(count) for count in field.split(b"\t", 2)[:2] if count != b"-")
    if commit:
        yield CommitId(commit.decode()), (raw.parse_raw_diff(found), lines)
