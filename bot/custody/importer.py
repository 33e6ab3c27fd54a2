"""Sandbox → tree: what the sandbox hands back is judged in memory, then written as objects. No patch, no work tree."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from bot.custody.export import STATE, answer, ask_inside, give_listing, populate
from bot.custody.faults import DamagedResult, ForbiddenPath, OverLimit, TreeMismatch
from bot.custody.grammar import check_arrivals, check_known_path, check_link, check_nameable, check_new_path, escapes
from bot.custody.mirror import Mirror
from bot.custody.result import Limits, Put, Result, parse
from bot.domain.change import Change, FileMode, TreeEntry
from bot.domain.ids import BlobId, CommitId, TreeId
from bot.providers.sandbox.port import Sandbox

__all__ = ["capture", "populate", "receive"]

_RULE_BROKEN = 4
_NO_LISTING = 3


async def capture(mirror: Mirror, sandbox: Sandbox, base_commit: CommitId, *, limits: Limits | None = None) -> Change:
    """The change from `base_commit` that stands in the sandbox's work directory, its tree in the mirror.

    Raises a LineFault that names the rule and the path when something may not cross.
    """
    caps = limits or Limits()
    base_tree = await mirror.tree_of(base_commit)
    nonce = secrets.token_hex(16)
    await _ask_for_result(mirror, sandbox, base_tree, nonce, caps)
    try:
        stream = await sandbox.read(f"{STATE}/result", limit=caps.stream_bytes)
    except FileNotFoundError:
        raise DamagedResult("empty", detail="no result") from None
    except ValueError:
        raise OverLimit("stream_size") from None
    return await receive(mirror, stream, base_commit, nonce=nonce, limits=caps)


async def _ask_for_result(mirror: Mirror, sandbox: Sandbox, base_tree: TreeId, nonce: str, caps: Limits) -> None:
    asked: dict[str, str | int] = {"nonce": nonce, "max_bytes": caps.total_bytes}
    result = await ask_inside(sandbox, "capture", base_tree, **asked)
    if result.exit_code == _NO_LISTING:
        await give_listing(mirror, sandbox, base_tree)
        result = await ask_inside(sandbox, "capture", base_tree, **asked)
    if result.exit_code == _RULE_BROKEN:
        said = answer(result)
        rule, path = str(said.get("rule"))[:40], str(said.get("path"))[:400]
        raise OverLimit(rule, path) if rule in {"file_size", "total_size"} else ForbiddenPath(rule, path)
    if result.exit_code or result.timed_out:
        raise DamagedResult("script_failed", detail=f"exit {result.exit_code}: {result.stderr[-500:]!a}")


async def receive(mirror: Mirror, stream: bytes, base_commit: CommitId, *, nonce: str, limits: Limits) -> Change:
    """Judge a result stream and write it as a tree. The trusted half of `capture`."""
    base_tree = await mirror.tree_of(base_commit)
    result = parse(stream, nonce=nonce, base_tree=base_tree, limits=limits)
    base = await mirror.entries(base_tree)
    links = await _base_links(mirror, base) if _touches_links(result, base) else {}
    judge(result, base, links)
    tree = await _write(mirror, result)
    return Change(base_commit, base_tree, tree, await mirror.diff(base_tree, tree))


async def _write(mirror: Mirror, result: Result) -> TreeId:
    if not result.puts and not result.removed:
        tree = result.base_tree
    else:
        await mirror.write_blobs([put.data for put in result.puts])
        put = [TreeEntry(put.path, put.mode, put.blob) for put in result.puts]
        tree = await mirror.write_tree(result.base_tree, put=put, removed=result.removed)
    if tree != result.tree:
        raise TreeMismatch("tree_of_result", detail=f"is {tree}, the sandbox said {result.tree}")
    return tree


async def _base_links(mirror: Mirror, base: Sequence[TreeEntry]) -> dict[str, str]:
    links: dict[str, BlobId] = {entry.path: entry.blob for entry in base if entry.mode is FileMode.SYMLINK}
    targets = await mirror.blobs(links.values()) if links else {}
    return {path: targets[blob].decode("utf-8", "surrogateescape") for path, blob in links.items()}


def _touches_links(result: Result, base: Sequence[TreeEntry]) -> bool:
    removed = set(result.removed)
    return any(put.mode is FileMode.SYMLINK for put in result.puts) or any(
        entry.mode is FileMode.SYMLINK and (entry.path in removed) for entry in base
    )


def judge(result: Result, base: Sequence[TreeEntry], base_links: dict[str, str]) -> None:
    """Every rule on paths, links and combinations (specs/security.md §3, rows D). Raises ForbiddenPath or DamagedResult."""
    known = {entry.path: entry for entry in base}
    for path in result.removed:
        if path not in known or known[path].mode is FileMode.GITLINK:
            raise DamagedResult("removes_unknown", path)
        check_nameable(path)
    pointers = {entry.path for entry in base if entry.mode is FileMode.GITLINK}
    if result.removed and not result.puts and len(result.removed) == len(known) - len(pointers):
        raise DamagedResult("emptied", detail="every file is gone")
    for put in result.puts:
        _judge_put(put, known, pointers)
    removed = set(result.removed)
    added = [put.path for put in result.puts if put.path not in known]
    check_arrivals(added, (path for path in known if path not in removed))
    _judge_links(result, base_links)


def _judge_put(put: Put, known: dict[str, TreeEntry], pointers: set[str]) -> None:
    before = known.get(put.path)
    if before is None:
        check_new_path(put.path)
    else:
        check_known_path(put.path)
        if (before.mode, before.blob) == (put.mode, put.blob):
            raise DamagedResult("not_a_change", put.path)
    if pointers and any(put.path == pointer or put.path.startswith(f"{pointer}/") for pointer in pointers):
        raise ForbiddenPath("inside_submodule", put.path)


def _judge_links(result: Result, base_links: dict[str, str]) -> None:
    """No link that this change makes or redirects leaves the tree, be it by way of other links."""
    put = {item.path: item for item in result.puts}
    gone = put.keys() | set(result.removed)
    links = {path: target for path, target in base_links.items() if path not in gone}
    made = {path: check_link(path, item.data) for path, item in put.items() if item.mode is FileMode.SYMLINK}
    links |= made
    for path in links:
        if escapes(path, links) and (path in made or not escapes(path, base_links)):
            raise ForbiddenPath("link_escapes", path, ascii(links[path]))
