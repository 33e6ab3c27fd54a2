import pytest

from bot.stages.verifying.suppressions import added


@pytest.mark.parametrize("line", [b"x()  # nosemgrep", b"x()  # nosem: rule", b"// NOSEMGREP"])
def test_an_added_suppression_is_a_failure(line: bytes):
    assert [failure.subject for failure in added({"a.py": b"x()\n"}, {"a.py": b"x()\n" + line})] == ["a.py"]


def test_a_suppression_that_was_there_may_stay_and_move():
    assert added({"a.py": b"x()  # nosem\ny()"}, {"a.py": b"y()\nx()  # nosem"}) == ()


def test_one_more_of_the_same_is_a_failure():
    assert added({"a.py": b"x  # nosem"}, {"a.py": b"x  # nosem\nx  # nosem"})


def test_a_suppression_in_a_new_file_is_a_failure():
    assert added({}, {"new.py": b"x  # nosemgrep"})


def test_an_ignore_file_is_a_failure():
    assert added({}, {"sub/.semgrepignore": b"*"})


def test_a_word_that_only_contains_it_is_none():
    assert added({}, {"a.py": b"nosemantics = 1"}) == ()
