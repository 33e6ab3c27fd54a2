"""What sandboxes asked for, counted."""

from dataclasses import replace

from bot.domain.egress import MOST, Attempt, counted

ONE = Attempt("a.example.org:443", allowed=False, unlisted=True, phase="set-up")


def test_what_is_alike_is_counted_and_what_differs_in_anything_is_not():
    other = replace(ONE, phase="the full check")
    assert counted((ONE, other, ONE), (ONE,)) == (replace(ONE, times=3), other)
    assert counted(counted((ONE, ONE)), counted((ONE,))) == (replace(ONE, times=3),)


def test_no_more_is_kept_than_anybody_reads():
    assert len(counted(tuple(replace(ONE, target=f"{number}.example.org:443") for number in range(MOST + 50)))) == MOST
