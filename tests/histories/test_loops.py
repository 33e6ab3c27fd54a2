"""Loop breakers where people meet them: starting tasks, and asking for rounds of review."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.money import MicroUsd
from bot.domain.repository import LandingMode
from bot.domain.task import Stage
from bot.policy.loops import LoopLimits
from tests.histories.history import History
from tests.histories.stage import Mutant, staged
from tests.histories.test_ground import office


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (LoopLimits(per_user_hour=1), "@rosa asked for work 1 times within an hour"),
        (LoopLimits(per_repository_day=1), "1 times here within a day"),
        (LoopLimits(money_per_day=MicroUsd(999_999)), "$0.5000 are set aside for running tasks"),
    ],
)
async def test_one_start_too_many_is_held_with_the_reason_and_costs_nothing(
    limits: LoopLimits, words: str, tmp_path: Path
):
    async with office(tmp_path) as made:
        made.services = replace(made.services, loops=limits)
        await made.ask("rosa", "POST", f"{made.here}/issues", {"title": "More"})
        await made.ask("rosa", "POST", f"{made.here}/issues/2/comments", {"body": "/agent run"})
        await made.deliver()
        assert len(made.started) == 1
        assert "Not now: " in made.said(2)
        assert words in made.said(2)
        made.services = replace(made.services, loops=LoopLimits())
        await made.ask("rosa", "POST", f"{made.here}/issues/2/comments", {"body": "/agent run"})
        await made.deliver()
        assert len(made.started) == 2


async def test_a_start_of_somebody_else_is_let_through(tmp_path: Path):
    async with office(tmp_path) as made:
        made.services = replace(made.services, loops=LoopLimits(per_user_hour=1))
        await made.ask("rosa", "POST", f"{made.here}/issues", {"title": "More"})
        await made.ask("robin", "POST", f"{made.here}/issues/2/comments", {"body": "/agent run"})
        await made.deliver()
        assert len(made.started) == 2


async def fix(history: History, what: str) -> None:
    path = f"{history.here}/issues/{history.issue.number}/comments"
    await history.ask("rosa", "POST", path, {"body": f"/agent fix {what}"})
    await history.deliver_all()


async def test_rounds_are_held_and_bounded_and_each_has_its_own_budget(tmp_path: Path):
    async with staged(tmp_path, Mutant()) as stage:
        stage.services = replace(stage.services, loops=LoopLimits(rounds_per_pull=2, per_user_hour=1))
        history = History(stage, LandingMode.READY)
        await history.begin()
        await history.deliver_all()
        stage.books.spent = MicroUsd(450_000)
        await fix(history, "one")
        assert history.conductor.allowed == [None, 950_000]
        await fix(history, "two")
        assert history.conductor.rounds == 2
        assert "Not now: @rosa asked for work 1 times" in history.conductor.notes[-1]
        stage.services = replace(stage.services, loops=LoopLimits(rounds_per_pull=2))
        stage.books.spent = MicroUsd(700_000)
        await fix(history, "three")
        assert history.conductor.allowed == [None, 950_000, 1_200_000]
        await fix(history, "four")
        assert history.ending is not None
        assert history.ending.stage is Stage.NEEDS_HUMAN
        assert "2 rounds of review" in history.ending.reason
        await history.close()
