"""The stage's hands: reads what a decision needs, and decides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.domain.action import Action, Nothing
from bot.domain.event import Commented, Event, GroundGained, GroundLost, Ignored, Labelled, Reviewed, Subject
from bot.domain.ids import UserId
from bot.domain.pull import Permission
from bot.domain.task import TaskSpec
from bot.providers.forge.port import ForgeGone, Forges
from bot.providers.store.port import Delivery, TaskRecord, Tasks
from bot.stages.intake.body import BodyFault, read_body
from bot.stages.intake.decide import IntakeFacts, IntakeSettings, decide, needs_permission, trigger
from bot.stages.intake.extract import extract


@dataclass(frozen=True, slots=True)
class _Known:
    """What our own tables say about a subject."""

    live: TaskRecord | None
    latest: TaskRecord | None
    triggered: bool


@dataclass(frozen=True, slots=True)
class _Open:
    """What the decision hangs on yet: the right of whoever did this."""

    event: Event
    facts: IntakeFacts


async def decide_delivery(delivery: Delivery, *, forges: Forges, tasks: Tasks, settings: IntakeSettings) -> Action:
    """What to do about a stored delivery. Reads as little as the decision needs; raises Transient, never for the payload's sake."""
    seen = await _look(delivery, forges, tasks, settings)
    if not isinstance(seen, _Open):
        return seen
    try:
        permission = await _permission(forges, seen.event)
    except ForgeGone as gone:
        return Nothing(f"the App has no access to this repository ({gone})")
    return decide(seen.event, replace(seen.facts, permission=permission))


async def glance(delivery: Delivery, *, forges: Forges, tasks: Tasks, settings: IntakeSettings) -> Action | None:
    """The same decision where our own tables suffice for it; None where GitHub has to be asked about somebody."""
    seen = await _look(delivery, forges, tasks, settings)
    return None if isinstance(seen, _Open) else seen


async def _look(delivery: Delivery, forges: Forges, tasks: Tasks, settings: IntakeSettings) -> Action | _Open:
    payload = read_body(delivery.body)
    if isinstance(payload, BodyFault):
        return Nothing(payload.reason)
    event = extract(delivery.event, payload)
    if isinstance(event, Ignored):
        return Nothing(event.reason)
    if isinstance(event, GroundLost | GroundGained):
        return decide(event, IntakeFacts(UserId(0), 0, settings.label))
    facts = IntakeFacts((await forges.bot()).id, await forges.app_id(), settings.label)
    if isinstance(event, Labelled | Commented) and not needs_permission(event, facts):
        return decide(event, facts)
    known = await _known(tasks, event.subject, trigger(event))
    if (stranger := _of_another_installation(event.subject, known)) is not None:
        return stranger
    facts = replace(
        facts,
        live=_spec(known.live),
        stage=known.live.stage if known.live else None,
        latest=_spec(known.latest),
        triggered=known.triggered,
    )
    return _Open(event, facts) if needs_permission(event, facts) else decide(event, facts)


async def _known(tasks: Tasks, subject: Subject, named: str | None) -> _Known:
    repository, number = subject.repository.id, subject.number
    latest = await tasks.latest(repository, number)
    live = None if latest is None else await tasks.live(repository, number)
    latest = live or latest
    triggered = latest is not None and named is not None and await tasks.triggered(repository, named)
    return _Known(live, latest, triggered)


async def _permission(forges: Forges, event: Event) -> Permission | None:
    """What the sender may do now, read from GitHub."""
    if not isinstance(event, Labelled | Commented | Reviewed):
        return None
    person = event.reviewer if isinstance(event, Reviewed) else event.actor
    repository = event.subject.repository
    forge = await forges.open(repository.installation_id, repository.id)
    return await forge.permission(person.login)


def _of_another_installation(subject: Subject, known: _Known) -> Nothing | None:
    """A repository that changed hands keeps its number; its old task is not the new owner's to command."""
    live = _spec(known.live)
    if live is None or live.subject.repository.installation_id == subject.repository.installation_id:
        return None
    return Nothing("the task began under another installation of the App")


def _spec(record: TaskRecord | None) -> TaskSpec | None:
    return None if record is None else record.spec
