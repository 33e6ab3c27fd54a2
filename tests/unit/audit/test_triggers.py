"""GitHub's filters of branches, on the bot's."""

from __future__ import annotations

import pytest

from bot.audit.triggers import reached_by_bot


@pytest.mark.parametrize(
    ("patterns", "reached"),
    [
        (["main"], False),
        (["**"], True),
        (["*"], False),
        (["agent/*"], True),
        (["agent/**", "!agent/1-x"], False),
        (["!agent/**", "**"], True),
        (["**", "!agent/**"], False),
        (["agent/[0-9]+-x"], True),
        (["agent/?-x"], False),
        (["agent/[1"], False),
        (["agents?/1-x"], True),
        ("agent/**", True),
        ([], False),
        (None, False),
    ],
)
def test_branches_as_github_reads_them(patterns: object, reached: bool):
    assert (reached_by_bot({"push": {"branches": patterns}}, "agent/", "main") == "push") is reached


def test_what_is_ignored_and_what_has_no_filter():
    assert reached_by_bot({"push": {"branches-ignore": ["agent/**"]}}, "agent/", "main") is None
    assert reached_by_bot({"push": {"branches-ignore": ["main"]}}, "agent/", "main") == "push"
    assert reached_by_bot({"push": {"tags": ["v1"], "branches": ["agent/**"]}}, "agent/", "main") == "push"
    assert reached_by_bot({"push": None}, "agent/", "main") == "push"
    assert reached_by_bot({"pull_request": {"branches-ignore": ["main"]}}, "agent/", "main") is None
    assert reached_by_bot({"pull_request_target": None}, "agent/", "main") is None
    assert reached_by_bot({"schedule": [{"cron": "0 0 * * *"}], "workflow_dispatch": None}, "agent/", "main") is None
