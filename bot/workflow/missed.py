"""Asks GitHub again for deliveries that met nobody. What to ask for is decided in `stages/intake/missed.py`."""

from __future__ import annotations

import structlog

from bot.providers.forge.port import HookLog
from bot.providers.store.port import Deliveries
from bot.stages.intake.missed import candidates, missed

log = structlog.get_logger()


async def recover(hook_log: HookLog, deliveries: Deliveries) -> int:
    """How many deliveries were asked for. Raises what `HookLog` raises."""
    wanted = candidates(await hook_log.failed())
    stored = {item.delivery for item in wanted if await deliveries.get(item.delivery) is not None}
    asked = missed(wanted, stored)
    for item in asked:
        await hook_log.redeliver(item.attempt)
    if asked:
        log.info("asked GitHub to deliver again", deliveries=len(asked), oldest=asked[0].delivered_at.isoformat())
    return len(asked)
