"""Tree → sandbox: the files of one tree, and proof that what stands on disk there is that tree."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence

from bot.custody.faults import DamagedResult, OverLimit, TreeMismatch
from bot.custody.git import GitError
from bot.custody.grammar import check_base_paths
from bot.custody.mirror import Mirror
from bot.custody.script import script
from bot.domain.change import FileMode, TreeEntry
from bot.domain.ids import BlobId, TreeId, is_full_object_id
from bot.providers.sandbox.port import HOME, WORK, CommandResult, Sandbox

STATE = f"{HOME}/.pullwright"
"""Where the script and what it remembers stand; outside the work directory."""

MAX_TREE_BYTES = 1 << 30
MAX_TREE_FILES = 200_000
PART_BYTES = 8 << 20
_SETTLING_ROUNDS = 2
_SCRIPT = f"{STATE}/inside.py"


async def populate(mirror: Mirror, sandbox: Sandbox, tree: TreeId) -> None:
    """Empty the work directory and fill it with the tree; raises TreeMismatch unless the disk then holds exactly it."""
    entries = await mirror.entries(tree)
    check_base_paths(entry.path for entry in entries)
    if len(entries) > MAX_TREE_FILES:
        raise OverLimit("tree_files", detail=f"{len(entries):,} files, at most {MAX_TREE_FILES:,}")
    blobs = dict.fromkeys(entry.blob for entry in entries if entry.mode is not FileMode.GITLINK)
    sizes = await mirror.sizes(blobs)
    if sum(sizes.values()) > MAX_TREE_BYTES:
        raise OverLimit("tree_size", detail=f"{sum(sizes.values()):,} bytes, at most {MAX_TREE_BYTES:,}")
    await give_listing(mirror, sandbox, tree)
    parts = await _give(mirror, sandbox, blobs, sizes)
    said = await run_inside(sandbox, "populate", tree, parts=parts)
    if said.get("tree") != tree:
        raise TreeMismatch("tree_on_disk", detail=f"is {said.get('tree')}, not {tree}")


async def settle(mirror: Mirror, sandbox: Sandbox, tree: TreeId) -> int:
    """Bring the tree's files, and only them, to what they are in the tree, where another tree and what was set up beside it
    stand already; how many contents had to cross. Raises TreeMismatch unless the disk then holds them all.
    """
    entries = await mirror.entries(tree)
    check_base_paths(entry.path for entry in entries)
    await give_listing(mirror, sandbox, tree)
    known = {entry.blob for entry in entries if entry.mode is not FileMode.GITLINK}
    missing = await _likely_missing(mirror, sandbox, entries)
    for _ in range(_SETTLING_ROUNDS):
        parts = await _give(mirror, sandbox, missing, await mirror.sizes(missing)) if missing else 0
        said = await run_inside(sandbox, "settle", tree, parts=parts)
        if said.get("tree") == tree:
            return len(missing)
        wanted = (await sandbox.read(f"{STATE}/wanted", limit=MAX_TREE_FILES * 41)).decode("ascii", "replace").split()
        if not wanted or not known.issuperset(wanted):
            raise DamagedResult("script_failed", detail="asks for what the tree does not hold")
        missing = [BlobId(identifier) for identifier in wanted]
    raise TreeMismatch("tree_on_disk", detail=f"is {said.get('tree')}, not {tree}")


async def _likely_missing(mirror: Mirror, sandbox: Sandbox, entries: Sequence[TreeEntry]) -> list[BlobId]:
    """What differs from the tree that the sandbox says it holds: a guess that saves a question, whether it is true or not."""
    try:
        said = (await sandbox.read(f"{STATE}/tree", limit=100)).decode("ascii", "replace")
        there = set(await mirror.entries(TreeId(said))) if is_full_object_id(said) else set()
    except (FileNotFoundError, ValueError, GitError):
        return []
    missing = (entry.blob for entry in entries if entry not in there and entry.mode is not FileMode.GITLINK)
    return list(dict.fromkeys(missing)) if there else []


async def _give(mirror: Mirror, sandbox: Sandbox, blobs: Iterable[BlobId], sizes: dict[BlobId, int]) -> int:
    """Upload contents for the script; in how many parts."""
    parts = list(_parts(blobs, sizes))
    uploading: asyncio.Task[None] | None = None
    try:
        for number, part in enumerate(parts):
            data = await mirror.batch(part)  # while the part before is on its way
            if uploading is not None:
                await uploading
            uploading = asyncio.create_task(sandbox.write(f"{STATE}/part-{number}", data))
        if uploading is not None:
            await uploading
    finally:
        if uploading is not None and not uploading.done():
            uploading.cancel()
            await asyncio.wait({uploading})
    return len(parts)


def _parts(blobs: Iterable[BlobId], sizes: dict[BlobId, int]) -> Iterator[list[BlobId]]:
    part: list[BlobId] = []
    room = PART_BYTES
    for blob in blobs:
        if part and sizes[blob] > room:
            yield part
            part, room = [], PART_BYTES
        part.append(blob)
        room -= sizes[blob]
    if part:
        yield part


async def give_listing(mirror: Mirror, sandbox: Sandbox, tree: TreeId) -> None:
    """Tell the script which files a tree has, so that it can compare with it."""
    await sandbox.write(f"{STATE}/listing-{tree}", await mirror.listing(tree))


async def ask_inside(sandbox: Sandbox, act: str, tree: TreeId, **options: str | int) -> CommandResult:
    """Run the script, fresh from our own text, in the sandbox."""
    await sandbox.write(_SCRIPT, script())
    words = [word for name, value in {"tree": tree, **options}.items() for word in (name, str(value))]
    command = shlex.join(["python3", "-I", "-S", _SCRIPT, act, WORK, STATE, *words])
    return await sandbox.run(command, timeout_seconds=300, cwd=HOME, output_bytes=20_000)


async def run_inside(sandbox: Sandbox, act: str, tree: TreeId, **options: str | int) -> dict[str, object]:
    """Run the script to a good end; what it printed. Raises DamagedResult otherwise."""
    result = await ask_inside(sandbox, act, tree, **options)
    if result.exit_code or result.timed_out:
        raise DamagedResult(
            "script_failed", detail=f"exit {result.exit_code}: {(result.stderr or result.stdout)[-500:]}"
        )
    return answer(result)


def answer(result: CommandResult) -> dict[str, object]:
    """The JSON object the script printed."""
    try:
        said = json.loads(result.stdout)
    except ValueError:
        raise DamagedResult("script_failed", detail=ascii(result.stdout[-200:])) from None
    if not isinstance(said, dict):
        raise DamagedResult("script_failed", detail=ascii(result.stdout[-200:]))
    return said
