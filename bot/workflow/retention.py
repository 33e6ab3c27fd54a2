"""What is over is forgotten after a while: bodies of deliveries, the engine's rows of what has ended, large values no row names.

Nothing does that by itself (specs/durable.md §1.k). Tasks, their costs and approvals stay, and so does what refuses a replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dbos import DBOS

from bot.domain.errors import Transient
from bot.providers.store.database import answering
from bot.providers.store.port import Deliveries
from bot.workflow.values import Values

_OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_UNDER_WAY = ["ENQUEUED", "PENDING", "DELAYED"]
_WHOLE = "task"
_ALONE = ["route", "onboard", "summarise"]
"""Their children live on: a route starts a task."""

_TOGETHER = 200


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much of what was forgotten."""

    bodies: int
    workflows: int
    values: int


async def forget(before: datetime, deliveries: Deliveries, values: Values) -> Forgotten:
    """Forget what was over before then. Tasks under way keep everything. Raises Transient when a database does not answer."""
    bodies = await deliveries.purge(before=before.isoformat())
    with answering("the engine's record"):
        workflows = await _forget_workflows(before)
        oldest = await _oldest(before)
    return Forgotten(bodies, workflows, values.forget(oldest.timestamp()))


async def _forget_workflows(before: datetime) -> int:
    """With a task go its segments, which without it mean nothing."""
    gone = 0
    for names, with_children in (([_WHOLE], True), (_ALONE, False)):
        while found := await DBOS.list_workflows_async(
            name=names,
            status=_OVER,
            completed_before=before.isoformat(),
            limit=_TOGETHER,
            load_input=False,
            load_output=False,
        ):
            ids = [flow.workflow_id for flow in found]
            await DBOS.delete_workflows_async(ids, delete_children=with_children)
            gone += len(ids)
    return gone


async def _oldest(before: datetime) -> datetime:
    """Since when a row may name a value: the beginning of the oldest task that is kept, or of anything under way."""
    moment = before
    for names, status in (([_WHOLE], None), (None, _UNDER_WAY)):
        found = await DBOS.list_workflows_async(name=names, status=status, limit=1, load_input=False, load_output=False)
        for flow in found:
            if flow.created_at is None:
                raise Transient("the engine's record says not when a workflow began")
            moment = min(moment, datetime.fromtimestamp(flow.created_at / 1000, before.tzinfo))
    return moment
