"""Payloads as GitHub sends them, cut to what matters, with defaults."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from bot.domain.event import Actor, Commented, Labelled, PullActivity, PullChanged, Reviewed, ReviewState, Subject
from bot.domain.ids import CommentId, CommitId, InstallationId, RepositoryId, ReviewId, TaskId, UserId
from bot.domain.money import MicroUsd
from bot.domain.repository import RepositoryRef
from bot.domain.task import TaskSpec

SHA = "1" * 40
ANA = Actor(UserId(7), "ana", is_bot=False)
BOT = Actor(UserId(99), "pullwright[bot]", is_bot=True)
APP = 4242
ISSUE = Subject(RepositoryRef(RepositoryId(1), "acme/shop", InstallationId(9)), 5, is_pull=False)
PULL = Subject(RepositoryRef(RepositoryId(1), "acme/shop", InstallationId(9)), 12, is_pull=True)

EXAMPLES = Path(__file__).parents[3] / "fixtures" / "webhooks" / "examples.json.gz"


def examples() -> list[tuple[str, dict[str, Any]]]:
    """All example payloads of GitHub's webhooks that the octokit project keeps."""
    return [(event, payload) for event, payload in json.loads(gzip.decompress(EXAMPLES.read_bytes()))]


def user(login: str = "ana", number: int = 7, kind: str = "User") -> dict[str, Any]:
    return {"login": login, "id": number, "type": kind}


def payload(action: str, **parts: Any) -> dict[str, Any]:
    """The frame of every delivery to the App."""
    return {
        "action": action,
        "installation": {"id": 9},
        "repository": {"id": 1, "full_name": "acme/shop"},
        "sender": user(),
        **parts,
    }


def issue(**changes: Any) -> dict[str, Any]:
    return {
        "number": 5,
        "title": "Sum is wrong",
        "body": "1 + 1 = 3",
        "state": "open",
        "locked": False,
        "updated_at": "2026-11-29T10:00:00Z",
        **changes,
    }


def pull(**changes: Any) -> dict[str, Any]:
    return issue(number=12, head={"sha": SHA, "ref": "agent/5"}, base={"ref": "main"}, merged=False, **changes)


def comment(body: str | None = "/agent run", **changes: Any) -> dict[str, Any]:
    return {"id": 31, "body": body, "user": user(), "performed_via_github_app": None, **changes}


def review(**changes: Any) -> dict[str, Any]:
    return {"id": 41, "state": "approved", "commit_id": SHA, "body": None, "user": user("rob", 8), **changes}


def labelled(**changes: Any) -> Labelled:
    given: dict[str, Any] = {
        "subject": ISSUE,
        "actor": ANA,
        "label": "agent",
        "title": "Sum is wrong",
        "body": "1 + 1 = 3",
        "updated_at": "2026-11-29T10:00:00Z",
        "open": True,
    }
    return Labelled(**(given | changes))


def commented(body: str = "/agent run", **changes: Any) -> Commented:
    given: dict[str, Any] = {
        "subject": ISSUE,
        "actor": ANA,
        "comment_id": CommentId(31),
        "body": body,
        "title": "Sum is wrong",
        "subject_body": "1 + 1 = 3",
        "open": True,
        "locked": False,
    }
    return Commented(**(given | changes))


def reviewed(**changes: Any) -> Reviewed:
    given: dict[str, Any] = {
        "subject": PULL,
        "actor": ANA,
        "review_id": ReviewId(41),
        "reviewer": ANA,
        "state": ReviewState.APPROVED,
        "commit_id": CommitId(SHA),
        "body": "",
        "base_ref": "main",
    }
    return Reviewed(**(given | changes))


def pull_changed(**changes: Any) -> PullChanged:
    given: dict[str, Any] = {
        "subject": PULL,
        "actor": ANA,
        "activity": PullActivity.PUSHED,
        "head_sha": CommitId(SHA),
        "base_ref": "main",
        "merged": False,
    }
    return PullChanged(**(given | changes))


def spec(number: int = 5, generation: int = 1, **changes: Any) -> TaskSpec:
    given: dict[str, Any] = {
        "id": TaskId(f"task:1:{number}:{generation}"),
        "subject": ISSUE,
        "requester": ANA,
        "title": "Sum is wrong",
        "request": "as it was then",
        "budget": MicroUsd(500_000),
    }
    return TaskSpec(**(given | changes))
