"""What arrives: the request as judged by the rules, its messages as merged turns, and canonical JSON."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from bot.emulators.anthropic.models import MODELS, Model
from bot.emulators.anthropic.modes import Policy
from bot.emulators.anthropic.refusals import Refusal
from bot.emulators.anthropic.ruler import Ruler

Json = dict[str, Any]
THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class Surface(Enum):
    """Which door a request came through; some rules differ."""

    MESSAGES = "messages"
    COUNT = "count_tokens"
    BATCH_ITEM = "batch"


@dataclass(frozen=True, slots=True)
class Placed:
    """A content block with the place where the client put it."""

    message: int
    index: int
    role: str
    block: Json

    @property
    def where(self) -> str:
        """The path that error messages use."""
        return f"messages.{self.message}.content.{self.index}"

    @property
    def kind(self) -> str:
        """The block's type."""
        return str(self.block["type"])


@dataclass(frozen=True, slots=True)
class Turn:
    """Consecutive messages of one role, which the service treats as one."""

    role: str
    placed: tuple[Placed, ...]
    first: int

    def of(self, kind: str) -> Iterator[Placed]:
        """The blocks of one type, in order."""
        return (p for p in self.placed if p.kind == kind)


@dataclass(frozen=True, slots=True)
class Draft:
    """A request before it is accepted."""

    body: Json
    headers: Mapping[str, str]
    surface: Surface
    key: str
    policy: Policy
    ruler: Ruler
    remembered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paused: Collection[str] = frozenset()
    """Turns that were paused: they come back as the end of a conversation, and are gone on with."""
    tolerated: list[str] = field(default_factory=list)
    """What strict mode would have refused; lenient mode lets it pass and says so in the log."""

    def object_to(self, where: str, message: str = "Extra inputs are not permitted") -> None:
        """Refuse what an older or more adventurous client sends, or note it in lenient mode."""
        if not self.policy.tolerant:
            raise Refusal(f"{where}: {message}")
        self.tolerated.append(where)

    @property
    def model(self) -> Model:
        """Only after the rules accepted the model's name."""
        return MODELS[self.body["model"]]

    @property
    def betas(self) -> frozenset[str]:
        """Names in the `anthropic-beta` header."""
        return frozenset(b.strip() for b in self.headers.get("anthropic-beta", "").split(",") if b.strip())

    @property
    def output_config(self) -> Json:
        """Empty when not given."""
        return self.body.get("output_config") or {}

    @property
    def effort(self) -> str:
        """As given, else the model's default: spelling the default out changes nothing."""
        return str(self.output_config.get("effort") or self.model.default_effort)

    @property
    def thinking(self) -> Json:
        """As given, else adaptive."""
        return self.body.get("thinking") or {"type": "adaptive"}

    @property
    def tools(self) -> list[Json]:
        """Every tool, deferred ones included."""
        return self.body.get("tools") or []

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The merged conversation; only after the shape was accepted."""
        return merged(self.body["messages"])


def canonical(value: object) -> str:
    """Compact JSON in the key order that was received: order is part of the bytes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def spoken(blocks: Iterable[Json]) -> str:
    """A turn as one text, to know it again when it comes back: the order of a block's keys is the client's."""
    return canonical([dict(sorted(unmarked(block).items())) for block in blocks])


def unmarked(block: Json) -> Json:
    """The block without its cache marker, which no hash covers."""
    return {k: v for k, v in block.items() if k != "cache_control"}


def content_blocks(content: str | list[Json] | None) -> list[Json]:
    """A string is shorthand for one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []


def system_blocks(body: Json) -> list[Json]:
    """The system prompt as blocks; an absent or empty one is none."""
    system = body.get("system")
    return content_blocks(system) if system else []


def merged(messages: list[Json]) -> tuple[Turn, ...]:
    """Consecutive messages of one role become one turn."""
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        role = message["role"]
        placed = tuple(Placed(i, j, role, b) for j, b in enumerate(content_blocks(message.get("content"))))
        if turns and turns[-1].role == role:
            turns[-1] = Turn(role, turns[-1].placed + placed, turns[-1].first)
        else:
            turns.append(Turn(role, placed, i))
    return tuple(turns)
