"""Commits, trees, refs and file changes as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from bot.emulators.github.clock import stamp
from bot.emulators.github.gitside.bare import TreeEntry
from bot.emulators.github.gitside.commits import Commit, Identity
from bot.emulators.github.gitside.history import FileChange
from bot.emulators.github.identifiers import node_id
from bot.emulators.github.records import Repository
from bot.emulators.github.shapes.people import user_or_none
from bot.emulators.github.urls import Urls
from bot.emulators.github.world import World


def verification(item: Commit) -> dict[str, Any]:
    reason = "valid" if item.verified else "unsigned" if item.signature is None else "unknown_key"
    return {
        "verified": item.verified,
        "reason": reason,
        "signature": item.signature,
        "payload": item.payload if item.signature else None,
        "verified_at": stamp(item.committer.date) if item.verified else None,
    }


def git_commit(repository: Repository, item: Commit, urls: Urls) -> dict[str, Any]:
    """The form of the Git Data API."""
    base = urls.repo(repository.full_name, "/git")
    page = urls.html(f"{repository.full_name}/commit")
    return {
        "sha": item.sha,
        "node_id": f"C_kw{item.sha[:20]}",
        "url": f"{base}/commits/{item.sha}",
        "html_url": f"{page}/{item.sha}",
        "author": identity(item.author),
        "committer": identity(item.committer),
        "tree": {"sha": item.tree, "url": f"{base}/trees/{item.tree}"},
        "message": item.message.rstrip("\n"),
        "parents": [
            {"sha": parent, "url": f"{base}/commits/{parent}", "html_url": f"{page}/{parent}"}
            for parent in item.parents
        ],
        "verification": verification(item),
    }


def identity(item: Identity) -> dict[str, Any]:
    return {"name": item.name, "email": item.email, "date": stamp(item.date)}


def commit(world: World, repository: Repository, item: Commit, urls: Urls) -> dict[str, Any]:
    """The form of commit lists, pull request commits and comparisons."""
    base = urls.repo(repository.full_name)
    page = urls.html(f"{repository.full_name}/commit")
    return {
        "sha": item.sha,
        "node_id": f"C_kw{item.sha[:20]}",
        "commit": {
            "author": identity(item.author),
            "committer": identity(item.committer),
            "message": item.message.rstrip("\n"),
            "tree": {"sha": item.tree, "url": f"{base}/git/trees/{item.tree}"},
            "url": f"{base}/git/commits/{item.sha}",
            "comment_count": 0,
            "verification": verification(item),
        },
        "url": f"{base}/commits/{item.sha}",
        "html_url": f"{page}/{item.sha}",
        "comments_url": f"{base}/commits/{item.sha}/comments",
        "author": user_or_none(world.user_of_email(item.author.email), urls),
        "committer": user_or_none(world.user_of_email(item.committer.email), urls),
        "parents": [
            {"sha": parent, "url": f"{base}/commits/{parent}", "html_url": f"{page}/{parent}"}
            for parent in item.parents
        ],
    }


def ref(repository: Repository, name: str, sha: str, kind: str, urls: Urls) -> dict[str, Any]:
    base = urls.repo(repository.full_name, "/git")
    return {
        "ref": name,
        "node_id": node_id("REF", repository.id) + sha[:8],
        "url": f"{base}/{name}",
        "object": {"sha": sha, "type": kind, "url": f"{base}/{kind}s/{sha}"},
    }


def tree(repository: Repository, sha: str, entries: Sequence[TreeEntry], urls: Urls) -> dict[str, Any]:
    base = urls.repo(repository.full_name, "/git")
    return {
        "sha": sha,
        "url": f"{base}/trees/{sha}",
        "truncated": False,
        "tree": [_tree_item(base, entry) for entry in entries],
    }


def _tree_item(base: str, entry: TreeEntry) -> dict[str, Any]:
    item: dict[str, Any] = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    if entry.size is not None:
        item["size"] = entry.size
    if entry.kind != "commit":
        item["url"] = f"{base}/{entry.kind}s/{entry.sha}"
    return item


def file_change(repository: Repository, item: FileChange, head: str, urls: Urls) -> dict[str, Any]:
    path = quote(item.path)
    shape: dict[str, Any] = {
        "sha": item.sha,
        "filename": item.path,
        "status": item.status,
        "additions": item.additions,
        "deletions": item.deletions,
        "changes": item.additions + item.deletions,
        "blob_url": urls.html(f"{repository.full_name}/blob/{head}/{path}"),
        "raw_url": urls.html(f"{repository.full_name}/raw/{head}/{path}"),
        "contents_url": urls.repo(repository.full_name, f"/contents/{path}?ref={head}"),
    }
    if item.patch is not None:
        shape["patch"] = item.patch
    if item.previous is not None:
        shape["previous_filename"] = item.previous
    return shape
