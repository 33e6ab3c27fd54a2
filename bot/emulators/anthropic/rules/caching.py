"""Rules on cache markers, and the last one: the context window."""

from collections.abc import Iterator

from bot.emulators.anthropic.prefix import Position, automatic_target, render
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.ruler import FRAMING
from bot.emulators.anthropic.rules.fields import CACHE_CONTROL, fit
from bot.emulators.anthropic.wire import THOUGHTS, Draft, Json, content_blocks, system_blocks

_MOST = 4


def _markers(draft: Draft) -> Iterator[tuple[str, Json | None]]:
    yield "cache_control", draft.body.get("cache_control")
    for i, tool in enumerate(draft.tools):
        yield f"tools.{i}.cache_control", tool.get("cache_control")
    for i, block in enumerate(system_blocks(draft.body)):
        yield f"system.{i}.cache_control", block.get("cache_control")
    for i, message in enumerate(draft.body["messages"]):
        for j, block in enumerate(content_blocks(message["content"])):
            yield f"messages.{i}.content.{j}.cache_control", block.get("cache_control")


def marker_shape(draft: Draft) -> None:
    """V22."""
    for where, marker in _markers(draft):
        if marker is not None:
            fit(draft, f"{where}.", marker, CACHE_CONTROL)


def marker_places(draft: Draft) -> None:
    """V19."""
    for i, tool in enumerate(draft.tools):
        if tool.get("defer_loading") and tool.get("cache_control"):
            raise Refusal(f"tools.{i}.cache_control: cannot be set on a tool with defer_loading")
    for i, message in enumerate(draft.body["messages"]):
        for j, block in enumerate(content_blocks(message["content"])):
            where = f"messages.{i}.content.{j}.{block['type']}"
            if block.get("cache_control") and (block["type"] in THOUGHTS or message.get("clear_at")):
                raise Refusal(f"{where}.cache_control: Extra inputs are not permitted")
            if any(inner.get("cache_control") for inner in _inside(block)):
                draft.object_to(where, "cache_control cannot be set on content inside a block; mark the block")


def _inside(block: Json) -> Iterator[Json]:
    for key in ("content", "citations"):
        inner = block.get(key)
        if isinstance(inner, list):
            yield from (x for x in inner if isinstance(x, dict))


def _explicit(positions: tuple[Position, ...]) -> list[Position]:
    return [p for p in positions if p.marker]


def automatic_agrees(draft: Draft) -> None:
    """V20: an explicit marker on the block that the automatic one would take must have the same ttl."""
    automatic = draft.body.get("cache_control")
    positions = render(draft)
    target = automatic_target(positions)
    marker = positions[target].marker if automatic and target is not None else None
    if automatic and marker and marker.get("ttl", "5m") != automatic.get("ttl", "5m"):
        raise Refusal("cache_control: conflicts with the ttl of the cache_control on the last block")


def marker_count(draft: Draft) -> None:
    """V17 and V21: the automatic one takes one of the four."""
    positions = render(draft)
    count = len(_explicit(positions))
    target = automatic_target(positions)
    if draft.body.get("cache_control") and target is not None and not positions[target].marker:
        count += 1
    if count > _MOST:
        raise Refusal(f"A maximum of {_MOST} blocks with cache_control may be provided. Found {count}.")


def marker_order(draft: Draft) -> None:
    """V18: the automatic marker is part of the order."""
    positions = render(draft)
    ordered = [(f"{p.where}.cache_control", p.marker.get("ttl", "5m")) for p in positions if p.marker]
    automatic = draft.body.get("cache_control")
    target = automatic_target(positions)
    if automatic and target is not None and not positions[target].marker:
        ordered.append(("cache_control", automatic.get("ttl", "5m")))
    short_seen = False
    for where, ttl in ordered:
        if ttl == "1h" and short_seen:
            raise Refusal(
                f"{where}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
                "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        short_seen = short_seen or ttl == "5m"


def window(draft: Draft) -> None:
    """V27: input alone past the window; output past it stops the answer instead."""
    total = sum(p.tokens for p in render(draft)) + FRAMING
    limit = draft.model.window
    if total > limit:
        raise Refusal(f"prompt is too long: {total} tokens > {limit} maximum")
