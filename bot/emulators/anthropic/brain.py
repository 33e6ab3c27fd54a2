"""The model behind the stand-in: a brain reads a request and says what to answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Text:
    """Text, said or heard."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Thinking; `tokens` stands for text that nobody sees."""

    text: str = ""
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool; the id is the service's to choose unless the brain insists on one that is not taken."""

    name: str
    input: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the client says a tool answered."""

    tool_use_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Other:
    """A block the brain has no use for."""

    type: str


Block = Text | Thinking | ToolUse | ToolResult | Other
Spoken = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """One turn of the conversation so far; consecutive messages of one role are merged."""

    role: str
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """Its text blocks, a line break between."""
        return "\n".join(b.text for b in self.blocks if isinstance(b, Text))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Its tool results."""
        return tuple(b for b in self.blocks if isinstance(b, ToolResult))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """Its tool calls."""
        return tuple(b for b in self.blocks if isinstance(b, ToolUse))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BrainRequest:
    """What a brain is given: the request parsed, and its number since the start."""

    index: int
    model: str
    system: str
    tools: tuple[Tool, ...]
    messages: tuple[HeardMessage, ...]
    output_config: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """Text of the first user message: the brief."""
        return self.messages[0].text

    @property
    def last(self) -> HeardMessage:
        """The newest turn."""
        return self.messages[-1]

    @property
    def turn(self) -> int:
        """How many assistant turns are already there; the same for a retry."""
        return sum(m.role == "assistant" for m in self.messages)


@dataclass(frozen=True, slots=True)
class BrainAnswer:
    """One assistant turn. Stop reason and tokens follow from the blocks unless given."""

    blocks: Sequence[Spoken]
    stop_reason: str | None = None
    output_tokens: int | None = None
    refusal: str | None = None
    """Category of a refusal."""


class Brain(Protocol):
    """Anything that answers; it must be quick, and a retry of a request should get the same answer."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The next assistant turn."""
        ...


class BrainError(Exception):
    """The brain has no answer; clients see a 500 that says so."""
