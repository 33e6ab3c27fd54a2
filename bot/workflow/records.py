"""What segments hand each other. Frozen values; they are written to the database, so a field is only ever added with a default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.action import TaskMessage
from bot.domain.change import Change, TreeEntry
from bot.domain.decision import Decision
from bot.domain.egress import Attempt
from bot.domain.ids import CommitId, DeliveryId, Digest, NodeId, StepId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan, Step
from bot.domain.pull import Approval
from bot.domain.repository import LandingMode, RepositorySettings
from bot.domain.verdict import Failure, TestReport, Verdict


@dataclass(frozen=True, slots=True)
class Prepared:
    """The pinned base, the settings that hold for this task, and what passes before anything is changed."""

    base_ref: str
    base: CommitId
    tree: TreeId
    settings: RepositorySettings
    baseline: TestReport
    step_baseline: TestReport
    conventions_path: str = ""
    conventions: str = ""
    rounds: int = 5
    """How many rounds of review are worked in at most."""
    notice: str = ""
    """What people should know of where the work starts."""
    egress: tuple[Attempt, ...] = ()
    """What set-up and tests asked the way out for."""


@dataclass(frozen=True, slots=True)
class Coded:
    """The tree after a step."""

    tree: TreeId
    summary: str
    attempts: int
    calls: int
    egress: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeOrder:
    """One step to work from `start`; `done` are the steps before it. `key` makes its checkpoints unique."""

    key: str
    prepared: Prepared
    plan: Plan
    step: Step
    start: TreeId
    done: tuple[StepId, ...] = ()
    allowed: MicroUsd | None = None
    """What the task may have spent in all when this is done; None: its budget. A round of review has a budget of its own."""


@dataclass(frozen=True, slots=True)
class VerifyOrder:
    """A tree to verify against the task's base."""

    prepared: Prepared
    tree: TreeId


@dataclass(frozen=True, slots=True)
class Verified:
    """The verdict on a change; `failures` empty means that it is a verified change."""

    change: Change
    verdict: Verdict
    artefacts: tuple[TreeEntry, ...] = ()
    """What the checks left to be seen; the bytes are in the mirror."""
    not_kept: tuple[str, ...] = ()
    """Why others of what they left are not shown."""
    egress: tuple[Attempt, ...] = ()
    """What this check, and the work before it, asked the way out for."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        return self.verdict.failures


@dataclass(frozen=True, slots=True)
class PublishOrder:
    """A verified change to publish: as the first draft, or (with `head`) as a further commit on it."""

    prepared: Prepared
    plan: Plan
    verified: Verified
    parent: CommitId
    pull_number: int | None = None
    allowed: MicroUsd | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What is on GitHub now."""

    number: int
    node_id: NodeId
    branch: str
    head: CommitId
    tree: TreeId
    digest: Digest
    """What people were shown; a review counts only for the change they could see."""
    base: CommitId | None = None
    base_ref: str = ""
    """The base the digest was computed with; without one, the task's own."""
    moved: bool = False
    """Somebody pushed meanwhile: nothing was published, `head` is theirs."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message to a task, with what only the receiver of the delivery knew."""

    message: TaskMessage
    delivery: DeliveryId
    received_at: str


@dataclass(frozen=True, slots=True)
class ReviewState:
    """What the review loop remembers between messages."""

    published: Published
    verified_trees: tuple[TreeId, ...]
    failed_trees: tuple[TreeId, ...] = ()
    approval: Approval | None = None
    others: tuple[Approval, ...] = ()
    """Approvals by further people; with more than one to ask, none is lost when the next comes."""

    lapsed: Approval | None = None
    """The last approval that became void: what changed since is shown until somebody approves again."""

    def approvals(self) -> tuple[Approval, ...]:
        return (*((self.approval,) if self.approval is not None else ()), *self.others)

    def showing(self, digest: Digest | None) -> ReviewState:
        """With this as what people see; None: as before."""
        return self if digest is None else replace(self, published=replace(self.published, digest=digest))

    def checked(self, tree: TreeId, *, passed: bool) -> ReviewState:
        """With what the checks said of a tree; what they said last counts."""
        good = tuple(each for each in self.verified_trees if each != tree)
        bad = tuple(each for each in self.failed_trees if each != tree)
        if passed:
            return replace(self, verified_trees=(*good, tree), failed_trees=bad)
        return replace(self, verified_trees=good, failed_trees=(*bad, tree))

    def void(self) -> ReviewState:
        """Without any approval."""
        return replace(self, approval=None, others=(), lapsed=self.approval or self.lapsed)


@dataclass(frozen=True, slots=True)
class ExamineOrder:
    """A message to examine against the pull request as it is now."""

    state: ReviewState
    envelope: Envelope
    prepared: Prepared


@dataclass(frozen=True, slots=True)
class Examined:
    """What the gate says now, by the best approval there is, the message's own included. `moved` names a head we did not push."""

    decision: Decision
    approval: Approval | None = None
    moved: CommitId | None = None
    retest: TreeId | None = None
    """The tree a merge would have now; set when the base moved and the checks have not run on it."""
    base: CommitId | None = None
    merged: bool = False
    open: bool = True
    keeps: bool = False
    """Not allowed yet, but nothing is wrong with the approvals: others have to approve too, or a rule forbids the change."""
    others: tuple[Approval, ...] = ()
    given: bool = False
    """This very message gave an approval that holds."""
    request: str = ""
    """What a message that asks for work asks for: cleaned and fenced, with the comments on lines of its review."""
    digest: Digest | None = None
    """The change as it is now; from here on it is what people are shown."""
    since: str = ""
    """What changed since the approval that does not hold any more, as a paragraph for people."""
    hold: str = ""
    """Why work that was asked for is not taken up now."""
    allowed: MicroUsd | None = None
    """What the task may have spent in all after this round."""
    note: str = ""
    """Why the message did not count although an earlier approval stands."""


@dataclass(frozen=True, slots=True)
class AdoptOrder:
    """A head somebody else pushed to the bot's branch: verify it, so that it may be approved."""

    prepared: Prepared
    plan: Plan
    published: Published
    head: CommitId


@dataclass(frozen=True, slots=True)
class Adopted:
    """The verdict on the new head, and the digest an approval now has to be for."""

    published: Published
    verified: Verified


@dataclass(frozen=True, slots=True)
class LandOrder:
    state: ReviewState
    approval: Approval
    mode: LandingMode
    base: CommitId | None = None
    """The task's own base, whose rules hold."""


@dataclass(frozen=True, slots=True)
class Landed:
    """How landing went; see `stages/landing/run.py`."""

    decision: Decision
    ready: bool
    merged: CommitId | None
    merged_tree: TreeId | None
    note: str
    alarm: bool
