"""Brains by name: `echo`, `scripted:FILE`, whatever was registered, or `package.module:attribute`."""

import hashlib
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.emulators.anthropic.brain import Brain, BrainAnswer, BrainError, BrainRequest, Spoken, Text, Thinking, ToolUse

Factory = Callable[[str], Brain]
_FACTORIES: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Make a brain available as `--brain NAME` or `NAME:ARGUMENT`."""
    _FACTORIES[name] = factory


def named(spec: str) -> Brain:
    """The brain that `--brain SPEC` means; raises ValueError for an unknown one, TypeError for what is none."""
    name, _, argument = spec.partition(":")
    if name in _FACTORIES:
        return _FACTORIES[name](argument)
    known = f"known: {', '.join(sorted(_FACTORIES))}, or package.module:attribute"
    if not argument:
        raise ValueError(f"no brain named {name!r}; {known}")
    try:
        made: Any = getattr(importlib.import_module(name), argument)
    except (ImportError, AttributeError) as fault:
        raise ValueError(f"no brain at {spec!r}: {fault}; {known}") from fault
    brain: Brain = made() if isinstance(made, type) else made
    if not callable(getattr(brain, "answer", None)):
        raise TypeError(f"{spec!r} has no method `answer`; {known}")
    return brain


@dataclass(frozen=True, slots=True)
class Echo:
    """Says what it was told last."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The newest text or tool result."""
        heard = request.last.text or "\n".join(r.text for r in request.last.results)
        return BrainAnswer((Text(heard.strip() or "ok"),))


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns for conversations whose system or first message contains `when`."""

    when: str
    turns: tuple[BrainAnswer, ...]


@dataclass(frozen=True, slots=True)
class Scripted:
    """Answers turn k of a conversation with turn k of the first script that matches; a retry gets the same."""

    conversations: tuple[Conversation, ...]

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The turn that comes next; running out of turns is an error, not a silence."""
        heard = f"{request.system}\n{request.first}"
        for conversation in self.conversations:
            if conversation.when in heard:
                if request.turn < len(conversation.turns):
                    return conversation.turns[request.turn]
                raise BrainError(f"the script for {conversation.when!r} has {len(conversation.turns)} turns")
        raise BrainError(f"no script matches this conversation ({hashlib.sha256(heard.encode()).hexdigest()[:12]})")


def scripted(document: Any) -> Scripted:
    """From parsed JSON: a list of turns for every conversation, or `{conversations: [{when, turns}]}`."""
    if isinstance(document, list):
        return Scripted((Conversation("", tuple(_turn(t) for t in document)),))
    parts = document["conversations"]
    return Scripted(tuple(Conversation(c.get("when", ""), tuple(_turn(t) for t in c["turns"])) for c in parts))


def _turn(turn: Any) -> BrainAnswer:
    blocks = turn if isinstance(turn, list) else turn["blocks"]
    rest = {} if isinstance(turn, list) else turn
    return BrainAnswer(
        tuple(_block(b) for b in blocks), rest.get("stop_reason"), rest.get("output_tokens"), rest.get("refusal")
    )


def _block(block: Any) -> Spoken:
    match block["type"]:
        case "text":
            return Text(block["text"])
        case "thinking":
            return Thinking(block.get("text", ""), block.get("tokens"))
        case "tool_use":
            return ToolUse(block["name"], block["input"], block.get("id", ""))
        case other:
            raise ValueError(f"a script cannot say a {other!r} block")


register("echo", lambda _: Echo())
register("scripted", lambda path: scripted(json.loads(Path(path).read_text(encoding="utf-8"))))
