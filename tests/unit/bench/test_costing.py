from datetime import date

import pytest

from bench import costing
from bench.costing import Part
from bot.domain.spending import Usage
from bot.providers.llm.pricing import PriceBook

CODER = "claude-sonnet-5-5"
PRICES = PriceBook.load()
LATER = PRICES.on(date(2026, 10, 7))


def row(model: str, dollars: int, **usage: int) -> dict[str, object]:
    tokens = {"input": 0, "read": 0, "write_5m": 0, "write_1h": 0, "output": 0, "thinking": 0, **usage}
    return {"model": model, "usage": tokens, "micro_dollars": dollars}


def perfect(fixed: int, brief: int, growth: int, calls: int = 25) -> Part:
    """A conversation whose every token is written once: the harness design's formula A."""
    sent = calls * (fixed + brief) + growth * calls * (calls - 1) // 2
    distinct = fixed + brief + growth * (calls - 1)
    usage = Usage(write_5m=distinct, read=sent - distinct, output=6_000)
    return Part(CODER, calls, usage, 0, distinct)


@pytest.mark.parametrize(
    ("shape", "sent", "hit", "dollars", "later"),
    [
        (
            (8000, 4000, 1500),
            750_000,
            0.936,
            0.320,
            0.250,
        ),  # layout A of the harness design, one conversation from cold
        ((18_000, 7_200, 400), 750_000, 0.954, 0.290, 0.219),  # A2
        ((8000, 4000, 600), 480_000, 0.945, 0.217, 0.171),  # A5
    ],
)
def test_the_floor_of_a_shape_is_what_the_design_worked_out(shape, sent, hit, dollars, later):
    part = perfect(*shape)
    assert part.usage.prompt == sent
    assert part.usage.read / sent == pytest.approx(hit, abs=0.001)
    assert costing.floor(part, PRICES.of(CODER)) / costing.MICROS == pytest.approx(dollars, abs=0.0006)
    assert costing.floor(part, LATER.of(CODER)) / costing.MICROS == pytest.approx(later, abs=0.0006)


def test_a_token_written_twice_shows_in_amplification_and_efficiency():
    once = Part(CODER, 2, Usage(write_5m=1000, read=1000), 2700, 1000)
    twice = Part(CODER, 2, Usage(write_5m=2000), 5000, 1000)
    assert costing.figures([once], PRICES, LATER)["write_amplification"] == 1.0
    assert costing.figures([once], PRICES, LATER)["efficiency"] == 1.0
    assert costing.figures([twice], PRICES, LATER)["write_amplification"] == 2.0
    assert costing.figures([twice], PRICES, LATER)["efficiency"] == 0.54


def test_a_bill_is_split_by_model_and_added_up():
    document = {
        "requests": [
            row("planner", 30, write_5m=5, output=2, thinking=1),
            row("coder", 10, write_5m=3, input=1),
            row("coder", 5, read=3, write_1h=2, output=4),
        ]
    }
    planner, coder = costing.parts(document, {"planner": 5, "coder": 6})
    assert planner == Part("planner", 1, Usage(write_5m=5, output=2, thinking=1), 30, 5)
    assert coder == Part("coder", 2, Usage(input=1, write_5m=3, write_1h=2, read=3, output=4), 15, 6)
    assert coder.written == 5


def test_one_call_alone_need_not_write_anything():
    alone = Part(CODER, 1, Usage(input=1000), 2000, 1000)
    written = Part(CODER, 1, Usage(write_5m=1000), 2500, 1000)
    assert costing.figures([alone], PRICES, LATER)["efficiency"] == 1.0
    assert costing.figures([written], PRICES, LATER)["efficiency"] == 0.8
