"""From the request on the wire to what a brain hears."""

from bot.emulators.anthropic.brain import (
    Block,
    BrainRequest,
    HeardMessage,
    Other,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
)
from bot.emulators.anthropic.wire import THOUGHTS, Draft, Json, content_blocks, system_blocks


def heard(draft: Draft, index: int) -> BrainRequest:
    """The accepted request, parsed."""
    return BrainRequest(
        index=index,
        model=draft.model.name,
        system="\n".join(b["text"] for b in system_blocks(draft.body)),
        tools=tuple(Tool(t["name"], t.get("description", ""), t.get("input_schema", {})) for t in draft.tools),
        messages=tuple(HeardMessage(t.role, tuple(_block(p.block) for p in t.placed)) for t in draft.turns),
        output_config=draft.output_config,
        headers=draft.headers,
    )


def _block(block: Json) -> Block:
    match block["type"]:
        case "text":
            return Text(block["text"])
        case kind if kind in THOUGHTS:
            return Thinking(block.get("thinking", ""))
        case "tool_use":
            return ToolUse(block["name"], block["input"], block["id"])
        case "tool_result":
            text = "\n".join(b["text"] for b in content_blocks(block.get("content")) if b["type"] == "text")
            return ToolResult(block["tool_use_id"], text, bool(block.get("is_error")))
        case other:
            return Other(other)
