"""A task on a person's own clone, without GitHub: the same segments and rules; nothing is durable, the person waits for it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.custody.digest import change_digest
from bot.custody.git import GitError
from bot.custody.mirror import Author
from bot.domain.action import Command, CommandMessage, Verb
from bot.domain.errors import CustodyError, Transient, UserError
from bot.domain.event import Actor
from bot.domain.ids import CommitId, DeliveryId, Digest
from bot.domain.plan import Plan
from bot.domain.task import Ending, Stage, TaskSpec
from bot.providers.forge.port import Forge
from bot.providers.journal.direct import DirectJournal
from bot.providers.llm.port import ModelBusy, ModelRejected
from bot.stages.publishing import names
from bot.workflow import journal, judging, segments, texts
from bot.workflow.building import Building, Built, Progress
from bot.workflow.context import TaskContext
from bot.workflow.journal import TaskEnded
from bot.workflow.records import Coded, CodeOrder, Envelope, Prepared, PublishOrder, Verified, VerifyOrder
from bot.workflow.services import Services

HASH = re.compile(r"[0-9a-f]{12,64}")
AUTHOR = Author("Pullwright", "pullwright@localhost")


class LocalContext(TaskContext):
    """A context whose repository is a clone on this machine: the last commit of `branch`, never the work tree. `settings` hold where
    that commit has none."""

    def __init__(
        self, services: Services, spec: TaskSpec, clone: Path, branch: str, *, settings: bytes | None = None
    ) -> None:
        super().__init__(services, spec, DirectJournal())
        self._clone = clone
        self._branch = branch
        self._settings = settings

    async def forge(self) -> Forge:
        raise RuntimeError("a task on a local clone has no GitHub")

    async def publisher(self) -> Actor:
        return self.spec.requester

    async def pin(self) -> tuple[str, CommitId]:
        return self._branch, await self.mirror.from_directory(self._clone, self._branch)

    async def settings_at(self, base: CommitId) -> bytes | None:
        given = await super().settings_at(base)
        return self._settings if given is None else given


@dataclass(frozen=True, slots=True)
class Terminal:
    """How the person is told and asked. `ask` gives what was typed after a question; nothing at the end of input. None: nobody is
    there, so that no plan waits."""

    tell: Callable[[Stage, Progress], None]
    ask: Callable[[str], Awaitable[str]] | None


class LocalBuilder:
    """The `Builder` of a local task."""

    def __init__(self, context: LocalContext, terminal: Terminal) -> None:
        self._context = context
        self._terminal = terminal
        self._asked = 0

    async def prepare(self) -> Prepared:
        prepared = await segments.prepare(self._context)
        if self._terminal.ask is None:
            return replace(prepared, settings=replace(prepared.settings, plan_gate=False))
        return prepared

    async def plan(self, prepared: Prepared) -> Plan:
        return await segments.plan(self._context, prepared)

    async def code(self, order: CodeOrder) -> Coded:
        return await segments.code(self._context, order)

    async def verify(self, _key: str, order: VerifyOrder) -> Verified:
        return await segments.verify(self._context, order)

    async def tell(self, stage: Stage, progress: Progress) -> None:
        self._terminal.tell(stage, progress)

    async def receive(self) -> Envelope | None:
        """What the person types where a plan waits for its hash, as the command it would be on GitHub."""
        if self._terminal.ask is None:
            return None
        typed = await self._terminal.ask("First 12 characters of the plan's hash, or nothing to stop: ")
        self._asked += 1
        command = Command(Verb.APPROVE, typed if HASH.fullmatch(typed) else "no hash") if typed else Command(Verb.STOP)
        message = CommandMessage(self._context.spec.requester, command, None)
        return Envelope(message, DeliveryId(f"terminal:{self._asked}"), "")


FAULTS = (TaskEnded, UserError, CustodyError, Transient, ModelBusy, ModelRejected, GitError)
"""What `propose` raises where it ends before."""


def ending_of(fault: Exception) -> Ending:
    """How the task ended by one of them."""
    return fault.ending if isinstance(fault, TaskEnded) else journal.ending_of(fault)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A checked change that waits for a person: the commit is in the mirror only."""

    built: Built
    commit: CommitId
    digest: Digest
    diff: str
    branch: str


async def propose(context: LocalContext, terminal: Terminal) -> Proposal:
    """Make the change and judge it by the policy. Raises one of `FAULTS` where it ends before."""
    built = await Building(LocalBuilder(context, terminal)).build()
    prepared, change, spec = built.prepared, built.verified.change, context.spec
    order = PublishOrder(prepared, built.plan, built.verified, prepared.base)
    branch = names.branch(spec.subject.number, spec.title, spec.id)
    decision = await judging.may_publish(context, order, branch)
    if not decision.allowed:
        raise TaskEnded(texts.policy_denied(decision))
    commit = await context.mirror.commit_tree(
        change.tree,
        [prepared.base],
        message=f"{names.title(spec.title)}\n\n{built.plan.summary}\n",
        author=AUTHOR,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    digest = await change_digest(context.mirror, prepared.base_ref, prepared.base, commit)
    diff = await context.mirror.human_diff(change.base_tree, change.tree)
    return Proposal(built, commit, digest.value, diff, branch)
