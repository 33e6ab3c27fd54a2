"""The accounting as arithmetic: what holds for any prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.emulators.anthropic.cache import Cache, Prompt
from bot.emulators.anthropic.prefix import Breakpoint, Position


def prompt(*tokens: int, marks: tuple[tuple[int, str], ...] = (), kind: str = "text") -> Prompt:
    """A prompt of positions with these sizes; equal beginnings have equal hashes."""
    positions = tuple(Position("messages", str(i), kind, "user", f"{t}", t, None) for i, t in enumerate(tokens))
    hashes = tuple(str(tokens[: i + 1]) for i in range(len(tokens)))
    return Prompt(positions, hashes, tuple(Breakpoint(i, ttl) for i, ttl in marks))


def run(cache: Cache, asked: Prompt, at: float) -> tuple[int, int, int]:
    account = cache.account(asked, at=at, min_prefix=512)
    cache.write(account, at=at)
    cache.begin(account, at=at)
    return account.read, account.write_5m, account.write_1h


sizes = st.lists(st.integers(min_value=0, max_value=3_000), min_size=1, max_size=40)


@given(sizes, st.data())
def test_every_token_is_read_written_or_billed_in_full(tokens: list[int], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(tokens) - 1), max_size=4, unique=True).map(sorted))
    cache = Cache()
    for at in (0.0, 100.0):
        account = cache.account(prompt(*tokens, marks=tuple((p, "5m") for p in places)), at=at, min_prefix=512)
        assert account.prompt == sum(tokens) + 3
        assert min(account.read, account.write_5m, account.write_1h, account.uncached) >= 0
        cache.write(account, at=at)
        cache.begin(account, at=at)


@given(st.lists(st.integers(min_value=1, max_value=500), min_size=2, max_size=30))
def test_a_conversation_that_only_appends_writes_every_token_once(growth: list[int]) -> None:
    cache, written, log = Cache(), 0, [600]
    for n, tokens in enumerate(growth):
        _, short, _ = run(cache, prompt(*log, marks=((len(log) - 1, "5m"),)), at=float(n))
        written += short
        log.append(tokens)
    assert written == sum(log[:-1])


def test_nothing_is_readable_before_the_response_begins() -> None:
    cache, asked = Cache(), prompt(600, marks=((0, "5m"),))
    account = cache.account(asked, at=0.0, min_prefix=512)
    cache.write(account, at=0.0)
    assert cache.account(asked, at=1.0, min_prefix=512).read == 0
    cache.begin(account, at=2.0)
    assert cache.account(asked, at=1.5, min_prefix=512).read == 0
    assert cache.account(asked, at=2.0, min_prefix=512).read == 600


def test_a_second_cold_writer_does_not_hide_what_the_first_made_readable() -> None:
    cache, asked = Cache(), prompt(600, marks=((0, "5m"),))
    first = cache.account(asked, at=0.0, min_prefix=512)
    second = cache.account(asked, at=0.0, min_prefix=512)
    cache.write(first, at=0.0)
    cache.begin(first, at=1.0)
    cache.write(second, at=0.0)
    assert cache.account(asked, at=1.0, min_prefix=512).read == 600


def test_an_earlier_breakpoint_is_tried_when_the_last_finds_nothing() -> None:
    cache = Cache()
    run(cache, prompt(600, marks=((0, "5m"),)), at=0.0)
    asked = prompt(600, *[10] * 30, marks=((0, "5m"), (30, "5m")))
    assert run(cache, asked, at=1.0) == (600, 300, 0)


def test_a_run_of_results_is_stepped_over_as_one() -> None:
    cache = Cache()
    run(cache, prompt(600, marks=((0, "5m"),)), at=0.0)
    tail = prompt(600, *[10] * 40, marks=((40, "5m"),), kind="tool_result")
    first = Position("messages", "0", "text", "user", "600", 600, None)
    asked = Prompt((first, *tail.positions[1:]), tail.hashes, tail.breakpoints)
    assert run(cache, asked, at=1.0)[0] == 600


def test_an_hour_long_entry_outlives_a_short_one_behind_it() -> None:
    cache, asked = Cache(), prompt(600, 300, marks=((0, "1h"), (1, "5m")))
    assert run(cache, asked, at=0.0) == (0, 300, 600)
    assert run(cache, asked, at=3_599.0) == (600, 300, 0)
    assert run(cache, asked, at=3_599.0 + 3_601.0) == (0, 300, 600)
