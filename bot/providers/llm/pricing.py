"""What tokens cost: dated prices as data, one pure function from usage to integer micro-dollars, rounded up."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from importlib.resources import files
from typing import Any

from bot.domain.money import MicroUsd
from bot.domain.spending import Usage

BATCH_DIVISOR = 2
_ONE = Decimal(1)
_DOLLARS = frozenset({"input", "output", "write", "write_long", "read", "long_input_factor", "long_output_factor"})


@dataclass(frozen=True, slots=True)
class Price:
    """One dated row, dollars per million tokens, which is micro-dollars per token."""

    model: str
    vendor: str
    began: date
    input: Decimal
    output: Decimal
    write: Decimal
    write_long: Decimal
    read: Decimal
    long_over: int | None = None
    long_input_factor: Decimal = _ONE
    long_output_factor: Decimal = _ONE
    min_prefix: int = 512
    lifetime_seconds: int = 300

    def factors(self, prompt: int) -> tuple[Decimal, Decimal]:
        """Long-context factors for input and output; they apply to the whole request."""
        if self.long_over is None or prompt <= self.long_over:
            return _ONE, _ONE
        return self.long_input_factor, self.long_output_factor


class UnknownPriceError(LookupError):
    """No row for this model on this day: nothing may be sent to a model whose price is unknown."""


@dataclass(frozen=True, slots=True)
class PriceBook:
    """All rows, read on one day."""

    rows: tuple[Price, ...]
    day: date

    @classmethod
    def load(cls, text: str | None = None) -> PriceBook:
        """The shipped table on its headline day, or another table's text."""
        source = text if text is not None else files(__package__).joinpath("prices.toml").read_text(encoding="utf-8")
        document = tomllib.loads(source)
        return cls(tuple(_row(row) for row in document["price"]), document["headline"])

    def on(self, day: date) -> PriceBook:
        """The same rows read on another day."""
        return PriceBook(self.rows, day)

    def of(self, model: str) -> Price:
        """The latest row that had begun by the book's day."""
        begun = [p for p in self.rows if p.model == model and p.began <= self.day]
        if not begun:
            raise UnknownPriceError(f"no price for {model} on {self.day}")
        return max(begun, key=lambda p: p.began)


def _row(row: dict[str, Any]) -> Price:
    amounts: dict[str, Any] = {name: Decimal(row[name]) for name in _DOLLARS & row.keys()}
    return Price(**{**row, **amounts})


def cost(usage: Usage, price: Price, *, batch: bool = False) -> MicroUsd:
    """What the usage costs. Rounded up, so that a ledger is never below the invoice."""
    of_input, of_output = price.factors(usage.prompt)
    exact = of_input * (
        usage.input * price.input
        + usage.write_5m * price.write
        + usage.write_1h * price.write_long
        + usage.read * price.read
    )
    exact += of_output * usage.output * price.output
    if batch:
        exact /= BATCH_DIVISOR
    return MicroUsd(int(exact.to_integral_value(rounding=ROUND_CEILING)))


def worst(prompt: int, max_tokens: int, price: Price, *, long_entries: bool = False) -> MicroUsd:
    """The most a request can cost: every input token written anew, every output token used."""
    if long_entries and price.write_long > price.write:
        return cost(Usage(write_1h=prompt, output=max_tokens), price)
    return cost(Usage(write_5m=prompt, output=max_tokens), price)
