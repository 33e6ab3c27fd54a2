"""The bill: one row per processed request, in integer micro-dollars, rounded up."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.emulators.anthropic.models import Model
from bot.emulators.anthropic.wire import Json

_MILLION = 1_000_000


@dataclass(slots=True)
class Charge:
    """What one request used; the output side grows while it is sent."""

    request_id: str
    model: Model
    path: str
    status: int = 200
    input: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0
    thinking: int = 0
    speed: str = "standard"
    batch: bool = False
    fate: str = "answered"
    message_id: str = ""

    @property
    def prompt(self) -> int:
        """All input tokens."""
        return self.input + self.read + self.write_5m + self.write_1h

    @property
    def micro_dollars(self) -> int:
        """Price of the request; a batch pays half of everything."""
        rates = self.model.rates_for(self.prompt, self.speed)
        exact = (
            self.input * rates.input
            + self.read * rates.read
            + self.write_5m * rates.write_5m
            + self.write_1h * rates.write_1h
            + self.output * rates.output
        )
        divisor = 2 * _MILLION if self.batch else _MILLION
        return -(-exact // divisor)

    def row(self) -> Json:
        """As `GET bill` shows it."""
        return {
            "request_id": self.request_id,
            "message_id": self.message_id,
            "model": self.model.name,
            "path": self.path,
            "status": self.status,
            "fate": self.fate,
            "batch": self.batch,
            "usage": self.tokens(),
            "micro_dollars": self.micro_dollars,
        }

    def tokens(self) -> Json:
        """Tokens by kind, under our short names."""
        return {
            "input": self.input,
            "read": self.read,
            "write_5m": self.write_5m,
            "write_1h": self.write_1h,
            "output": self.output,
            "thinking": self.thinking,
        }

    def usage(self) -> Json:
        """As a message shows it."""
        return {
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.write_5m + self.write_1h,
            "cache_read_input_tokens": self.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.write_5m,
                "ephemeral_1h_input_tokens": self.write_1h,
            },
            "output_tokens": self.output,
            "output_tokens_details": {"thinking_tokens": self.thinking},
            "server_tool_use": None,
            "service_tier": "batch" if self.batch else "standard",
            "inference_geo": "global",
            "speed": self.speed,
        }


@dataclass(slots=True)
class Bill:
    """All charges since the start."""

    charges: list[Charge] = field(default_factory=list)
    prefixes: dict[str, int] = field(default_factory=dict)
    """Tokens of each block ever sent, by the hash of the prompt up to it: what had to be written once."""

    def saw(self, blocks: Iterable[tuple[str, int]]) -> None:
        """Note the blocks of an accepted prompt."""
        self.prefixes.update(blocks)

    def document(self) -> Json:
        """Rows and totals; the hit rate is tokens read over tokens sent."""
        rows = [c.row() for c in self.charges]
        usage: dict[str, int] = {}
        for charge in self.charges:
            for name, tokens in charge.tokens().items():
                usage[name] = usage.get(name, 0) + tokens
        prompt = sum(c.prompt for c in self.charges)
        distinct = sum(self.prefixes.values())
        written = usage.get("write_5m", 0) + usage.get("write_1h", 0)
        return {
            "requests": rows,
            "totals": {
                "requests": len(rows),
                "usage": usage,
                "micro_dollars": sum(c.micro_dollars for c in self.charges),
                "hit_rate": round(usage.get("read", 0) / prompt, 4) if prompt else 0.0,
                "distinct_tokens": distinct,
                "write_amplification": round(written / distinct, 4) if distinct else 0.0,
            },
        }
