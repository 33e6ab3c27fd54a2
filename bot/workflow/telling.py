"""Tells people where a task is: the store for the dashboard, the one sticky comment on GitHub."""

from __future__ import annotations

from dataclasses import replace

import structlog

from bot.domain.task import Ending, Stage
from bot.prompting import publishable
from bot.providers.forge.port import ForgeGone, ForgeRefused
from bot.stages.publishing import texts as publishing_texts
from bot.stages.publishing.run import post_sticky
from bot.stages.publishing.texts import StatusView
from bot.workflow import showing
from bot.workflow.building import Progress
from bot.workflow.context import TaskContext

log = structlog.get_logger()


async def tell(context: TaskContext, stage: Stage, progress: Progress) -> bool:
    """Record the stage and edit the sticky comment."""
    await context.services.tasks.move(context.spec.id, stage, progress.note)
    await _post(context, _view(context, stage, progress, None), progress)
    return True


async def end(context: TaskContext, ending: Ending, progress: Progress) -> bool:
    """Record the ending, say it in the sticky comment, take the trigger label off so that it can be put on again."""
    tasks = context.services.tasks
    await tasks.end(context.spec.id, ending)
    if progress.pull_number is None and (record := await tasks.get(context.spec.id)) is not None:
        progress = replace(progress, pull_number=record.pull_number)  # a fault before a replay came to it
    await _post(context, _view(context, ending.stage, replace(progress, note=""), ending), progress)
    try:
        await (await context.forge()).remove_label(context.spec.subject.number, context.services.label)
    except (ForgeRefused, ForgeGone) as refusal:
        log.info("label not removed", task=context.spec.id, reason=str(refusal))
    if ending.stage is not Stage.LANDED and progress.pull_number is not None:
        await showing.let_go(context, progress.pull_number)
    return True


def _view(context: TaskContext, stage: Stage, progress: Progress, ending: Ending | None) -> StatusView:
    titles = tuple(publishable(step.title) for step in progress.plan.steps) if progress.plan is not None else ()
    safe = ending and replace(ending, reason=publishable(ending.reason))
    return StatusView(
        task=context.spec.id,
        stage=stage,
        plan=progress.plan,
        plan_titles=titles,
        done=progress.done,
        working=progress.working,
        pull_number=progress.pull_number,
        note=publishable(progress.note),
        ending=safe,
        egress=progress.egress,
    )


async def _post(context: TaskContext, view: StatusView, progress: Progress) -> None:
    """A comment that cannot be posted (locked issue) never stops the work."""
    view = replace(view, cost=await context.cost(progress.allowed))
    try:
        bot = await context.services.forges.bot()
        await post_sticky(
            await context.forge(),
            context.spec.subject.number,
            bot_login=bot.login,
            marker=publishing_texts.marker(context.spec.id),
            body=publishing_texts.status(view),
        )
    except (ForgeRefused, ForgeGone) as refusal:
        log.info("status not posted", task=context.spec.id, reason=str(refusal))
