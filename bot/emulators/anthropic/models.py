"""The models the stand-in knows: limits, thinking, prices, and how `/v1/models` describes them."""

from dataclasses import dataclass
from typing import Any

EFFORTS = ("low", "medium", "high", "xhigh", "max")
HIGH_EFFORTS = frozenset({"xhigh", "max"})
THINKING_TYPES = ("adaptive", "between_tools", "disabled", "enabled")
OFF_TYPES = frozenset({"between_tools", "disabled"})


@dataclass(frozen=True, slots=True)
class Rates:
    """Micro-dollars per million tokens, kept apart from the product's own price table so that two books must agree."""

    input: int
    output: int
    write_5m: int
    write_1h: int
    read: int

    def times(self, factor: int) -> "Rates":
        """The same rates, multiplied."""
        return Rates(*(factor * x for x in (self.input, self.output, self.write_5m, self.write_1h, self.read)))


@dataclass(frozen=True, slots=True)
class Model:
    """What one model accepts and costs."""

    name: str
    title: str
    line: str
    thinking: frozenset[str]
    default_effort: str
    rates: Rates
    forced_tools: bool = False
    min_prefix: int = 512
    min_prefix_strict: int = 512
    max_output: int = 128_000
    window: int = 1_000_000
    fast: Rates | None = None
    long_over: int | None = None
    long_factor: int = 1

    def rates_for(self, prompt_tokens: int, speed: str) -> Rates:
        """The rates of one request; a prompt past the long-context line is dearer as a whole."""
        rates = self.fast if speed == "fast" and self.fast is not None else self.rates
        over = self.long_over is not None and prompt_tokens > self.long_over
        return rates.times(self.long_factor) if over else rates


_OPUS = Rates(input=4_000_000, output=20_000_000, write_5m=5_000_000, write_1h=8_000_000, read=200_000)

MODELS = {
    m.name: m
    for m in (
        Model(
            name="claude-opus-5-5",
            title="Claude Opus 5.5",
            line="opus",
            thinking=frozenset({"adaptive"}),
            default_effort="medium",
            rates=_OPUS,
            fast=_OPUS.times(2),
        ),
        Model(
            name="claude-sonnet-5-5",
            title="Claude Sonnet 5.5",
            line="sonnet",
            thinking=frozenset({"adaptive", "between_tools"}),
            default_effort="high",
            rates=Rates(input=2_000_000, output=10_000_000, write_5m=2_500_000, write_1h=4_000_000, read=200_000),
        ),
        Model(
            name="claude-haiku-5-5",
            title="Claude Haiku 5.5",
            line="haiku",
            thinking=frozenset({"adaptive", "disabled"}),
            default_effort="medium",
            rates=Rates(input=100_000, output=500_000, write_5m=125_000, write_1h=200_000, read=10_000),
            forced_tools=True,
            min_prefix_strict=4096,
            long_over=100_000,
            long_factor=5,
        ),
    )
}


def described(model: Model) -> dict[str, Any]:
    """The model's entry in `/v1/models`, capabilities spelled out."""
    yes, no = {"supported": True}, {"supported": False}
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.title,
        "created_at": "2026-09-28T00:00:00Z",
        "deprecated_at": None,
        "retires_at": None,
        "lifecycle": "active",
        "line": model.line,
        "max_input_tokens": model.window,
        "max_tokens": model.max_output,
        "capabilities": {
            "batch": yes,
            "citations": yes,
            "code_execution": no,
            "context_management": {
                "supported": False,
                "clear_thinking_20251015": no,
                "clear_tool_uses_20250919": no,
                "compact_20260112": no,
            },
            "effort": {"supported": True, **dict.fromkeys(EFFORTS, yes)},
            "image_input": yes,
            "pdf_input": yes,
            "server_tools": {"supported": False, "code_execution": no, "web_search": no},
            "structured_outputs": yes,
            "thinking": {
                "supported": True,
                "types": {kind: {"supported": kind in model.thinking} for kind in THINKING_TYPES},
            },
        },
    }
