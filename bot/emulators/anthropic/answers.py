"""From what a brain says to the content of a response: ids, signatures, tokens, and the caps that cut it."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from bot.emulators.anthropic.brain import BrainAnswer, BrainError, Spoken, Text, Thinking, ToolUse
from bot.emulators.anthropic.ruler import CALL_TOKENS
from bot.emulators.anthropic.seals import Sealer
from bot.emulators.anthropic.wire import Draft, Json, canonical


@dataclass(frozen=True, slots=True)
class Piece:
    """One content block; `raw_input` is the JSON of a tool's input, possibly unfinished."""

    block: Json
    tokens: int
    raw_input: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The output side of a response."""

    pieces: tuple[Piece, ...]
    stop_reason: str
    output_tokens: int
    thinking_tokens: int
    stop_details: Json | None = None
    stop_sequence: str | None = None

    @property
    def content(self) -> list[Json]:
        """The blocks as they appear in a message."""
        return [p.block for p in self.pieces]


PREWARM = Answer((), "max_tokens", 0, 0)


def compose(said: BrainAnswer, draft: Draft, sealer: Sealer, *, prompt_tokens: int) -> Answer:
    """Shape, sign and cut an answer; sealing goes block by block because each seal covers what stands before it."""
    _check_format(said, draft)
    blocks, sequence = _stopped(said.blocks, draft.body.get("stop_sequences") or ())
    spoken = _named(_as_shown(blocks, draft), draft)
    weights = [_weight(draft, block) for block in spoken]
    room = draft.model.window - prompt_tokens
    cap = min(int(draft.body["max_tokens"]), room)
    total = said.output_tokens if said.output_tokens is not None else max(1, sum(weights))
    cut = total > cap
    allowed = cap if said.output_tokens is None or not cut else cap * sum(weights) // max(1, total)
    pieces = _pieces(spoken, weights, allowed if cut else sum(weights), draft, sealer)
    thinking = sum(p.tokens for p in pieces if p.block["type"] == "thinking")
    output = min(total, cap)
    reason = said.stop_reason or ("tool_use" if any(isinstance(b, ToolUse) for b in spoken) else "end_turn")
    if sequence is not None:
        reason = "stop_sequence"
    if cut:
        reason = "max_tokens" if cap < room else "model_context_window_exceeded"
    details = {"type": "refusal", "category": said.refusal, "explanation": None} if reason == "refusal" else None
    met = sequence if reason == "stop_sequence" else None
    return Answer(tuple(pieces), reason, output, min(thinking, output), details, met)


def _stopped(blocks: Sequence[Spoken], sequences: Sequence[str]) -> tuple[Sequence[Spoken], str | None]:
    """What is said before the first stop sequence, and that sequence; neither it nor anything after it is shown."""
    for i, block in enumerate(blocks):
        found = [(block.text.find(s), s) for s in sequences if s in block.text] if isinstance(block, Text) else []
        if found:
            at, sequence = min(found)
            kept = (Text(block.text[:at]),) if isinstance(block, Text) and block.text[:at].strip() else ()
            return (*blocks[:i], *kept), sequence
    return blocks, None


def _check_format(said: BrainAnswer, draft: Draft) -> None:
    """A model held to a schema never says anything but JSON, so a brain must not either."""
    text = "".join(b.text for b in said.blocks if isinstance(b, Text))
    if draft.output_config.get("format") and said.stop_reason in {None, "end_turn"} and text:
        try:
            json.loads(text)
        except ValueError as error:
            raise BrainError("output_config.format was asked for and the brain did not answer JSON") from error


def _as_shown(blocks: Sequence[Spoken], draft: Draft) -> list[Spoken]:
    """With thinking off nothing is thought, and no text is empty; text between tool calls comes back as thinking (but for `disabled`)."""
    kind = draft.thinking["type"]
    between = kind != "disabled" and any(True for _ in draft.turns[-1].of("tool_result"))
    calls = [i for i, b in enumerate(blocks) if isinstance(b, ToolUse)]
    last_call = calls[-1] if calls else -1
    shown: list[Spoken] = []
    for i, block in enumerate(blocks):
        if isinstance(block, Thinking) and kind != "adaptive":
            continue
        if isinstance(block, Text) and not block.text.strip():
            continue
        muffled = isinstance(block, Text) and between and i < last_call
        shown.append(Thinking(block.text) if muffled and isinstance(block, Text) else block)
    return shown


def _named(blocks: Sequence[Spoken], draft: Draft) -> list[Spoken]:
    """Every call with an id of its own: one that the brain insists on, unless the conversation has it already."""
    taken = {placed.block["id"] for turn in draft.turns for placed in turn.of("tool_use")}
    named: list[Spoken] = []
    for block in blocks:
        if isinstance(block, ToolUse):
            wanted = block.id if block.id and block.id not in taken else f"toolu_{uuid.uuid4().hex[:24]}"
            taken.add(wanted)
            named.append(ToolUse(block.name, block.input, wanted))
        else:
            named.append(block)
    return named


def _weight(draft: Draft, block: Spoken) -> int:
    match block:
        case Text(text):
            return draft.ruler.tokens(text)
        case Thinking(text, tokens):
            return tokens if tokens is not None else draft.ruler.tokens(text)
        case ToolUse(name, arguments):
            return draft.ruler.tokens(name + canonical(dict(arguments))) + CALL_TOKENS


def _pieces(spoken: list[Spoken], weights: list[int], allowed: int, draft: Draft, sealer: Sealer) -> list[Piece]:
    pieces: list[Piece] = []
    for block, weight in zip(spoken, weights, strict=True):
        if weight > allowed:
            pieces.extend(_unfinished(block, allowed, draft))
            break
        allowed -= weight
        piece = _piece(block, weight, draft, sealer)
        pieces.append(piece)
        if piece.block["type"] != "thinking":
            sealer.prefix.add("assistant", piece.block)
    return pieces


def _piece(block: Spoken, weight: int, draft: Draft, sealer: Sealer) -> Piece:
    match block:
        case Text(text):
            return Piece({"type": "text", "text": text}, weight)
        case Thinking(text):
            shown = text if draft.thinking.get("display") == "summarized" else ""
            seal = sealer.seal(shown, weight)
            return Piece({"type": "thinking", "thinking": shown, "signature": seal}, weight)
        case ToolUse(name, arguments, call):
            raw = canonical(dict(arguments))
            return Piece({"type": "tool_use", "id": call, "name": name, "input": dict(arguments)}, weight, raw)


def _unfinished(block: Spoken, allowed: int, draft: Draft) -> list[Piece]:
    """What is left of the block the cap fell into: cut text, a call without its input, no thinking at all."""
    match block:
        case Text(text):
            kept = draft.ruler.fitting(text, allowed)
            return [Piece({"type": "text", "text": kept}, allowed)] if kept.strip() else []
        case Thinking():
            return []
        case ToolUse(name, arguments, call):
            raw = draft.ruler.fitting(canonical(dict(arguments)), max(0, allowed - CALL_TOKENS))
            return [Piece({"type": "tool_use", "id": call, "name": name, "input": {}}, allowed, raw)]
