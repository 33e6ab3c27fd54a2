"""Tasks: at most one live task per issue or pull request, one task per trigger, ever."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, insert, select, update

from bot.domain.action import StartTask
from bot.domain.ids import RepositoryId, TaskId
from bot.domain.money import MicroUsd
from bot.domain.task import Ending, Stage, TaskSpec
from bot.providers.store.codec import Codec
from bot.providers.store.database import Database, Taken
from bot.providers.store.deliveries import plain
from bot.providers.store.port import TaskRecord
from bot.providers.store.schema import TASK_SUBJECTS, TASKS

_SPEC = Codec(TaskSpec)
_ENDING = Codec(Ending)


def task_id(repository: RepositoryId, number: int, generation: int) -> TaskId:
    """The id of the n-th task of an issue or pull request."""
    return TaskId(f"task:{repository}:{number}:{generation}")


class SqlTasks:
    """The `Tasks` port on a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, action: StartTask, budget: MicroUsd) -> TaskSpec | None:
        """Atomically create the task. None: this trigger already has one, or the subject has a live task."""
        try:
            return await self._database.write(lambda c: _start(c, action, budget))
        except Taken:
            return None

    async def get(self, task: TaskId) -> TaskRecord | None:
        return await self._one(select(TASKS).where(TASKS.c.id == task))

    async def live(self, repository: RepositoryId, number: int) -> TaskRecord | None:
        """The live task of this issue, or of this pull request."""
        return await self._one(_of_subject(repository, number).where(TASK_SUBJECTS.c.live.is_(True)))

    async def latest(self, repository: RepositoryId, number: int) -> TaskRecord | None:
        """The newest task of this issue or pull request, live or ended."""
        return await self._one(_of_subject(repository, number).order_by(TASKS.c.seq.desc()).limit(1))

    async def triggered(self, repository: RepositoryId, trigger: str) -> bool:
        """True when this trigger has had its task."""
        same = select(TASKS.c.seq).where(TASKS.c.repository_id == repository, TASKS.c.trigger == trigger)
        return await self._database.read(lambda connection: connection.execute(same).first()) is not None

    async def move(self, task: TaskId, stage: Stage, note: str = "") -> None:
        """Record where the task is. A task that has ended stays ended; an ending goes through `end`."""
        if stage.ended:
            raise ValueError(f"{stage} is an ending; use end()")
        moved = (
            update(TASKS)
            .where(TASKS.c.id == task, TASKS.c.ending.is_(None))
            .values(stage=stage.value, note=plain(note))
        )
        await self._database.write(lambda connection: connection.execute(moved))

    async def published(self, task: TaskId, pull_number: int, head_sha: str) -> None:
        """The task's pull request and its head; from now on the task is found under this number too.

        Raises LookupError for an unknown task, ValueError when another live task holds this number.
        """
        try:
            await self._database.write(lambda c: _published(c, task, pull_number, head_sha))
        except Taken:
            raise ValueError(f"pull request {pull_number} belongs to another live task") from None

    async def end(self, task: TaskId, ending: Ending) -> None:
        """Record how it ended and free its subjects. The first ending stays."""
        if not ending.stage.ended:
            raise ValueError(f"{ending.stage} is not an ending")
        ended = (
            update(TASKS)
            .where(TASKS.c.id == task, TASKS.c.ending.is_(None))
            .values(stage=ending.stage.value, ending=_ENDING.encode(ending))
        )
        freed = update(TASK_SUBJECTS).where(TASK_SUBJECTS.c.task == task).values(live=False)

        def work(connection: Connection) -> None:
            connection.execute(ended)
            connection.execute(freed)

        await self._database.write(work)

    async def living(self) -> tuple[TaskRecord, ...]:
        """Every task that has not ended, oldest first."""
        return await self._several(select(TASKS).where(TASKS.c.ending.is_(None)).order_by(TASKS.c.seq))

    async def listing(self, limit: int = 100) -> tuple[TaskRecord, ...]:
        """The newest tasks, newest first."""
        return await self._several(select(TASKS).order_by(TASKS.c.seq.desc()).limit(limit))

    async def beginning(self, prefix: str, limit: int) -> tuple[TaskRecord, ...]:
        """Tasks whose id begins so, newest first."""
        begins = TASKS.c.id.startswith(prefix, autoescape=True)
        return await self._several(select(TASKS).where(begins).order_by(TASKS.c.seq.desc()).limit(limit))

    async def numbered(self, number: int) -> tuple[TaskRecord, ...]:
        """Tasks of the issues and pull requests of this number, in every repository, newest first."""
        of_number = select(TASK_SUBJECTS.c.task).where(TASK_SUBJECTS.c.number == number)
        return await self._several(select(TASKS).where(TASKS.c.id.in_(of_number)).order_by(TASKS.c.seq.desc()))

    async def repository_names(self, repositories: tuple[RepositoryId, ...]) -> dict[RepositoryId, str]:
        """What the newest task of each of them calls it; one without a task is left out."""
        newest = (
            select(func.max(TASKS.c.seq)).where(TASKS.c.repository_id.in_(repositories)).group_by(TASKS.c.repository_id)
        )
        records = await self._several(select(TASKS).where(TASKS.c.seq.in_(newest)))
        found = (record.spec.subject.repository for record in records)
        return {repository.id: repository.full_name for repository in found}

    async def _several(self, query: Select[Any]) -> tuple[TaskRecord, ...]:
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return tuple(_record(row) for row in rows)

    async def _one(self, query: Select[Any]) -> TaskRecord | None:
        row = await self._database.read(lambda connection: connection.execute(query).first())
        return None if row is None else _record(row)


