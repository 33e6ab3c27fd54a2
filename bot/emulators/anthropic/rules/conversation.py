"""Rules on the order and content of messages."""

from collections.abc import Iterator

from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.rules.fields import EFFORT, OBJECT, fit
from bot.emulators.anthropic.wire import Draft, Json, Placed, Turn, content_blocks, spoken, system_blocks

_ROLES = frozenset({"user", "assistant", "system"})
_SERVER_ENDS = frozenset({"server_tool_use"})


def roles(draft: Draft) -> None:
    """V8."""
    messages = draft.body["messages"]
    if not messages:
        raise Refusal("messages: at least one message is required")
    for i, message in enumerate(messages):
        if message["role"] not in _ROLES:
            raise Refusal(f"messages.{i}.role: Input should be 'user', 'assistant' or 'system'")
    if messages[0]["role"] != "user":
        raise Refusal('messages: first message must use the "user" role')


def block_roles(draft: Draft) -> None:
    """Thinking and tool_use are said by the assistant, tool_result by the user."""
    speakers = {
        "thinking": "assistant",
        "redacted_thinking": "assistant",
        "tool_use": "assistant",
        "tool_result": "user",
    }
    for turn in draft.turns:
        for placed in turn.placed:
            speaker = speakers.get(placed.kind, turn.role)
            if speaker != turn.role:
                raise Refusal(f"{placed.where}: `{placed.kind}` blocks may only be in `{speaker}` messages")


def system_turns(draft: Draft) -> None:
    """V10: after a user message (or an assistant's server tool), and last or before an assistant."""
    turns = draft.turns
    for n, turn in enumerate(turns):
        if turn.role != "system":
            continue
        if any(p.kind != "text" for p in turn.placed):
            raise Refusal(f"messages.{turn.first}: `system` messages may only contain text")
        before = turns[n - 1]
        if before.role == "assistant" and not _ends_in_server_tool(before):
            raise Refusal(f"messages.{turn.first}: `system` messages must follow a `user` message")
        if n + 1 < len(turns) and turns[n + 1].role != "assistant":
            raise Refusal(f"messages.{turn.first}: a `system` message must be last or be followed by `assistant`")
    _message_effort(draft)


def _message_effort(draft: Draft) -> None:
    for i, message in enumerate(draft.body["messages"]):
        config = message.get("output_config")
        if config is None:
            continue
        if draft.thinking["type"] == "between_tools":
            raise Refusal(f"messages.{i}.output_config: not supported with thinking type between_tools")
        fit(draft, f"messages.{i}.", message, {"output_config": OBJECT}, closed=False)
        fit(draft, f"messages.{i}.output_config.", config, {"effort": EFFORT})


def no_prefill(draft: Draft) -> None:
    """V11: but a turn that was paused is sent back as it is, to be gone on with."""
    last = draft.turns[-1]
    paused = spoken(content_blocks(draft.body["messages"][-1]["content"])) in draft.paused
    if last.role == "assistant" and not _ends_in_server_tool(last) and not paused:
        raise Refusal(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _ends_in_server_tool(turn: Turn) -> bool:
    return bool(turn.placed) and turn.placed[-1].kind in _SERVER_ENDS


def no_empty_text(draft: Draft) -> None:
    """V12: in messages, system and tool results alike."""
    for i, message in enumerate(draft.body["messages"]):
        blocks = content_blocks(message["content"])
        if not blocks and not message.get("output_config"):
            raise Refusal(f"messages.{i}: all messages must have non-empty content")
        for text in _texts(blocks):
            if not text:
                raise Refusal("messages: text content blocks must be non-empty")
            if not text.strip():
                raise Refusal("messages: text content blocks must contain non-whitespace text")
    for block in system_blocks(draft.body):
        if not block["text"].strip():
            raise Refusal("system: text content blocks must be non-empty")


def _texts(blocks: list[Json]) -> Iterator[str]:
    for block in blocks:
        if block["type"] == "text":
            yield block["text"]
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from _texts(block["content"])


def _answers(turn: Turn | None) -> list[str]:
    return [p.block["tool_use_id"] for p in turn.of("tool_result")] if turn is not None else []


def tools_answered(draft: Draft) -> None:
    """V13."""
    turns = draft.turns
    for n, turn in enumerate(turns):
        answered = _answers(turns[n + 1] if n + 1 < len(turns) else None)
        missing = [p.block["id"] for p in turn.of("tool_use") if p.block["id"] not in answered]
        if missing:
            raise Refusal(
                f"messages.{turn.placed[-1].message}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
                "`tool_result` block in the next message."
            )


def results_asked(draft: Draft) -> None:
    """V14."""
    before: Turn | None = None
    for turn in draft.turns:
        asked = {p.block["id"] for p in before.of("tool_use")} if before is not None else set()
        for placed in turn.of("tool_result"):
            wanted = placed.block["tool_use_id"]
            if wanted not in asked:
                raise Refusal(
                    f"{placed.where}: unexpected `tool_use_id` found in `tool_result` blocks: {wanted}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        before = turn


def results_first(draft: Draft) -> None:
    """V15: results before anything else of the turn, one result a call, and every call with an id of its own."""
    seen: set[str] = set()
    for turn in draft.turns:
        for placed in turn.of("tool_use"):
            if placed.block["id"] in seen:
                raise Refusal(f"{placed.where}: `tool_use` ids must be unique")
            seen.add(placed.block["id"])
        _leading(turn)
        answers = _answers(turn)
        if len(set(answers)) != len(answers):
            raise Refusal(f"messages.{turn.first}: each `tool_use` must have a single `tool_result`")


def _leading(turn: Turn) -> None:
    other: Placed | None = None
    for placed in turn.placed:
        if placed.kind != "tool_result":
            other = placed
        elif other is not None:
            raise Refusal(f"{placed.where}: `tool_result` blocks must come before other content of the message")


def documents_and_citations(draft: Draft) -> None:
    """V16."""
    for turn in draft.turns:
        for placed in turn.placed:
            if turn.role == "assistant" and placed.kind == "document":
                raise Refusal(f"{placed.where}: `document` blocks are not permitted in `assistant` messages")
            if turn.role == "user" and placed.kind == "text" and placed.block.get("citations"):
                raise Refusal(f"{placed.where}.text.citations: not permitted in `user` messages")
