"""Shows what a delivery would lead to, without doing any of it."""

from __future__ import annotations

import json
from pathlib import Path

from bot.domain.errors import UserError
from bot.stages.intake.replay import replay


def replay_file(path: Path, event: str, *, as_json: bool) -> str:
    """The event and action of a stored delivery. Raises UserError when the file is not one."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}.") from error
    if isinstance(document, dict) and "payload" in document and "event" in document:
        event, document = str(document["event"]), document["payload"]
    if not event:
        raise UserError("The event's name is missing.", "Give --event issues, or a file of the form {event, payload}.")
    shown = replay(event, document)
    if as_json:
        return json.dumps({"event": shown.event, "action": shown.action, "reasons": list(shown.reasons)})
    return "\n".join([f"event:  {shown.event}", f"action: {shown.action}", *(f"  - {line}" for line in shown.reasons)])
