"""Why the cache could not reuse a prefix: compare a request with the one whose answer it names."""

from dataclasses import dataclass

from bot.emulators.anthropic.cache import Prompt
from bot.emulators.anthropic.wire import Draft, Json, canonical


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is remembered of a request that carried `diagnostics`."""

    model: str
    system: tuple[str, ...]
    tools: tuple[str, ...]
    messages: tuple[str, ...]
    parameters: str
    tokens: int


def fingerprint(draft: Draft, prompt: Prompt) -> Fingerprint:
    """Of one request."""
    parameters = [draft.thinking, draft.effort, draft.output_config.get("format"), draft.body.get("tool_choice")]
    return Fingerprint(
        model=f"{draft.model.name} {draft.body.get('speed') or 'standard'}",
        system=tuple(p.raw for p in prompt.positions if p.level == "system"),
        tools=tuple(p.raw for p in prompt.positions if p.level == "tools"),
        messages=tuple(f"{p.role} {p.raw}" for p in prompt.positions if p.level == "messages"),
        parameters=canonical([parameters, sorted(draft.betas)]),
        tokens=sum(p.tokens for p in prompt.positions),
    )


def miss_reason(before: Fingerprint | None, now: Fingerprint, read: int) -> Json | None:
    """None when the request only appends; else the first difference in the order model, system, tools, messages."""
    if before is None:
        return {"type": "previous_message_not_found"}
    missed = max(0, before.tokens - read)
    differences = (
        ("model_changed", before.model != now.model),
        ("system_changed", before.system != now.system),
        ("tools_changed", before.tools != now.tools),
        ("messages_changed", now.messages[: len(before.messages)] != before.messages),
    )
    for name, differs in differences:
        if differs:
            return {"type": name, "cache_missed_input_tokens": missed}
    return {"type": "unavailable"} if before.parameters != now.parameters else None
