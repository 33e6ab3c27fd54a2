"""The store role: the product's own tables. DBOS keeps its own beside them (workflow room)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from bot.domain.action import StartTask
from bot.domain.event import Actor
from bot.domain.ids import DeliveryId, RepositoryId, TaskId, UserId
from bot.domain.money import MicroUsd
from bot.domain.pull import Approval
from bot.domain.spending import Tally
from bot.domain.task import Ending, Stage, TaskSpec


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook delivery as received: the verified raw body and the event header."""

    id: DeliveryId
    event: str
    body: bytes
    received_at: str


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task as `/agent status` and the dashboard show it."""

    spec: TaskSpec
    stage: Stage
    note: str
    pull_number: int | None
    head_sha: str | None
    ending: Ending | None


class Deliveries(Protocol):
    """Kept at least 30 days; an id is accepted once."""

    async def accept(self, delivery: Delivery) -> bool:
        """Store it. False: this id, or a byte-equal body of the same event, is already here (replay)."""
        ...

    async def get(self, delivery: DeliveryId) -> Delivery | None: ...
    async def finish(self, delivery: DeliveryId, note: str) -> None: ...
    async def finish_all(self, notes: Mapping[DeliveryId, str]) -> None:
        """As `finish` each, in one transaction."""
        ...

    async def unfinished(self) -> tuple[DeliveryId, ...]: ...
    async def purge(self, *, before: str) -> int:
        """Empty the bodies of finished deliveries received before this ISO time; how many. They are refused as before."""
        ...


class Tasks(Protocol):
    """At most one live task per issue or pull request; one task per trigger, ever."""

    async def start(self, action: StartTask, budget: MicroUsd) -> TaskSpec | None:
        """Atomically create the task. None: this trigger already has one, or the subject has a live task."""
        ...

    async def get(self, task: TaskId) -> TaskRecord | None: ...
    async def live(self, repository: RepositoryId, number: int) -> TaskRecord | None:
        """The live task of this issue, or of this pull request."""
        ...

    async def latest(self, repository: RepositoryId, number: int) -> TaskRecord | None: ...
    async def triggered(self, repository: RepositoryId, trigger: str) -> bool:
        """True when this trigger has had its task."""
        ...

    async def move(self, task: TaskId, stage: Stage, note: str = "") -> None: ...
    async def published(self, task: TaskId, pull_number: int, head_sha: str) -> None: ...
    async def end(self, task: TaskId, ending: Ending) -> None: ...
    async def living(self) -> tuple[TaskRecord, ...]:
        """Every task that has not ended, oldest first."""
        ...

    async def listing(self, limit: int = 100) -> tuple[TaskRecord, ...]: ...


class Requests(Protocol):
    """Requests for work that were taken up: tasks and rounds of review."""

    async def note(self, key: str, *, user: UserId, repository: RepositoryId, at: int) -> None:
        """The same key again changes nothing. `at` in seconds since 1970."""
        ...

    async def tally(self, user: UserId, repository: RepositoryId, *, at: int, but: str = "") -> Tally:
        """What was asked for and spent until then; the request `but` itself is not counted."""
        ...


class Approvals(Protocol):
    """Append-only."""

    async def record(self, task: TaskId, approval: Approval) -> None: ...
    async def last(self, task: TaskId) -> Approval | None: ...


@dataclass(frozen=True, slots=True)
class ApprovedTask:
    """An approval in the log's order, and the task it is of: who asked for the work, where, and whether it landed."""

    number: int
    task: TaskId
    approval: Approval
    requester: Actor
    repository: str
    landed: bool


class Log(Protocol):
    """What an audit reads of everything that is kept. Raises Transient when there is no such database."""

    async def approvals(self) -> tuple[ApprovedTask, ...]: ...
    async def broken_at(self) -> int | None:
        """The first approval that does not follow from those before it."""
        ...

    async def landed_without(self) -> tuple[TaskId, ...]:
        """Tasks that landed without an approval in the log."""
        ...

    async def received(self) -> tuple[str, ...]:
        """When deliveries were received, in the order in which they were stored."""
        ...


@dataclass(frozen=True, slots=True)
class Sending:
    """A batch that is about to be sent: the keys in it, the newest batch that the service had before, and when, in seconds since
    1970. With it the batch is found again when its id was never heard."""

    keys: tuple[str, ...]
    before: str
    at: int


class Summaries(Protocol):
    """Of one repository: summaries of files by the key of their blob, their vectors, batches under way, and what all that cost."""

    async def texts(self) -> Mapping[str, str]: ...
    async def vectors(self, space: bytes) -> Mapping[str, bytes]:
        """By key, of the summaries that are embedded in this space."""
        ...

    async def without_vector(self, space: bytes) -> tuple[tuple[str, str], ...]:
        """Key and text of summaries that are not embedded in this space yet, in order."""
        ...

    async def batches(self) -> tuple[str, ...]:
        """Batches that were sent and not collected."""
        ...

    async def sending(self) -> Sending | None:
        """The batch of which nothing was heard after it was about to be sent."""
        ...

    async def spent(self) -> MicroUsd: ...
    async def begin(self, sending: Sending, *, own: Collection[str], spent: MicroUsd) -> bool:
        """Remember this before it is sent. False when that would pay for something twice, or past the budget: somebody else is about
        to send, has a batch under way that is none of `own`, or something was paid since it was `spent`."""
        ...

    async def sent(self, batch: str) -> None:
        """The batch that was about to be sent has this id."""
        ...

    async def not_sent(self) -> None:
        """The batch that was about to be sent never was."""
        ...

    async def collected(self, batch: str, texts: Mapping[str, str], cost: MicroUsd) -> None:
        """Keep the answers of a batch and what they cost, and forget the batch: all or nothing, and once."""
        ...

    async def embedded(self, space: bytes, vectors: Mapping[str, bytes], cost: MicroUsd) -> None:
        """Keep vectors and what they cost."""
        ...
