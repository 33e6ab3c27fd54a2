from hypothesis import example, given
from hypothesis import strategies as st

from bot.custody.searching import Hit
from bot.retrieval.browse import Matches
from bot.retrieval.definition import Definition
from bot.retrieval.rank import Ranked
from bot.stages.coding import observe


@example("000000" + "\x80" * 26 + "\u0800", 20)
@given(st.text(max_size=20_000), st.integers(min_value=20, max_value=600))
def test_a_cut_text_is_never_much_over_its_limit(text: str, limit: int):
    assert observe.tokens(observe.cut(text, limit)) <= limit + 20


def test_a_short_text_is_not_touched():
    assert observe.cut("all of it") == "all of it"


def test_a_cut_keeps_the_beginning_and_more_of_the_end():
    text = "\n".join(f"line {number}" for number in range(1000))
    shown = observe.cut(text, 100)
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 999")
    assert "lines cut" in shown


def test_lines_are_numbered_and_the_way_on_is_named():
    text = "".join(f"row {number}\n" for number in range(1, 101))
    shown = observe.numbered("a.txt", text, 1, 3)
    assert shown == "a.txt, lines 1–3 of 100. Read on with first=4.\n1\trow 1\n2\trow 2\n3\trow 3"


def test_a_read_without_a_last_line_ends_at_the_default_size_and_names_the_way_on():
    text = "".join(f"{'x' * 60} {number}\n" for number in range(1, 101))
    shown = observe.numbered("a.txt", text, 11, None)
    last = int(shown.splitlines()[-1].split("\t")[0])
    assert f"lines 11–{last} of 100. Read on with first={last + 1}." in shown
    assert observe.tokens(shown) <= observe.DEFAULT_TOKENS + 20
    assert last < 11 + observe.READ_LINES - 1
    assert observe.tokens(observe.numbered("a.txt", text, 11, 70)) > observe.DEFAULT_TOKENS + 20


def test_a_read_without_a_last_line_is_never_more_than_sixty_lines():
    assert "lines 1–60 of 100." in observe.numbered("a.txt", "x\n" * 100, 1, None)


def test_one_line_above_the_default_size_is_shown_alone():
    line = "x" * (2 * observe.DEFAULT_TOKENS * observe.BYTES_PER_TOKEN)
    assert (
        observe.numbered("a.txt", f"{line}\nnext\n", 1, None)
        == f"a.txt, lines 1–1 of 2. Read on with first=2.\n1\t{line}"
    )


def test_reading_past_the_end_says_how_long_the_file_is():
    assert observe.numbered("a.txt", "one\n", 5, None) == "a.txt has 1 lines; there is no line 5."


def test_a_line_too_long_to_show_says_what_to_do():
    assert "cut -c" in observe.numbered("a.json", "x" * 100_000, 1, None)


def test_an_empty_file_reads_as_empty():
    assert observe.numbered("a.txt", "", 1, None) == "a.txt is empty."


def test_a_range_that_ends_before_it_begins_is_said_to():
    assert observe.numbered("a.txt", "one\ntwo\n", 2, 1) == "last=1 comes before first=2; a.txt has 2 lines."


def test_line_ends_of_windows_are_no_lines_of_their_own():
    assert observe.numbered("a.txt", "one\r\ntwo\r\n", 1, None) == "a.txt, lines 1–2 of 2.\n1\tone\n2\ttwo"


def test_terminal_escapes_do_not_reach_the_model():
    assert observe.plain("\x1b[31mred\x1b[0m\x07\r\nnext") == "red\nnext"


def test_many_matches_are_counted_by_file():
    output = "\n".join(f"src/a.py:{number}:x" for number in range(60))
    shown = observe.matches("x", output, 0)
    assert shown.count("\n") == observe.SEARCH_LINES
    assert "20 more lines, in src/a.py (20)" in shown


def test_no_match_and_a_broken_pattern_are_told_apart():
    assert "Nothing matches" in observe.matches("x", "", 1)
    assert "failed" in observe.matches("(", "grep: Unmatched (", 2)


def hits(*places: tuple[str, int]) -> tuple[Hit, ...]:
    return tuple(Hit(path, line, f"    text of line {line}") for path, line in places)


def test_matches_are_grouped_by_file_in_the_order_given_and_definitions_are_marked():
    found = Matches(hits(("b.py", 3), ("b.py", 9), ("a.py", 1)), frozenset({("b.py", 3)}))
    assert observe.ranked("x", found).split("\n") == [
        "3 lines in 2 files:",
        "b.py",
        "  3: text of line 3  <- defined here",
        "  9: text of line 9",
        "a.py",
        "  1: text of line 1",
    ]


@given(st.integers(min_value=1, max_value=500), st.sampled_from([100, 500, 4000]))
def test_a_search_fits_its_room_and_counts_what_it_leaves_out(lines: int, limit: int):
    found = Matches(hits(*((f"folder/file_{n // 7}.py", n) for n in range(lines))))
    shown = observe.ranked("x", found, limit)
    assert observe.tokens(shown) <= limit + 60
    listed = sum(line.startswith("  ") for line in shown.split("\n"))
    assert listed == lines or f"[{lines - listed} more lines, in " in shown


def test_no_match_names_the_nearest_files():
    near = (Ranked("app/limits.py", 1.0, ("its path has limit", "its text has the task's words", "more")),)
    shown = observe.ranked("limits", Matches((), nearest=near))
    assert shown == (
        "Nothing matches 'limits'.\nNearest files by its words:\n"
        "app/limits.py (its path has limit; its text has the task's words)"
    )


def test_a_large_file_is_shown_as_its_outline_and_a_small_one_is_not():
    definitions = [
        Definition("A", "class", 1, 300, "class A"),
        Definition("go", "method", 3, 9, "def go(self)", "", "A"),
    ]
    shown = observe.outlined("a.py", "x\n" * 300, definitions)
    assert shown.split("\n")[1:] == ["1-300: class A", "  3-9: def go(self)"]
    assert "first and last" in shown
    assert observe.outlined("a.py", "x\n" * 100, definitions) == ""
    assert observe.outlined("a.txt", "x\n" * 300, []) == ""


def test_a_long_outline_keeps_the_outer_definitions_and_its_limit():
    definitions = [
        Definition(f"f{n}", "function", n, n, f"def f{n}()", "", "" if n % 10 == 0 else "A") for n in range(400)
    ]
    shown = observe.outlined("a.py", "x\n" * 500, definitions)
    assert "def f390()" in shown
    assert "def f391()" not in shown
    assert observe.tokens(shown) <= 520
