"""Routes one delivery: decide, then do. Each act is a step, so a redelivered or crashed delivery does nothing twice."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from bot.domain.action import (
    Action,
    Answer,
    ClosedMessage,
    CommandMessage,
    Nothing,
    Onboard,
    StartTask,
    TaskMessage,
    TellTask,
    TellTasks,
    Verb,
)
from bot.domain.event import Closing, Subject
from bot.domain.ids import DeliveryId, TaskId
from bot.domain.task import Ending, TaskSpec
from bot.policy.facts import MayStart, Person
from bot.policy.loops import held
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.providers.journal.port import Journal
from bot.providers.store.port import Delivery, TaskRecord
from bot.stages.intake import texts
from bot.stages.intake.decide import IntakeSettings
from bot.stages.intake.run import decide_delivery
from bot.stages.publishing.run import find_own
from bot.workflow import texts as endings
from bot.workflow.onboarding import Arrival
from bot.workflow.records import Envelope
from bot.workflow.services import Services

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Post:
    """How the router reaches tasks: durable, and idempotent by id."""

    start: Callable[[TaskSpec], Awaitable[None]]
    send: Callable[[TaskId, Envelope], Awaitable[None]]
    onboard: Callable[[DeliveryId, Arrival], Awaitable[None]]
    summarise: Callable[[str, Arrival], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Decided:
    action: Action


@dataclass(frozen=True, slots=True)
class _Started:
    spec: TaskSpec | None
    refused: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    record: TaskRecord | None


@dataclass(frozen=True, slots=True)
class _Several:
    tasks: tuple[TaskId, ...]


def _at_once(message: TaskMessage, record: TaskRecord) -> Ending | None:
    """The ending that a message brings whatever the task does just now.

    A merge closes the issue as well, so with a pull request the task looks first which of the two it was.
    """
    match message:
        case CommandMessage(actor=actor, command=command) if command.verb is Verb.STOP:
            return endings.stopped(actor.login)
        case ClosedMessage(actor=actor, why=why) if why is not Closing.ISSUE_CLOSED or record.pull_number is None:
            return endings.closed(why, actor.login)
        case _:
            return None


async def route(delivery_id: DeliveryId, *, services: Services, journal: Journal, post: Post) -> str:
    """Carry out what the delivery asks for; a line for the log."""
    delivery = await services.deliveries.get(delivery_id)
    if delivery is None:
        return "not stored"
    settings = IntakeSettings(label=services.label)
    decided = await journal.step(
        "decide",
        lambda: _decide(delivery, services, settings),
        _Decided,
    )
    note = await _Router(delivery, services, journal, post).act(decided.action)
    await journal.step("finish", lambda: _finish(services, delivery_id, note), bool)
    log.info("delivery routed", delivery=delivery_id, note=note)
    return note


async def _decide(delivery: Delivery, services: Services, settings: IntakeSettings) -> _Decided:
    return _Decided(await decide_delivery(delivery, forges=services.forges, tasks=services.tasks, settings=settings))


async def _finish(services: Services, delivery: DeliveryId, note: str) -> bool:
    await services.deliveries.finish(delivery, note[:500])
    return True


@dataclass(frozen=True, slots=True)
class _Router:
    delivery: Delivery
    services: Services
    journal: Journal
    post: Post

    async def act(self, action: Action) -> str:
        match action:
            case Nothing(reason=reason):
                return f"nothing: {reason}"
            case StartTask():
                return await self._start(action)
            case TellTask():
                return await self._tell(action)
            case TellTasks():
                return await self._tell_all(action)
            case Onboard():
                for repository in action.repositories:
                    await self.post.onboard(self.delivery.id, Arrival(action.installation, repository))
                return f"onboarding {len(action.repositories)} repositories"
            case Answer():
                await self._answer(action)
                return f"answered: {action.topic}"

    async def _start(self, action: StartTask) -> str:
        started = await self.journal.step("start", lambda: self._create(action), _Started)
        if started.refused:
            topic = "held" if started.held else "not_allowed"
            await self._answer(Answer(action.subject, topic, started.refused, action.comment_id))
            return f"refused: {started.refused}"
        if started.spec is None:
            return "nothing: this trigger has its task, or one is running"
        await self.post.start(started.spec)
        repository = started.spec.subject.repository
        await self.post.summarise(self.delivery.id, Arrival(repository.installation_id, repository.id))
        return f"started {started.spec.id}"

    async def _create(self, action: StartTask) -> _Started:
        """The new task; or the one a crashed run of this step made already, which is started again by its id."""
        repository = action.subject.repository
        forge = await self.services.forges.open(repository.installation_id, repository.id)
        person = Person(action.requester, await forge.permission(action.requester.login))
        decision = self.services.policies.decide(MayStart(person, repository.id))
        if not decision.allowed:
            return _Started(None, " ".join(reason.text for reason in decision.against()))
        if hold := await self._held(action):
            return _Started(None, hold, held=True)
        spec = await self.services.tasks.start(action, self.services.budget)
        if spec is not None:
            return _Started(spec)
        live = await self.services.tasks.live(action.subject.repository.id, action.subject.number)
        return _Started(live.spec if live is not None else None)

    async def _held(self, action: StartTask) -> str:
        """Why a loop breaker does not let this start now; a start that is let through is counted."""
        user, repository, now = action.requester.id, action.subject.repository.id, int(time.time())
        key = f"start:{repository}:{action.trigger}"
        requests = self.services.requests
        tally = await requests.tally(user, repository, at=now, but=key)
        hold = held(self.services.loops, tally, f"@{action.requester.login}", self.services.budget)
        if not hold:
            await requests.note(key, user=user, repository=repository, at=now)
        return hold

    async def _tell(self, action: TellTask) -> str:
        found = await self.journal.step("find", lambda: self._find(action.subject), _Found)
        record, message = found.record, action.message
        if isinstance(message, CommandMessage) and message.command.verb in {Verb.STATUS, Verb.RETRY}:
            await self._answer(Answer(action.subject, "status", "", message.comment_id))
            return "answered: status"
        if record is None or record.ending is not None:
            if action.answer_without_task:
                comment = message.comment_id if isinstance(message, CommandMessage) else None
                await self._answer(Answer(action.subject, "no_task", "", comment))
            return "nothing: no live task"
        if (ending := _at_once(message, record)) is not None:
            await self.journal.step("stop", lambda: self._stop(record.spec.id, ending), bool)
        envelope = Envelope(message, self.delivery.id, self.delivery.received_at)
        await self.post.send(record.spec.id, envelope)
        if action.also is not None:
            await self._answer(action.also)
        return f"told {record.spec.id}: {message.kind}"

    async def _find(self, subject: Subject) -> _Found:
        """The live task of this issue or pull request, else its newest one."""
        tasks = self.services.tasks
        live = await tasks.live(subject.repository.id, subject.number)
        return _Found(live or await tasks.latest(subject.repository.id, subject.number))

    async def _tell_all(self, action: TellTasks) -> str:
        """Each live task there hears of it, and ends at once."""
        found = await self.journal.step("find", lambda: self._all(action), _Several)
        ending = endings.closed(action.message.why, action.message.actor.login)
        for task in found.tasks:
            await self.journal.step(f"stop:{task}", lambda task=task: self._stop(task, ending), bool)  # type: ignore[misc]
            delivery = DeliveryId(f"{self.delivery.id}:{task}")
            await self.post.send(task, Envelope(action.message, delivery, self.delivery.received_at))
        return f"told {len(found.tasks)} tasks: {action.message.why.value}"

    async def _all(self, action: TellTasks) -> _Several:
        live = [record.spec for record in await self.services.tasks.living()]
        mine = (
            spec.id
            for spec in live
            if spec.subject.repository.id in action.repositories
            or (not action.repositories and spec.subject.repository.installation_id == action.installation)
        )
        return _Several(tuple(mine))

    async def _stop(self, task: TaskId, ending: Ending) -> bool:
        """End it in the store at once: every further act of the task looks there first."""
        await self.services.tasks.end(task, ending)
        return True

    async def _answer(self, answer: Answer) -> None:
        await self.journal.step("answer", lambda: self._post_answer(answer), bool)

    async def _post_answer(self, answer: Answer) -> bool:
        """Post the answer once: our own comment that carries this delivery's mark is looked for first."""
        repository = answer.subject.repository
        forge = await self.services.forges.open(repository.installation_id, repository.id)
        reply = await self._reply(answer)
        try:
            if reply.text is not None:
                marker = f"<!-- pullwright:answer:{self.delivery.id} -->"
                bot = await self.services.forges.bot()
                if await find_own(forge, answer.subject.number, bot_login=bot.login, marker=marker) is None:
                    await forge.create_comment(answer.subject.number, f"{marker}\n{reply.text}")
            if reply.reaction is not None and answer.comment_id is not None:
                await forge.react(answer.comment_id, reply.reaction)
        except (ForgeRefused, ForgeGone) as refusal:
            log.info("answer not posted", reason=str(refusal))
        return True

    async def _reply(self, answer: Answer) -> texts.Reply:
        if answer.topic == "not_allowed":
            return texts.Reply(text=f"The policy does not allow this: {answer.detail}")
        if answer.topic == "held":
            return texts.Reply(text=endings.held(answer.detail))
        if answer.topic != "status":
            return texts.reply(answer)
        record = (await self._find(answer.subject)).record
        if record is None:
            return texts.Reply(text=texts.no_task())
        totals = await self.services.ledger.totals(record.spec.id)
        return texts.Reply(text=texts.status(record, totals.spent))
