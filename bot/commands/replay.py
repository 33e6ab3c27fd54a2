"""Shows what a delivery would lead to, without doing any of it."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter

from bot.domain.action import Action
from bot.domain.errors import UserError
from bot.domain.event import Event
from bot.stages.intake.body import BodyFault
from bot.stages.intake.replay import assumed, replay

_STRANGER = 0


def replay_file(path: Path, event: str, *, as_json: bool, permission: str = "write") -> str:
    """The story of a stored delivery. Raises UserError when the file is not one, or the permission is unknown."""
    try:
        document = path.read_bytes()
        facts = assumed(bot=_STRANGER, app=_STRANGER, permission=permission)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be replayed: {error}.") from error
    told = replay(document, event=event or None, facts=facts)
    if isinstance(told, BodyFault):
        raise UserError(f"{path} is no delivery: {told.reason}.", "Give --event issues for a bare payload.")
    if not as_json:
        return "\n".join(told.story)
    events: TypeAdapter[Event] = TypeAdapter(Event)
    actions: TypeAdapter[Action] = TypeAdapter(Action)
    return json.dumps(
        {
            "event": events.dump_python(told.event, mode="json"),
            "action": actions.dump_python(told.action, mode="json"),
            "story": list(told.story),
        }
    )
