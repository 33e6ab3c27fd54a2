"""The story of one delivery without any I/O: event, facts assumed, action, and why. For `pullwright replay`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.action import Action, Answer, Nothing, Onboard, StartTask, TellTask, TellTasks
from bot.domain.event import Event, GroundGained, GroundLost, Ignored
from bot.domain.ids import UserId
from bot.domain.pull import Permission
from bot.stages.intake.body import BodyFault, JsonObject, read_body
from bot.stages.intake.decide import IntakeFacts, decide, needs_permission
from bot.stages.intake.extract import extract


@dataclass(frozen=True, slots=True)
class Replay:
    """What would happen, and the lines that say why."""

    event: Event
    action: Action
    story: tuple[str, ...]


def replay(document: bytes, *, event: str | None, facts: IntakeFacts) -> Replay | BodyFault:
    """Reads a delivery file: a bare payload (then `event` names it), GitHub's own record of a delivery, or `{event, body|payload}`."""
    read = read_body(document)
    if isinstance(read, BodyFault):
        return read
    name, payload = _parts(read, event)
    if isinstance(payload, BodyFault):
        return payload
    if not name:
        return BodyFault("the file does not say which event it is; name it")
    made = extract(name, payload)
    action = decide(made, facts)
    return Replay(made, action, _story(name, made, action, facts))


def _parts(read: JsonObject, event: str | None) -> tuple[str, JsonObject | BodyFault]:
    """The event's name and its payload, from any of the three forms."""
    request = read.get("request")
    source: Mapping[str, object] = request if isinstance(request, dict) else read
    named = event or read.get("event")
    name = named if isinstance(named, str) else ""
    payload, body = source.get("payload"), read.get("body")
    if isinstance(payload, dict) and name:
        return name, payload
    if isinstance(body, str) and name:
        return name, _body(body)
    return name, read


def _body(text: str) -> JsonObject | BodyFault:
    """A body as text, or in base64 as the store's own dumps have it."""
    if text.lstrip().startswith("{"):
        return read_body(text.encode())
    try:
        return read_body(base64.b64decode(text, validate=True))
    except binascii.Error:
        return BodyFault("the delivery's body is neither JSON nor base64")


def _story(name: str, event: Event, action: Action, facts: IntakeFacts) -> tuple[str, ...]:
    lines = [f"delivery: {name}", f"event: {event.kind}"]
    if isinstance(event, Ignored):
        return (*lines, f"ignored: {event.reason}")
    if isinstance(event, GroundLost | GroundGained):
        where = ", ".join(map(str, event.repositories)) or "all of the installation"
        return (*lines, f"about: repositories {where}, by {event.actor.login}", f"action: {action.kind}", _why(action))
    subject = event.subject
    kind = "pull request" if subject.is_pull else "issue"
    lines.append(f"about: {kind} {subject.repository.full_name}#{subject.number}, by {event.actor.login}")
    lines.append(f"live task: {'none' if facts.live is None else facts.live.id}")
    if needs_permission(event, facts):
        lines.append(f"permission: {'not read' if facts.permission is None else facts.permission} (assumed)")
    return (*lines, f"action: {action.kind}", _why(action))


def _why(action: Action) -> str:
    match action:
        case Nothing():
            return f"because: {action.reason}"
        case Answer():
            return f"answer: {action.topic}" + (f" ({action.detail})" if action.detail else "")
        case StartTask():
            return f"trigger: {action.trigger}"
        case TellTask():
            return f"message: {action.message.kind}"
        case Onboard():
            return f"index in the background: {len(action.repositories)} repositories"
        case TellTasks():
            return f"message: {action.message.kind} ({action.message.why.value})"


def assumed(*, bot: int, app: int, label: str = "agent", permission: str = Permission.WRITE.value) -> IntakeFacts:
    """The facts a replay assumes when nobody names others. Raises ValueError for an unknown permission."""
    return IntakeFacts(UserId(bot), app, label, Permission(permission))
