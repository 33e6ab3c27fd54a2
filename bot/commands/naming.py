"""Which task a person means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.domain.errors import UserError
from bot.domain.ids import TaskId
from bot.providers.store.port import TaskRecord
from bot.providers.store.sql import Store

_SUBJECT = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)#(?P<number>\d{1,18})")
_NAMED = 5
"""So many tasks are named to somebody who meant one."""
_ON_A_CLONE = ("run:", "eval:")


async def find(store: Store, name: str) -> tuple[str, TaskRecord | None, tuple[str, ...]]:
    """The task of this id, of which this is the unique beginning, or the newest of OWNER/REPO#NUMBER; its record (None for one on a local
    clone, of which only the ledger is kept); other tasks of the same issue or pull request, newest first.

    Raises UserError that says what there is when it is none or several.
    """
    subject = _SUBJECT.fullmatch(name)
    if subject is not None:
        found = [
            record
            for record in await store.tasks.numbered(int(subject["number"]))
            if record.spec.subject.repository.full_name.lower() == subject["name"].lower()
        ]
        if not found:
            raise unknown(name, await store.tasks.listing(_NAMED))
        return found[0].spec.id, found[0], tuple(record.spec.id for record in found[1:])
    exact = await store.tasks.get(TaskId(name))
    if exact is not None:
        return name, exact, ()
    begun = await store.tasks.beginning(name, _NAMED) if name else ()
    local = (
        tuple(task for task in await store.ledger.tasks(name, _NAMED) if task.startswith(_ON_A_CLONE)) if name else ()
    )
    if name in local:
        return name, None, ()
    several = (*(record.spec.id for record in begun), *local)
    if not several:
        raise unknown(name, await store.tasks.listing(_NAMED))
    if len(several) > 1:
        raise UserError(
            f"Several tasks begin with {_inert(name)}: {', '.join(several[:_NAMED])}"
            + (" and more." if len(several) >= _NAMED else "."),
            "Give more of the id.",
        )
    return several[0], begun[0] if begun else None, ()


def unknown(name: str, there: Sequence[TaskRecord]) -> UserError:
    """One sentence: what was asked for, and what there is."""
    if not there:
        return UserError(f"There is no task {_inert(name)}: nothing was worked here yet.")
    named = ", ".join(
        f"{record.spec.id} ({record.spec.subject.repository.full_name}#{record.spec.subject.number})"
        for record in there
    )
    return UserError(f"There is no task {_inert(name)}; the newest are {named}.", "`pullwright trace` lists them.")


def _inert(name: str) -> str:
    return repr(name)[1:-1] if not name.isprintable() else name or "without a name"
