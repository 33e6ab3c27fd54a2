"""The prompt as the cache sees it: positions in render order, their tokens, and one chained hash."""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from bot.emulators.anthropic.ruler import IMAGE_TOKENS, Ruler
from bot.emulators.anthropic.seals import sealed_tokens
from bot.emulators.anthropic.wire import (
    THOUGHTS,
    Draft,
    Json,
    Placed,
    canonical,
    content_blocks,
    system_blocks,
    unmarked,
)

Level = Literal["tools", "system", "messages"]
_RUNS = frozenset({"tool_use", "tool_result"})


@dataclass(frozen=True, slots=True)
class Position:
    """One tool, system block or message block."""

    level: Level
    where: str
    kind: str
    role: str
    raw: str
    tokens: int
    marker: Json | None

    @property
    def run(self) -> str | None:
        """Consecutive positions of one run count as one when looking back."""
        return self.kind if self.kind in _RUNS else None


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place where the prefix may be written."""

    index: int
    ttl: str


def render(draft: Draft, *, dropped: Collection[str] = ()) -> tuple[Position, ...]:
    """Every position of the prompt; blocks the model cannot read are neither shown nor billed."""
    return (*_tool_positions(draft), *_system_positions(draft), *_message_positions(draft, dropped))


def _tool_positions(draft: Draft) -> Iterator[Position]:
    for i, tool in enumerate(draft.tools):
        if not tool.get("defer_loading"):
            raw = canonical(unmarked(tool))
            yield Position("tools", f"tools.{i}", "tool", "", raw, draft.ruler.tokens(raw), tool.get("cache_control"))


def _system_positions(draft: Draft) -> Iterator[Position]:
    for i, block in enumerate(system_blocks(draft.body)):
        raw = canonical(unmarked(block))
        tokens = draft.ruler.tokens(block["text"])
        yield Position("system", f"system.{i}", "text", "", raw, tokens, block.get("cache_control"))


def _message_positions(draft: Draft, dropped: Collection[str]) -> Iterator[Position]:
    for i, message in enumerate(draft.body["messages"]):
        role = message["role"]
        for j, block in enumerate(content_blocks(message.get("content"))):
            placed = Placed(i, j, role, block)
            if placed.where in dropped:
                continue
            raw = _block_raw(draft, block)
            tokens = _block_tokens(block, raw, draft.ruler)
            yield Position("messages", placed.where, placed.kind, role, raw, tokens, block.get("cache_control"))
        if message.get("output_config"):
            raw = canonical(message["output_config"])
            yield Position("messages", f"messages.{i}.output_config", "output_config", role, raw, 0, None)


def _block_raw(draft: Draft, block: Json) -> str:
    bare = unmarked(block)
    content = bare.get("content")
    if draft.policy.tolerant and bare["type"] == "tool_result" and isinstance(content, str):
        bare = {**bare, "content": content_blocks(content)}
    return canonical(bare)


def _block_tokens(block: Json, raw: str, ruler: Ruler) -> int:
    match block["type"]:
        case "text":
            return ruler.tokens(block["text"])
        case "image":
            return IMAGE_TOKENS
        case kind if kind in THOUGHTS:
            return sealed_tokens(block.get("signature", "")) or ruler.tokens(raw)
        case _:
            return ruler.tokens(raw)


def breakpoints(draft: Draft, positions: tuple[Position, ...]) -> tuple[Breakpoint, ...]:
    """Explicit markers and the automatic one, in prompt order; the rules count and compare them."""
    found = [Breakpoint(i, p.marker.get("ttl", "5m")) for i, p in enumerate(positions) if p.marker]
    automatic = draft.body.get("cache_control")
    if automatic:
        target = automatic_target(positions)
        if target is not None and not positions[target].marker:
            found.append(Breakpoint(target, automatic.get("ttl", "5m")))
    return tuple(sorted(found, key=lambda b: b.index))


def automatic_target(positions: tuple[Position, ...]) -> int | None:
    """The last block that can carry a marker, looking back over thinking."""
    eligible = (i for i in reversed(range(len(positions))) if positions[i].kind not in THOUGHTS | {"output_config"})
    return next(eligible, None)


def chain(draft: Draft, positions: tuple[Position, ...]) -> tuple[str, ...]:
    """The cumulative hash at each position; parameters join it at the level that they invalidate."""
    rendered = canonical([draft.thinking["type"], draft.thinking.get("display") or "omitted", draft.effort])
    everywhere = rendered if draft.policy.effort_level == "all" else ""
    digest = hashlib.sha256(canonical([draft.key, draft.model.name, everywhere]).encode())
    system = canonical([draft.body.get("speed") or "standard", draft.output_config.get("format"), _cites(draft)])
    messages = canonical([rendered, draft.body.get("tool_choice") or {"type": "auto"}, _has_image(draft)])
    mixed = {"tools": "", "system": system, "messages": system + messages}
    hashes = []
    for position in positions:
        digest.update(f"{mixed[position.level]}\0{position.role}\0{position.raw}\0".encode())
        hashes.append(digest.hexdigest())
    return tuple(hashes)


def _has_image(draft: Draft) -> bool:
    return any(b["type"] == "image" for m in draft.body["messages"] for b in content_blocks(m.get("content")))


def _cites(draft: Draft) -> bool:
    blocks = (b for m in draft.body["messages"] for b in content_blocks(m.get("content")))
    return any(b["type"] == "document" and (b.get("citations") or {}).get("enabled") for b in blocks)
