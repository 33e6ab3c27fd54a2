from bot.stages.coding.edits import Edited, NotEdited, apply


def test_a_unique_passage_is_replaced_and_the_line_is_named():
    outcome = apply("a.py", "one\ntwo\nthree\n", "two", "2\n2b")
    assert outcome == Edited("one\n2\n2b\nthree\n", "Edited a.py, line 2: 1 line → 2 lines.")


def test_an_empty_old_creates_a_file_that_is_not_there():
    outcome = apply("new.py", None, "", "x = 1\n")
    assert isinstance(outcome, Edited)
    assert outcome.text == "x = 1\n"


def test_a_file_is_never_overwritten_by_creating_it():
    assert isinstance(apply("a.py", "x = 1\n", "", "x = 2\n"), NotEdited)


def test_an_empty_file_may_be_filled():
    assert isinstance(apply("a.py", "", "", "x = 2\n"), Edited)


def test_a_passage_that_occurs_twice_is_refused_with_the_count():
    outcome = apply("a.py", "x\nx\n", "x", "y")
    assert isinstance(outcome, NotEdited)
    assert "2 times" in outcome.answer


def test_a_near_miss_is_answered_with_the_nearest_line():
    outcome = apply("a.py", "def total(prices):\n    return sum(prices)\n", "    return sum(price)", "")
    assert isinstance(outcome, NotEdited)
    assert "nearest line is 2" in outcome.answer


def test_a_missing_file_says_how_to_create_it():
    outcome = apply("a.py", None, "x", "y")
    assert isinstance(outcome, NotEdited)
    assert "empty `old`" in outcome.answer


def test_nothing_to_change_is_said():
    assert isinstance(apply("a.py", "x", "x", "x"), NotEdited)