def _of_subject(repository: RepositoryId, number: int) -> Select[Any]:
    here = and_(TASK_SUBJECTS.c.repository_id == repository, TASK_SUBJECTS.c.number == number)
    return select(TASKS).join(TASK_SUBJECTS, TASK_SUBJECTS.c.task == TASKS.c.id).where(here)


def _start(connection: Connection, action: StartTask, budget: MicroUsd) -> TaskSpec:
    repository, number = action.subject.repository.id, action.subject.number
    mine = and_(TASKS.c.repository_id == repository, TASKS.c.number == number)
    generation = connection.execute(select(func.coalesce(func.max(TASKS.c.generation), 0) + 1).where(mine)).scalar_one()
    spec = TaskSpec(
        id=task_id(repository, number, generation),
        subject=action.subject,
        requester=action.requester,
        title=action.title,
        request=action.request,
        budget=budget,
    )
    connection.execute(
        insert(TASKS).values(
            id=spec.id,
            repository_id=repository,
            number=number,
            generation=generation,
            trigger=action.trigger,
            spec=_SPEC.encode(spec),
            stage=Stage.QUEUED.value,
            note="",
        )
    )
    _claim(connection, spec.id, repository, number)
    return spec


def _claim(connection: Connection, task: TaskId, repository: int, number: int, *, live: bool = True) -> None:
    connection.execute(insert(TASK_SUBJECTS).values(repository_id=repository, number=number, task=task, live=live))


def _published(connection: Connection, task: TaskId, pull_number: int, head_sha: str) -> None:
    row = connection.execute(select(TASKS.c.repository_id, TASKS.c.ending).where(TASKS.c.id == task)).first()
    if row is None:
        raise LookupError(f"no task {task}")
    connection.execute(update(TASKS).where(TASKS.c.id == task).values(pull_number=pull_number, head_sha=head_sha))
    known = select(TASK_SUBJECTS.c.task).where(
        TASK_SUBJECTS.c.repository_id == row.repository_id,
        TASK_SUBJECTS.c.number == pull_number,
        TASK_SUBJECTS.c.task == task,
    )
    if connection.execute(known).first() is not None:
        return
    _claim(connection, task, row.repository_id, pull_number, live=row.ending is None)


def _record(row: Row[Any]) -> TaskRecord:
    return TaskRecord(
        spec=_SPEC.decode(row.spec),
        stage=Stage(row.stage),
        note=row.note,
        pull_number=row.pull_number,
        head_sha=row.head_sha,
        ending=None if row.ending is None else _ENDING.decode(row.ending),
    )
