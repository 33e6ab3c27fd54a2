"""What changed since an approval, as a reviewer reads it."""

from __future__ import annotations

from bot.stages.approving.since import LONGEST, MOST_LINES, changed_since, section
from tests.unit.stages.approving.builders import DIGEST, approval

OLD = """diff --git a/a.py b/a.py
index 1111111..2222222 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,4 @@ def a():
 one
-two
+three
"""
SECRET = "ghp_" + "A1b2C3d4E5f6" * 3


def test_lines_that_only_moved_are_no_difference() -> None:
    moved = OLD.replace("@@ -1,3 +1,4 @@", "@@ -41,3 +41,4 @@").replace("1111111..2222222", "3333333..4444444")
    assert changed_since(OLD, moved) == ""


def test_another_line_is_shown_in_its_place() -> None:
    shown = changed_since(OLD, OLD.replace("+three", "+four"))
    assert "-+three" in shown
    assert "++four" in shown


def test_a_long_difference_is_cut_and_says_so() -> None:
    shown = changed_since(OLD, OLD + "".join(f"+line {n}\n" for n in range(1_000)))
    assert len(shown.splitlines()) == MOST_LINES + 1
    assert shown.endswith("(cut; the whole is in the pull request)")
    assert len(changed_since(OLD, OLD + "+" + "x" * 99_999)) < LONGEST + 100


def test_nothing_in_the_text_closes_the_fence_or_shows_a_secret() -> None:
    text = section(approval(), f"+```\n+</details>\n+@everyone {SECRET}\n+````")
    lines = text.splitlines()
    assert lines[0] == f"<details><summary>What changed since @ada approved {DIGEST[:12]}</summary>"
    assert lines[2] == "`````diff"
    assert lines.count("`````") == 1
    assert SECRET not in text
    assert section(approval(), "") == ""
