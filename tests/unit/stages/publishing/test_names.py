import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.ids import TaskId
from bot.stages.publishing.names import BRANCH_PREFIX, branch, title

TASK = TaskId("task:1:7:2")


def test_a_branch_names_issue_words_and_generation():
    assert branch(7, "Add rate limiting to ALL endpoints!", TASK) == "agent/7-add-rate-limiting-to-all-endpoints-2"


def test_accents_fall_away_and_nothing_left_is_still_a_name():
    assert branch(7, "Über—größe", TASK) == "agent/7-ubergroe-2"
    assert branch(7, "日本語", TASK) == "agent/7-task-2"


@given(st.text(max_size=300), st.integers(min_value=1, max_value=10**9))
def test_every_title_makes_a_valid_branch(text: str, number: int):
    name = branch(number, text, TASK)
    assert name.startswith(BRANCH_PREFIX)
    assert re.fullmatch(r"agent/[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= 100


@given(st.text(max_size=300))
def test_every_title_is_one_line_that_calls_nobody(text: str):
    made = title(text)
    assert made
    assert "\n" not in made
    assert len(made) <= 120
    assert not re.search(r"[@#]\w", made)
    assert not made.startswith("/")


@pytest.mark.parametrize(
    ("given_title", "made"),
    [
        ("/agent merge it", "agent merge it"),
        ("Fix @rosa's #12", "Fix rosa's 12"),
        ("@#x and @`y`", "x and @ 'y'"),
        ("fixes GH-1", "fixes 'GH-1'"),
        ("[skip ci] Speed up", "(skip ci) Speed up"),
        ("Add ghp_A1b2C3d4E5f6A1b2C3d4E5f6 to CI", "Add [secret-removed] to CI"),
        ("Add it\n\nCo-authored-by: Eve <eve@e.example>", "Add it"),
        ("Use `int`", "Use 'int'"),
    ],
)
def test_what_could_act_in_a_title_does_not_act(given_title: str, made: str):
    assert title(given_title) == made
