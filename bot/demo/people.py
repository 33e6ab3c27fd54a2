"""People of a story: each acts through GitHub's own API with a token of their own. Nothing here touches the product."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import httpx

_VERSION = "2026-03-10"


class Refused(Exception):  # noqa: N818 - GitHub's answer to a person
    """GitHub did not let the person do it."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(f"{status}: {message}")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account. `repository` is owner/name."""

    login: str
    token: str
    client: httpx.AsyncClient
    url: str
    repository: str

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One call; the parsed answer. Raises Refused."""
        answer = await self.client.request(
            method,
            f"{self.url}{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}", "X-GitHub-Api-Version": _VERSION},
        )
        if answer.status_code >= 400:
            raise Refused(answer.status_code, str(answer.json().get("message", answer.text[:200])))
        return answer.json() if answer.content else None

    async def here(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One call about the repository."""
        return await self.ask(method, f"/repos/{self.repository}{path}", body)

    async def open_issue(self, title: str, body: str) -> int:
        return int((await self.here("POST", "/issues", {"title": title, "body": body}))["number"])

    async def label(self, number: int, label: str) -> None:
        await self.here("POST", f"/issues/{number}/labels", {"labels": [label]})

    async def comment(self, number: int, body: str) -> int:
        return int((await self.here("POST", f"/issues/{number}/comments", {"body": body}))["id"])

    async def comments(self, number: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.here("GET", f"/issues/{number}/comments?per_page=100")
        return found

    async def pulls(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.here("GET", "/pulls?state=all&per_page=100")
        return found

    async def pull(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = await self.here("GET", f"/pulls/{number}")
        return found

    async def review(self, number: int, event: str = "APPROVE", *, commit: str = "", body: str = "") -> int:
        """Submit a review of the head, or of `commit`."""
        given: dict[str, Any] = {"event": event, "body": body or "Reviewed."}
        if commit:
            given["commit_id"] = commit
        return int((await self.here("POST", f"/pulls/{number}/reviews", given))["id"])

    async def dismiss(self, number: int, review: int) -> None:
        await self.here("PUT", f"/pulls/{number}/reviews/{review}/dismissals", {"message": "taken back"})

    async def checks(self, commit: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.here("GET", f"/commits/{commit}/check-runs"))["check_runs"]
        return found

    async def tree_of(self, commit: str) -> str:
        """The tree id of a commit, as GitHub stores it."""
        return str((await self.here("GET", f"/git/commits/{commit}"))["tree"]["sha"])

    async def head_of(self, branch: str) -> str:
        return str((await self.here("GET", f"/git/ref/heads/{branch}"))["object"]["sha"])

    async def text_of(self, path: str, ref: str) -> str:
        found = await self.here("GET", f"/contents/{path}?ref={ref}")
        return base64.b64decode(found["content"]).decode()

    async def push(self, branch: str, path: str, text: str, message: str) -> str:
        """Commit one file on top of the branch; the new head."""
        head = await self.head_of(branch)
        blob = (await self.here("POST", "/git/blobs", {"content": text, "encoding": "utf-8"}))["sha"]
        entry = {"path": path, "mode": "100644", "type": "blob", "sha": blob}
        made = await self.here("POST", "/git/trees", {"base_tree": await self.tree_of(head), "tree": [entry]})
        commit = await self.here("POST", "/git/commits", {"message": message, "tree": made["sha"], "parents": [head]})
        await self.here("PATCH", f"/git/refs/heads/{branch}", {"sha": commit["sha"]})
        return str(commit["sha"])
