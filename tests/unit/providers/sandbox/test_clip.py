from hypothesis import given
from hypothesis import strategies as st

from bot.providers.sandbox.clip import Clip


def clipped(limit: int, *pieces: str) -> str:
    clip = Clip(limit)
    for piece in pieces:
        clip.add(piece)
    return clip.text()


def test_output_within_the_limit_is_kept_as_it_is():
    assert clipped(10, "12345", "67890") == "1234567890"


def test_output_beyond_the_limit_loses_its_middle_and_says_how_much():
    assert clipped(4, "ab", "cdef", "gh") == "ab\n[4 bytes left out]\ngh"


def test_a_character_cut_in_two_does_not_break_the_text():
    assert clipped(3, "ääää") == "\ufffd\n[5 bytes left out]\nä"


@given(st.integers(2, 40), st.lists(st.text("abcdef", max_size=30), max_size=30))
def test_beginning_and_end_are_always_those_of_the_whole(limit, pieces):
    whole, text = "".join(pieces), clipped(limit, *pieces)
    if len(whole) <= limit:
        assert text == whole
    else:
        head, _, tail = text.partition(f"\n[{len(whole) - limit} bytes left out]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head) + len(tail) == limit
