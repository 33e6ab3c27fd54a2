"""Names that change under a task: what random histories found, told by hand."""

from __future__ import annotations

from pathlib import Path

from bot.domain.repository import LandingMode
from bot.domain.task import Stage
from tests.histories.history import playing


async def test_a_merge_after_the_approved_base_was_renamed_raises_the_alarm(tmp_path: Path):
    """Seed 785: the branch that was approved for is gone for good; waiting for it ended the task without a word about the merge."""
    async with playing(tmp_path, LandingMode.READY) as history:
        await history.review("robin", "APPROVE", history.pull.head_sha)
        await history.deliver_all()
        await history.rename_base("trunk")
        await history.merge("rosa")
        history.pending = [one for one in history.pending if one.action == "closed" and one.event == "pull_request"]
        await history.deliver_all()
        assert history.ending is not None
        assert history.ending.stage is Stage.NEEDS_HUMAN
        assert "merged into `trunk`, but it was approved for `main`" in history.ending.reason
