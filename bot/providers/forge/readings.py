"""GitHub's JSON as the port's records. Only the fields we use are read; a missing one is a KeyError, not a guess."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from bot.domain.event import Actor, ReviewState
from bot.domain.ids import CommentId, CommitId, NodeId, RepositoryId, ReviewId, TreeId, UserId
from bot.domain.pull import PullRequest, Review
from bot.providers.forge.port import Comment, CommitRecord, Issue, LineComment, Repository

_SUBMITTING = timedelta(seconds=10)
_GHOST = Actor(UserId(0), "ghost", is_bot=False)


def actor(told: dict[str, Any] | None) -> Actor:
    """A deleted account reads as nobody with a name."""
    if not told:
        return _GHOST
    return Actor(UserId(int(told["id"])), str(told["login"]), is_bot=told.get("type") == "Bot")


def repository(told: dict[str, Any]) -> Repository:
    return Repository(
        id=RepositoryId(int(told["id"])),
        full_name=str(told["full_name"]),
        default_branch=str(told["default_branch"]),
        private=bool(told["private"]),
        archived=bool(told["archived"]),
        clone_url=str(told["clone_url"]),
    )


def issue(told: dict[str, Any]) -> Issue:
    return Issue(
        number=int(told["number"]),
        title=str(told["title"]),
        body=told["body"] or "",
        open=told["state"] == "open",
        locked=bool(told["locked"]),
        is_pull="pull_request" in told,
        author=actor(told["user"]),
        labels=tuple(label if isinstance(label, str) else str(label["name"]) for label in told["labels"]),
    )


def comment(told: dict[str, Any]) -> Comment:
    return Comment(CommentId(int(told["id"])), actor(told["user"]), told["body"] or "", str(told["html_url"]))


def line_comment(told: dict[str, Any], submitted: str | None) -> LineComment:
    """A draft's times change when its review is submitted, so that only a change well after it is an edit."""
    since = datetime.fromisoformat(submitted or told["created_at"])
    return LineComment(
        id=CommentId(int(told["id"])),
        path=str(told["path"]),
        line=told.get("line") or told.get("original_line"),
        body=told["body"] or "",
        edited=datetime.fromisoformat(told["updated_at"]) > since + _SUBMITTING,
    )


def commit(told: dict[str, Any]) -> CommitRecord:
    return CommitRecord(
        id=CommitId(told["sha"]),
        tree=TreeId(told["tree"]["sha"]),
        parents=tuple(CommitId(parent["sha"]) for parent in told["parents"]),
        message=str(told["message"]),
    )


def pull(told: dict[str, Any]) -> PullRequest:
    """Lists leave `merged` and `mergeable` out: there `merged_at` tells, and mergeability is unknown."""
    head_repository = told["head"]["repo"]
    return PullRequest(
        number=int(told["number"]),
        node_id=NodeId(told["node_id"]),
        open=told["state"] == "open",
        draft=bool(told["draft"]),
        merged=told["merged_at"] is not None,
        author=actor(told["user"]),
        head_ref=str(told["head"]["ref"]),
        head_sha=CommitId(told["head"]["sha"]),
        head_repository=RepositoryId(int(head_repository["id"])) if head_repository else None,
        base_ref=str(told["base"]["ref"]),
        base_sha=CommitId(told["base"]["sha"]),
        mergeable=told.get("mergeable"),
        title=str(told["title"]),
        body=told["body"] or "",
        url=str(told["html_url"]),
    )


def review(told: dict[str, Any]) -> Review:
    return Review(
        id=ReviewId(int(told["id"])),
        reviewer=actor(told["user"]),
        state=ReviewState(str(told["state"]).lower()),
        commit_id=CommitId(told["commit_id"]) if told["commit_id"] else None,
        submitted_at=told.get("submitted_at") or "",
    )
