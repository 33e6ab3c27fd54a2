"""One history: verbs of people and misfortune, the product's answers, and what must hold after each of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bot.domain.action import TellTask
from bot.domain.ids import DeliveryId
from bot.domain.repository import LandingMode
from bot.domain.task import Ending, Stage
from bot.emulators.github.records import Issue, Pull
from bot.emulators.github.webhooks.courier import Delivery
from bot.policy.engine import Policies
from bot.providers.store.port import Delivery as Stored
from bot.stages.intake.decide import IntakeSettings
from bot.stages.intake.run import decide_delivery
from bot.workflow import records, task
from tests.histories.oracle import Oracle
from tests.histories.stage import HistoryConductor, HistoryStage, Mutant, staged

_READY = "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
_DRAFT = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
_WELL = frozenset({Stage.LANDED, Stage.CANCELLED, Stage.NEEDS_HUMAN})


class Violation(AssertionError):  # noqa: N818 - what the model check looks for
    """Something happened that must never happen, or did not happen that must."""


@dataclass(frozen=True, slots=True)
class Race:
    """Something that happens just before the product calls `method`."""

    method: str
    act: Callable[[], Awaitable[object]]


class History:
    """The verbs. Each may be refused by GitHub, which is fine; `check` runs after each."""

    def __init__(self, stage: HistoryStage, mode: LandingMode) -> None:
        self.stage = stage
        self.mode = mode
        self.oracle = Oracle(stage.git, stage.repository)
        self.conductor = HistoryConductor(stage, mode)
        self.pending: list[Delivery] = []
        self.races: list[Race] = []
        self.counts: Counter[str] = Counter()
        self.story: list[str] = []
        self._seen = 0
        self._window: set[str] = set()
        self._alarm = ""
        self._made_ready = False
        self._fault = ""
        self._loop: asyncio.Task[Ending] | None = None
        stage.before, stage.after = self._before, self._after

    # the product

    async def begin(self) -> None:
        await self.ask("rosa", "POST", f"{self.here}/issues", {"title": "A shop that sells"})
        self._loop = asyncio.get_running_loop().create_task(task.run(self.conductor))
        await self._rest()
        self._collect()

    @property
    def alive(self) -> bool:
        return self._loop is not None and not self._loop.done()

    @property
    def ending(self) -> Ending | None:
        return self._loop.result() if self._loop is not None and self._loop.done() else None

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

    async def close(self) -> None:
        if self._loop is not None and not self._loop.done():
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    async def _rest(self) -> None:
        """Until the product waits for the next message, or is done."""
        assert self._loop is not None
        idle = asyncio.ensure_future(self.conductor.idle.wait())
        await asyncio.wait({idle, self._loop}, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        if self._loop.done():
            self.stage.books.ending = self._loop.result()

    async def _before(self, name: str, _args: tuple[Any, ...], _result: Any) -> None:
        if name == "pull":
            self._window.clear()
        race = next((race for race in self.races if race.method == name), None)
        if race is not None:
            self.races.remove(race)
            self.counts["races"] += 1
            self.story.append(f"  (just before {name}:)")
            await race.act()

    async def _after(self, name: str, _args: tuple[Any, ...], result: Any) -> None:
        if name == "merge":
            self._on_merge(str(result))
        elif name == "mark_ready":
            self._made_ready = True

    def _check_ready(self) -> None:
        """What the product made ready and left so was approved when it last looked."""
        if self._made_ready and not self.pull.draft and self.issue.state == "open" and not self._window:
            against = self.oracle.objection(self.oracle.current(self.pull), self.pull)
            if against:
                self._fail(f"made ready and left so although {against}")
        self._made_ready = False

    def _on_merge(self, commit: str) -> None:
        """The moment after a merge by the product: was exactly this approved, by whom it takes?"""
        pull, git = self.pull, self.stage.git
        base = git.parents(commit)[0]
        digest = self.oracle.digest(pull.base_ref, base, pull.head_sha)
        against = self.oracle.objection(digest, pull)
        self.counts["landed"] += 1
        if "retarget" in self._window:
            self._alarm = f"it landed on {pull.base_ref}"
        elif against and "rewind" in self._window:
            self._alarm = "the base was rewritten below it"
        elif against and not self._window & {"withdraw", "demote"}:
            self._fail(f"landed although {against}")
        elif against:
            self.counts["withdrawn_in_the_window"] += 1
        if not self.stage.passes(git.tree_of(commit)):
            self._alarm = self._alarm or "a tree landed that fails the tests"
            if "base" not in self._window:
                self._fail("landed a tree that fails the tests")

    def _fail(self, what: str) -> None:
        self._fault = self._fault or what

    def check(self) -> None:
        """What must hold now."""
        if self._fault:
            raise Violation(f"{self._fault}\n" + "\n".join(self.story))
        landed = self.conductor.landed[-1] if self.conductor.landed else None
        if self._alarm and (landed is None or not landed.alarm):
            raise Violation(f"no alarm although {self._alarm}\n" + "\n".join(self.story))
        ending = self.ending
        if ending is not None and ending.stage not in _WELL:
            raise Violation(f"the task died: {ending.stage.value}: {ending.reason}\n" + "\n".join(self.story))
        if ending is not None and ending.stage is Stage.LANDED:
            self._check_landed()

    def _check_landed(self) -> None:
        """It says that the approved change landed; somebody else may have pressed the button."""
        pull, git = self.pull, self.stage.git
        if pull.merged_by is self.stage.world.app.bot:
            return
        approval = self.stage.books.approvals[-1]
        merge = pull.merge_commit_sha or ""
        digest = self.oracle.digest(pull.base_ref, git.parents(merge)[0], pull.head_sha)
        if digest != approval.digest:
            raise Violation(f"{digest[:12]} was merged and passed for approved\n" + "\n".join(self.story))

    # deliveries

    def _collect(self) -> None:
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

    async def deliver(self, position: int = 0, *, keep: bool = False) -> None:
        """Bring one of the waiting deliveries to the product; with `keep` it will come once more, under another id."""
        if not self.pending or not self.alive:
            return
        one = self.pending[position % len(self.pending)]
        if not keep:
            self.pending.remove(one)
        self.counts["deliveries"] += 1
        self.story.append(f"> {one.event}.{one.action} {'(to come again)' if keep else ''}")
        stored = Stored(DeliveryId(one.guid), one.event, one.body, "2026-11-29T00:00:00Z")
        books: Any = self.stage.books
        action = await decide_delivery(stored, forges=self.stage.forges, tasks=books, settings=IntakeSettings())
        if isinstance(action, TellTask):
            self.conductor.idle.clear()
            self.conductor.inbox.put_nowait(records.Envelope(action.message, stored.id, stored.received_at))
            await self._rest()
            self._check_ready()
        await self.stage.world.settle()
        self._collect()

    def lose(self, position: int) -> None:
        if self.pending:
            gone = self.pending.pop(position % len(self.pending))
            self.counts["lost"] += 1
            self.story.append(f"x {gone.event}.{gone.action} is lost")

    async def deliver_all(self) -> None:
        for _ in range(200):
            if not self.pending or not self.alive:
                return
            await self.deliver()
        raise Violation("deliveries never end\n" + "\n".join(self.story))

    # people

    async def ask(self, who: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One call of a person; None when GitHub refuses."""
        answer = await self.stage.client.request(
            method, path, json=body, headers={"Authorization": f"Bearer token-{who}", "User-Agent": who}
        )
        if self.stage.world.courier.log[self._seen :]:
            self._collect()
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
            self._window.add("base" if branch == self.pull.base_ref else "push")
            if force and branch == self.pull.base_ref:
                self._window.add("rewind")
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
            texts = {path: git.objects[sha][1].decode() for path, (_, sha) in git.files(merged).items()}
            await self.move(who, pull.head_ref, self.stage.commit(texts, base), force=True)

    async def review(self, who: str, event: str, commit: str | None = None) -> None:
        pull = self.pull
        body = {"event": event, "body": "So.", **({"commit_id": commit} if commit else {})}
        done = await self.ask(who, "POST", f"{self.here}/pulls/{self.issue.number}/reviews", body)
        if done is None:
            return
        if event == "APPROVE":
            self.oracle.approved(who, pull, commit or pull.head_sha)
        elif event == "REQUEST_CHANGES":
            self.oracle.withdrawn(who)
            self._window.add("withdraw")

    async def dismiss(self, who: str, of: str) -> None:
        given = [
            one for one in self.pull.reviews if one.user.login == of and one.state in {"APPROVED", "CHANGES_REQUESTED"}
        ]
        if given:
            path = f"{self.here}/pulls/{self.issue.number}/reviews/{given[-1].id}/dismissals"
            if await self.ask(who, "PUT", path, {"message": "No."}) is not None:
                self.oracle.withdrawn(of)
                self._window.add("withdraw")

    async def say(self, who: str, verb: str, digest: str) -> None:
        """`/agent approve` or `merge` with a digest."""
        body = {"body": f"/agent {verb} {digest[:12]}{digest[64:]}"}
        done = await self.ask(who, "POST", f"{self.here}/issues/{self.issue.number}/comments", body)
        if done is not None and verb == "approve" and digest == self.oracle.current(self.pull):
            self.oracle.approved(who, self.pull, self.pull.head_sha)

    async def retarget(self, who: str, base: str) -> None:
        if await self.ask(who, "PATCH", f"{self.here}/pulls/{self.issue.number}", {"base": base}) is not None:
            self._window.add("retarget")

    async def grade(self, login: str, role: str) -> None:
        """Somebody's permission changes."""
        self.stage.repository.roles[login] = role
        self._window.add("demote")
        self.story.append(f"{login} may {role}")

    async def flip(self, who: str, *, draft: bool) -> None:
        query = _DRAFT if draft else _READY
        await self.ask(who, "POST", "/graphql", {"query": query, "variables": {"id": self.pull.node_id}})

    async def state(self, who: str, state: str) -> None:
        await self.ask(who, "PATCH", f"{self.here}/pulls/{self.issue.number}", {"state": state})

    async def merge(self, who: str) -> None:
        """A person presses the button."""
        await self.ask(who, "PUT", f"{self.here}/pulls/{self.issue.number}/merge", {"merge_method": "squash"})

    async def ask_again(self, who: str, reviewer: str) -> None:
        path = f"{self.here}/pulls/{self.issue.number}/requested_reviewers"
        await self.ask(who, "POST", path, {"reviewers": [reviewer]})

    async def update_branch(self, who: str) -> None:
        """The button that merges the base into the branch."""
        await self.ask(who, "PUT", f"{self.here}/pulls/{self.issue.number}/update-branch", {})

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
            await self.ask(who, "PUT", f"{self.here}/pulls/{made['number']}/merge", {"merge_method": "squash"})
            self._window.add("base")


Playing = AbstractAsyncContextManager[History]


@asynccontextmanager
async def playing(
    root: Path,
    mode: LandingMode = LandingMode.READY,
    *,
    mutant: Mutant | None = None,
    policies: Policies | None = None,
    files: Mapping[str, str] = MappingProxyType({}),
    before: Callable[[History], None] = lambda _: None,
) -> AsyncIterator[History]:
    """A history whose task has its draft and has heard everything so far; `before` runs before the task begins."""
    async with staged(root, mutant or Mutant(), policies, files=files) as stage:
        history = History(stage, mode)
        before(history)
        try:
            await history.begin()
            await history.deliver_all()
            yield history
        finally:
            await history.close()
