"""Searches the files of a tree in the bare mirror. Nothing is checked out, and no repository code or attribute is obeyed."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from bot.custody import raw
from bot.custody.git import GitError, spawn
from bot.custody.mirror import Mirror
from bot.domain.ids import TreeId

MOST_BYTES = 2_000_000
"""Of git's answer; what comes after is not read."""
MOST_OF_A_FILE = 200
SECONDS = 20.0
_NO_MATCH = 1
_HIT = re.compile(rb"([^\0]+)\0(\d+)\0([^\n]*)\n")


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that matches; `line` is 1-based."""

    path: str
    line: int
    text: str


async def grep(mirror: Mirror, tree: TreeId, pattern: str, path: str = "") -> tuple[Hit, ...]:
    """Lines of text files that match the extended regular expression, in path order; `path` is a file or folder of the tree.

    Raises GitError for a pattern git does not understand, and when it takes too long.
    """
    options = ("grep", "-z", "-n", "-I", "-E", "--full-name", f"--max-count={MOST_OF_A_FILE}", "-e", pattern, tree)
    args = ("--literal-pathspecs", *options, *(("--", path) if path else ()))
    async with spawn(args, git_dir=mirror.git_dir, stdin=asyncio.subprocess.DEVNULL) as process:
        if process.stdout is None or process.stderr is None:
            raise GitError(args, -1, b"no pipe")
        try:
            async with asyncio.timeout(SECONDS):
                found = await _bounded(process.stdout)
                if len(found) >= MOST_BYTES:
                    return _hits(found[: found.rfind(b"\n") + 1])
                said = await process.stderr.read(2000)
                code = await process.wait()
        except TimeoutError:
            raise GitError(args, -1, f"no answer within {SECONDS:g} s".encode()) from None
    if code not in {0, _NO_MATCH}:
        raise GitError(args, code, said)
    return _hits(found)


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while len(found) < MOST_BYTES:
        part = await stream.read(1 << 16)
        if not part:
            break
        found += part
    return bytes(found)


def _hits(found: bytes) -> tuple[Hit, ...]:
    """Reads `tree:path NUL line NUL text` lines; a path may hold a line break. The last one may be cut anywhere."""
    hits = []
    for named, number, text in _HIT.findall(found):
        _, _, path = named.partition(b":")
        hits.append(Hit(raw.text(path), int(number), text.decode("utf-8", "replace")))
    return tuple(hits)
