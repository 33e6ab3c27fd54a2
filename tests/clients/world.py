"""What every client of the story is told, and what it has to see."""

from __future__ import annotations

from typing import Any

SEEN: dict[str, Any] = {
    "slug": "pullwright",
    "files": [["greet.py", "added", 1]],
    "refused": 405,
    "merged": True,
    "state": "closed",
    "issue": "closed",
    "reviews": ["APPROVED"],
    "comments": [["pullwright[bot]", "Working"]],
    "permission": "write",
    "ahead": 1,
    "verified": True,
}
READY = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }"
