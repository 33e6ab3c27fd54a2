"""A repository's own rules: they only forbid, they are read from the base, and a broken file stops everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.domain.repository import LandingMode
from bot.domain.task import Stage
from tests.histories.history import History, Playing, playing

RULES = ".github/pullwright.cedar"
FORBIDS = """@id("no-stock")
@reason("The stock is changed by hand here.")
forbid (
  principal,
  action == Pullwright::Action::"LandChange",
  resource
) when { resource.touches.contains("stock.py") };
"""


def ruled(root: Path, rules: str) -> Playing:
    return playing(root, LandingMode.MERGE, files={RULES: rules})


async def approve(history: History) -> None:
    await history.review("robin", "APPROVE", history.pull.head_sha)
    await history.deliver_all()


async def test_what_it_forbids_does_not_land_and_the_rule_is_named(tmp_path: Path):
    async with ruled(tmp_path, FORBIDS) as history:
        await history.push("rosa", {"stock.py": "stock = 9\n"})
        await history.deliver_all()
        await approve(history)
        assert not history.pull.merged
        said = " ".join(comment.body for comment in history.issue.comments)
        assert "The stock is changed by hand here." in said


async def test_what_it_does_not_forbid_lands(tmp_path: Path):
    async with ruled(tmp_path, FORBIDS) as history:
        await approve(history)
        assert history.pull.merged


async def test_a_branch_cannot_lift_the_rule_it_is_judged_by(tmp_path: Path):
    async with ruled(tmp_path, FORBIDS) as history:
        await history.push("rosa", {"stock.py": "stock = 9\n", RULES: "\n"})
        await history.deliver_all()
        await history.review("robin", "APPROVE", history.pull.head_sha)
        digest = history.oracle.current(history.pull)
        await history.say("robin", "approve", f"{digest} allow:bot_config")
        await history.deliver_all()
        assert not history.pull.merged


@pytest.mark.parametrize(
    "rules", ["permit (principal, action, resource);", "forbid (", "forbid (principal, action, x);"]
)
async def test_a_file_that_permits_or_does_not_read_stops_the_task(rules: str, tmp_path: Path):
    async with ruled(tmp_path, rules) as history:
        assert history.ending is not None
        assert history.ending.stage is Stage.POLICY_DENIED
        assert RULES in history.ending.reason
