"""What people do on GitHub in a history: each verb is one call, which may be refused, and is counted when it took effect."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from bot.emulators.github.records import Issue, Pull
from bot.emulators.github.webhooks.courier import Delivery
from tests.histories.oracle import Oracle
from tests.histories.stage import HistoryStage

_READY = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
_DRAFT = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}"


class People:
    """Rosa, Robin, Carl and Rudi. `pending` is what GitHub has to tell the product about what they did."""

    def __init__(self, stage: HistoryStage) -> None:
        self.stage = stage
        self.oracle = Oracle(stage.git, stage.repository)
        self.pending: list[Delivery] = []
        self.counts: Counter[str] = Counter()
        self.story: list[str] = []
        self.window: set[str] = set()
        """What happened since the product last read the pull request."""
        self._seen = 0

    @property
    def here(self) -> str:
        """The repository's address by its present name."""
        return f"/repos/{self.stage.repository.full_name}"

    @property
    def issue(self) -> Issue:
        return self.stage.repository.issues[self.stage.books.number or 2]

    @property
    def pull(self) -> Pull:
        pull = self.issue.pull
        assert pull is not None
        return pull

    def collect(self) -> None:
        log = self.stage.world.courier.log
        kept = (
            "pull_request",
            "pull_request_review",
            "pull_request_review_comment",
            "issue_comment",
            "issues",
        )
        self.pending += [one for one in log[self._seen :] if one.event in kept]
        self._seen = len(log)

    async def ask(self, who: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One call of a person; None when GitHub refuses."""
        answer = await self.stage.people.request(
            method, path, json=body, headers={"Authorization": f"Bearer token-{who}", "User-Agent": who}
        )
        if self.stage.world.courier.log[self._seen :]:
            self.collect()
        told = answer.json() if answer.content else {}
        refused = answer.status_code >= 300 or "errors" in told
        self.story.append(f"{who} {method} {path} {json.dumps(body)[:120] if body else ''} {answer.status_code}")
        return None if refused else told

    async def push(self, who: str, files: dict[str, str], *, parent: str | None = None, force: bool = False) -> bool:
        """A commit with these files on top of the branch, or of `parent`."""
        git, pull = self.stage.git, self.pull
        below = parent or pull.head_sha
        texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(below).items()}
        return await self.move(who, pull.head_ref, self.stage.commit({**texts, **files}, below), force=force)

    async def move(self, who: str, branch: str, commit: str, *, force: bool = False) -> bool:
        body = {"sha": commit, "force": force}
        moved = await self.ask(who, "PATCH", f"{self.here}/git/refs/heads/{branch}", body) is not None
        if moved:
            kind = "pushes" if branch == self.pull.head_ref else "base_moves"
            self.counts[f"forced_{kind}" if force else kind] += 1
            self.window.add("base" if branch == self.pull.base_ref else "push")
            if force and branch == self.pull.base_ref:
                self.window.add("rewind")
        return moved

    async def move_base(self, who: str, files: dict[str, str], branch: str | None = None) -> None:
        """Somebody's commit on a base branch."""
        git, name = self.stage.git, branch or self.pull.base_ref
        tip = git.refs[f"refs/heads/{name}"]
        texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(tip).items()}
        await self.move(who, name, self.stage.commit({**texts, **files}, tip))

    async def rebase(self, who: str) -> None:
        """The same patch on the base's tip, by force."""
        git, pull = self.stage.git, self.pull
        base = git.refs[f"refs/heads/{pull.base_ref}"]
        merged = git.merge_tree(base, pull.head_sha)
        if merged is not None:
            self.counts["rebases"] += 1
            texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(merged).items()}
            await self.move(who, pull.head_ref, self.stage.commit(texts, base), force=True)

    async def review(self, who: str, event: str, commit: str | None = None) -> None:
        pull = self.pull
        body = {"event": event, "body": "So.", **({"commit_id": commit} if commit else {})}
        done = await self.ask(who, "POST", f"{self.here}/pulls/{self.issue.number}/reviews", body)
        if done is None:
            return
        self.counts[f"reviews_{event.lower()}"] += 1
        if event == "APPROVE":
            self.oracle.approved(who, pull, commit or pull.head_sha)
        elif event == "REQUEST_CHANGES":
            self.oracle.withdrawn(who)
            self.window.add("withdraw")

    async def dismiss(self, who: str, of: str) -> None:
        given = [
            one for one in self.pull.reviews if one.user.login == of and one.state in {"APPROVED", "CHANGES_REQUESTED"}
        ]
        if given:
            path = f"{self.here}/pulls/{self.issue.number}/reviews/{given[-1].id}/dismissals"
            if await self.ask(who, "PUT", path, {"message": "No."}) is not None:
                self.counts["dismissals"] += 1
                self.oracle.withdrawn(of)
                self.window.add("withdraw")

    async def say(self, who: str, verb: str, digest: str) -> None:
        """`/agent approve` or `merge` with a digest."""
        body = {"body": f"/agent {verb} {digest[:12]}{digest[64:]}"}
        done = await self.ask(who, "POST", f"{self.here}/issues/{self.issue.number}/comments", body)
        self.counts[f"commands_{verb}"] += done is not None
        if done is not None and verb == "approve":
            self.oracle.named(who, digest[:64])

    async def retarget(self, who: str, base: str) -> None:
        if await self.ask(who, "PATCH", f"{self.here}/pulls/{self.issue.number}", {"base": base}) is not None:
            self.counts["retargets"] += 1
            self.window.add("retarget")

    async def grade(self, login: str, role: str) -> None:
        """Somebody's permission changes."""
        before = self.oracle.may(login)
        self.stage.repository.roles[login] = role
        self.counts["permissions_lost"] += before and not self.oracle.may(login)
        self.window.add("demote")
        self.story.append(f"{login} may {role}")

    async def flip(self, who: str, *, draft: bool) -> None:
        query = _DRAFT if draft else _READY
        asked = {"query": query, "variables": {"id": self.pull.node_id}}
        self.counts["draft_flips"] += await self.ask(who, "POST", "/graphql", asked) is not None

    async def state(self, who: str, state: str) -> None:
        before = self.issue.state
        path = f"{self.here}/pulls/{self.issue.number}"
        if await self.ask(who, "PATCH", path, {"state": state}) is not None and state != before:
            self.counts["closes" if state == "closed" else "reopens"] += 1

    async def merge(self, who: str) -> None:
        """A person presses the button."""
        path, how = f"{self.here}/pulls/{self.issue.number}/merge", {"merge_method": "squash"}
        self.counts["merges_by_people"] += await self.ask(who, "PUT", path, how) is not None

    async def ask_again(self, who: str, reviewer: str) -> None:
        path = f"{self.here}/pulls/{self.issue.number}/requested_reviewers"
        self.counts["re_requests"] += await self.ask(who, "POST", path, {"reviewers": [reviewer]}) is not None

    async def update_branch(self, who: str) -> None:
        """The button that merges the base into the branch."""
        path = f"{self.here}/pulls/{self.issue.number}/update-branch"
        self.counts["branch_updates"] += await self.ask(who, "PUT", path, {}) is not None

    async def rename(self, name: str) -> None:
        """The repository gets another name."""
        self.counts["repository_renames"] += await self.ask("carl", "PATCH", self.here, {"name": name}) is not None

    async def rename_base(self, name: str) -> None:
        """The base branch gets another name, in the order in which GitHub does it: the pull request follows."""
        git, old = self.stage.git, self.pull.base_ref
        body = {"ref": f"refs/heads/{name}", "sha": git.refs[f"refs/heads/{old}"]}
        if await self.ask("carl", "POST", f"{self.here}/git/refs", body) is None:
            return
        await self.retarget("carl", name)
        await self.ask("carl", "PATCH", self.here, {"default_branch": name})
        if (
            self.pull.base_ref == name
            and await self.ask("carl", "DELETE", f"{self.here}/git/refs/heads/{old}") is not None
        ):
            self.counts["base_renames"] += 1

    async def found_main(self) -> None:
        """The branch the task began on is there again, where it was renamed."""
        if "refs/heads/main" not in self.stage.git.refs:
            tip = self.stage.git.refs[f"refs/heads/{self.pull.base_ref}"]
            await self.ask("rosa", "POST", f"{self.here}/git/refs", {"ref": "refs/heads/main", "sha": tip})

    async def merge_other(self, who: str, files: dict[str, str]) -> None:
        """Another pull request into the same base lands."""
        git, base = self.stage.git, self.pull.base_ref
        tip = git.refs[f"refs/heads/{base}"]
        texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(tip).items()}
        name = f"other-{self.stage.moment}"
        body = {"ref": f"refs/heads/{name}", "sha": self.stage.commit({**texts, **files}, tip)}
        if await self.ask(who, "POST", f"{self.here}/git/refs", body) is None:
            return
        made = await self.ask(who, "POST", f"{self.here}/pulls", {"title": "Other", "head": name, "base": base})
        if made is not None:
            path = f"{self.here}/pulls/{made['number']}/merge"
            self.counts["other_merges"] += await self.ask(who, "PUT", path, {"merge_method": "squash"}) is not None
            self.window.add("base")
