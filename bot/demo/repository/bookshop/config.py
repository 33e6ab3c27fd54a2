"""Settings of the shop."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """What may differ between installations."""

    currency: str = "EUR"
    max_order_lines: int = 20


DEFAULT = Config()
