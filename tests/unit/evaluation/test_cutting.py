"""Which commits make a task, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.domain.change import ChangedPath, CommitFacts, FileMode, TreeEntry
from bot.domain.ids import BlobId, CommitId
from bot.evaluation.cutting import MOST_FILES, MOST_LINES, Candidate, Unfit, cut, words_of
from bot.policy.engine import Policies
from bot.settings import PROJECT, load_policies

OWN, PARENT = CommitId("c" * 40), CommitId("b" * 40)


@pytest.fixture(scope="module")
def policies() -> Policies:
    return load_policies(PROJECT / "policies")


def changed(path: str, *, gone: bool = False, mode: FileMode = FileMode.REGULAR) -> ChangedPath:
    entry = TreeEntry(path, mode, BlobId("a" * 40))
    return ChangedPath(path, entry if gone else None, None if gone else entry)


def facts(*paths: str | ChangedPath, message: str = "Add calc.triple", lines: int = 10) -> CommitFacts:
    changes = tuple(path if isinstance(path, ChangedPath) else changed(path) for path in paths)
    return CommitFacts(OWN, PARENT, message, changes, lines)


def test_a_commit_with_code_and_a_test_is_a_task_whose_tests_are_hidden(policies: Policies):
    one = cut(facts("calc.py", "docs/calc.md", "tests/test_calc.py", "tests/data.json"), policies)
    assert isinstance(one, Candidate)
    assert (one.commit, one.base) == (OWN, PARENT)
    assert one.files == ("calc.py", "docs/calc.md")
    assert [change.path for change in one.hidden] == ["tests/test_calc.py", "tests/data.json"]
    assert one.title == one.words == "Add calc.triple"


GOOD = facts("calc.py", "test_calc.py")


@pytest.mark.parametrize(
    ("commit", "unfit"),
    [
        (replace(GOOD, parent=None), Unfit.ROOT),
        (facts(), Unfit.NO_TEST),
        (facts("calc.py"), Unfit.NO_TEST),
        (facts("calc.py", changed("test_calc.py", gone=True)), Unfit.NO_TEST),
        (facts("test_calc.py"), Unfit.ONLY_TESTS),
        (facts("calc.py", "test_calc.py", changed("vendor", mode=FileMode.GITLINK)), Unfit.SUBMODULE),
        (replace(GOOD, lines=MOST_LINES + 1), Unfit.TOO_LARGE),
        (facts("test_calc.py", *(f"{number}.py" for number in range(MOST_FILES))), Unfit.TOO_LARGE),
        (replace(GOOD, message="wip"), Unfit.SILENT),
        (replace(GOOD, message="Release 1.2.3\n\nSigned-off-by: Ann Other <ann@example.org>"), Unfit.SILENT),
        (replace(GOOD, message="Merge pull request #12 from ann/some-work-of-mine"), Unfit.SILENT),
        (facts("calc.py", "test_calc.py", ".github/workflows/ci.yml"), Unfit.DENIED),
    ],
)
def test_what_makes_no_task_says_why(policies: Policies, commit: CommitFacts, unfit: Unfit):
    assert cut(commit, policies) is unfit


def test_the_limits_themselves_still_make_a_task(policies: Policies):
    paths = ["test_calc.py", *(f"{number}.py" for number in range(MOST_FILES - 1))]
    assert isinstance(cut(facts(*paths, lines=MOST_LINES), policies), Candidate)


def test_words_without_spaces_say_something_too(policies: Policies):
    assert isinstance(cut(replace(GOOD, message="計算機能に三倍を求める関数を追加"), policies), Candidate)


def test_rules_that_do_not_hold_allow_nothing():
    assert cut(GOOD, load_policies(PROJECT / "no-such-directory")) is Unfit.DENIED


LINES: Sequence[tuple[str, str]] = (
    ("Add triple\n\nIt is three times.\n\nSigned-off-by: Ann <a@b.org>\nCo-authored-by: Bob <b@b.org>\nCc: x@b.org\n", "Add triple\n\nIt is three times."),
    ("Add triple\n\n(cherry picked from commit 0123456789abcdef0123456789abcdef01234567)", "Add triple"),
    ("Fix what 1a2b3c4d broke", "Fix what an earlier commit broke"),
    ("Undo\n\nThis reverts commit 0123456789abcdef0123456789abcdef01234567.", "Undo\n\nThis reverts an earlier commit."),
    ("See https://forge.example/a/b/commit/1a2b3c4d5e for why", "See an earlier commit for why"),
    ("Add triple (#12)\n\n* It is three times\n\n---------\n\nCo-authored-by: Ann <a@b.org>", "Add triple (#12)\n\n* It is three times"),
    ("Merge pull request #12 from ann/triple\n\nAdd triple to calc", "Add triple to calc"),
    ("Merge branch 'triple' into main\n\nAdd triple to calc", "Add triple to calc"),
    ("Merge sorted runs without a copy", "Merge sorted runs without a copy"),
    ("fix: keep the deadbeef cafes and 1234567 numbers", "fix: keep the deadbeef cafes and 1234567 numbers"),
    ("Parse 550e8400-e29b-41d4-a716-446655440000 as one id", "Parse 550e8400-e29b-41d4-a716-446655440000 as one id"),
    ("Note: a subject with a colon\n\nfix: so has this line", "Note: a subject with a colon\n\nfix: so has this line"),
)  # fmt: skip


@pytest.mark.parametrize(("message", "words"), LINES)
def test_the_words_are_the_message_without_what_names_commits_and_people(message: str, words: str):
    assert words_of(message) == words
