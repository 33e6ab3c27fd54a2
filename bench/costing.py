"""Arithmetic of bills: what a conversation cost, what its shape had to cost at least, and ratios. Pure.

For one model with T tokens sent, n of them distinct and O tokens of output (specs of the Messages API, harness design):
  floor = w·n + r·(T - n) + out·O       write amplification = written / n       efficiency = floor / cost
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.spending import Usage
from bot.providers.llm.pricing import Price, PriceBook, cost

MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Part:
    """The calls of one model on a bill. `distinct` are the tokens that were sent at least once."""

    model: str
    calls: int
    usage: Usage
    micro_dollars: int
    distinct: int

    @property
    def written(self) -> int:
        return self.usage.write_5m + self.usage.write_1h


def parts(document: Mapping[str, Any], distinct: Mapping[str, int]) -> tuple[Part, ...]:
    """A stand-in's bill by model, in order of first use; `distinct` says how many tokens of each model's prompts were new."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in document["requests"]:
        rows.setdefault(row["model"], []).append(row)
    return tuple(
        Part(model, len(own), _added(own), sum(row["micro_dollars"] for row in own), distinct[model])
        for model, own in rows.items()
    )


def _added(rows: Iterable[Mapping[str, Any]]) -> Usage:
    total: dict[str, int] = {}
    for row in rows:
        for kind, tokens in row["usage"].items():
            total[kind] = total.get(kind, 0) + tokens
    return Usage(**total)


def floor(part: Part, price: Price) -> float:
    """Micro-dollars that the part's shape costs at least: each distinct token written once, all else read.

    One call alone has nothing to write for: its prompt at the price of plain input.
    """
    reread = part.usage.prompt - part.distinct
    once = price.write if part.calls > 1 else price.input
    return float(once * part.distinct + price.read * reread + price.output * part.usage.output)


def figures(every: Sequence[Part], prices: PriceBook, cheaper: PriceBook) -> dict[str, Any]:
    """What is reported of some parts of a bill. `cheaper` is the later price list (reads at half), for a second column."""
    spent = sum(part.micro_dollars for part in every)
    least = sum(floor(part, prices.of(part.model)) for part in every)
    prompt = sum(part.usage.prompt for part in every)
    read = sum(part.usage.read for part in every)
    written = sum(part.written for part in every)
    distinct = sum(part.distinct for part in every)
    return {
        "calls": sum(part.calls for part in every),
        "tokens": {
            "sent": prompt,
            "read": read,
            "written": written,
            "uncached": sum(part.usage.input for part in every),
            "output": sum(part.usage.output for part in every),
            "distinct": distinct,
        },
        "usd": round(spent / MICROS, 4),
        "usd_later_prices": round(sum(cost(part.usage, cheaper.of(part.model)) for part in every) / MICROS, 4),
        "hit_rate": share(read, prompt),
        "write_amplification": share(written, distinct),
        "floor_usd": round(least / MICROS, 4),
        "efficiency": share(least, spent),
    }


def share(part: float, whole: float) -> float:
    """A ratio with four digits; 0 of nothing."""
    return round(part / whole, 4) if whole else 0.0
