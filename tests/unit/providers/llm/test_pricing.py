"""Prices against the figures of the specification, and rules that hold for any usage."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.spending import Usage
from bot.providers.llm.pricing import PriceBook, UnknownPriceError, cost, worst

BOOK = PriceBook.load()
NEWER = BOOK.on(date(2026, 10, 7))
SONNET, OPUS, HAIKU = "claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"


def dollars(book: PriceBook, model: str, *, batch: bool = False, **thousands: float) -> float:
    usage = Usage(**{kind: round(1000 * value) for kind, value in thousands.items()})
    return cost(usage, book.of(model), batch=batch) / 1e6


@pytest.mark.parametrize(
    ("hit", "dear", "cheap"),
    [
        (0.5, 1.073, 1.035),
        (0.8, 0.555, 0.495),
        (0.9, 0.383, 0.315),
        (0.95, 0.296, 0.225),
        (0.99, 0.227, 0.153),
        (1, 0.210, 0.135),
    ],
)
def test_the_reference_task_at_each_hit_rate(hit: float, dear: float, cheap: float) -> None:
    for book, expected in ((BOOK, dear), (NEWER, cheap)):
        found = dollars(book, SONNET, write_5m=750 * (1 - hit), read=750 * hit, output=6)
        assert found == pytest.approx(expected, abs=0.001)


def test_the_planners_steps() -> None:
    assert dollars(BOOK, OPUS, write_5m=8, output=2) == pytest.approx(0.080)
    assert dollars(BOOK, OPUS, write_5m=1, read=9, output=0.7) == pytest.approx(0.0208)
    assert dollars(BOOK, OPUS, write_5m=30, output=2) == pytest.approx(0.190)
    assert dollars(BOOK, OPUS, write_5m=6, output=2) == pytest.approx(0.070)


def test_summaries_alone_and_in_a_batch() -> None:
    single = Usage(input=2_000, output=120)
    price = BOOK.of(HAIKU)
    assert 200 * cost(single, price) / 1e6 == pytest.approx(0.052)
    assert 200 * cost(single, price, batch=True) / 1e6 == pytest.approx(0.026)


def test_other_vendors_re_price_the_same_trace() -> None:
    call = dollars(BOOK, "gpt-6.1-sol", write_5m=3, read=27, output=0.24)
    assert 25 * call == pytest.approx(0.315)
    assert BOOK.of("gemini-3.1-pro").write == BOOK.of("gemini-3.1-pro").input


def test_a_price_has_the_days_it_holds() -> None:
    assert BOOK.of(SONNET).read == Decimal("0.20")
    assert BOOK.on(date(2026, 10, 6)).of(SONNET).read == Decimal("0.20")
    assert NEWER.of(SONNET).read == Decimal("0.10")
    with pytest.raises(UnknownPriceError):
        BOOK.on(date(2020, 1, 1)).of(SONNET)
    with pytest.raises(UnknownPriceError):
        BOOK.of("claude-9")


def test_long_prompts_are_dearer_as_a_whole() -> None:
    at, over = Usage(input=100_000, output=1_000), Usage(input=100_001, output=1_000)
    assert cost(at, BOOK.of(HAIKU)) == 10_500
    assert cost(over, BOOK.of(HAIKU)) == 52_501


kinds = st.builds(
    Usage,
    input=st.integers(0, 300_000),
    write_5m=st.integers(0, 300_000),
    write_1h=st.integers(0, 300_000),
    read=st.integers(0, 300_000),
    output=st.integers(0, 128_000),
)
models = st.sampled_from(sorted({row.model for row in BOOK.rows}))


@given(kinds, models)
def test_no_split_of_a_prompt_costs_more_than_the_worst(usage: Usage, model: str) -> None:
    price = BOOK.of(model)
    assert cost(usage, price) <= worst(usage.prompt, usage.output, price, long_entries=True)
    if usage.write_1h == 0:
        assert cost(usage, price) <= worst(usage.prompt, usage.output, price)


@given(kinds, kinds, models)
def test_a_sum_of_costs_is_never_below_the_cost_of_the_sum(one: Usage, two: Usage, model: str) -> None:
    price = BOOK.of(model)
    if price.long_over is None:
        both = Usage(*(a + b for a, b in zip(_kinds(one), _kinds(two), strict=True)))
        assert 0 <= cost(one, price) + cost(two, price) - cost(both, price) <= 1


def _kinds(usage: Usage) -> tuple[int, ...]:
    return (usage.input, usage.write_5m, usage.write_1h, usage.read, usage.output)
