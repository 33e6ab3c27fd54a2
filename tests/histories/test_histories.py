"""The gate against random histories: nothing unapproved lands, what is approved lands, and a broken gate is found out."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bot.domain.repository import LandingMode
from bot.policy.engine import Policies
from tests.histories.history import History, Race, Violation, playing
from tests.histories.mutants import MUTANTS, Script
from tests.histories.play import EVERYBODY, WRITERS, calm, play
from tests.histories.run import chunk
from tests.histories.stage import Mutant, shipped, staged

SEEDS = range(6)
Note = Callable[[str, object], None]


@pytest.fixture(scope="module")
def policies() -> Policies:
    return shipped()


@pytest.mark.parametrize("first", SEEDS[::3])
async def test_nothing_unapproved_lands_and_what_is_approved_does(first: int, policies: Policies):
    landed = 0
    for seed in range(first, first + 3):
        landed += (await play(seed, policies))["landed"]
    assert landed


def test_a_seed_is_one_history_whatever_was_played_before_it_in_the_process():
    both, alone, after = chunk(2, 2), chunk(2, 1), chunk(3, 1)
    assert both == (alone[0] + after[0], [])


async def acted(mutant: Mutant, mode: LandingMode, script: Script, policies: Policies, root: Path) -> None:
    async with playing(root, mode, mutant=mutant, policies=policies) as history:
        await script(history)
        history.check()


@pytest.mark.parametrize(("mutant", "mode", "script"), MUTANTS, ids=[mutant.name for mutant, _, _ in MUTANTS])
async def test_a_gate_broken_on_purpose_is_found_out(
    mutant: Mutant, mode: LandingMode, script: Script, policies: Policies, tmp_path: Path, record_property: Note
):
    await acted(Mutant(), mode, script, policies, tmp_path / "whole")
    with pytest.raises(Violation):
        await acted(mutant, mode, script, policies, tmp_path / "broken")
    record_property("control", f"a gate that {mutant.name} is found out")


FILES = st.fixed_dictionaries(
    {}, optional={"feature.py": st.sampled_from(["good = 1\n", "good = 2\n", "bad = 1\n"])}
).filter(bool)
ROLES = st.sampled_from(["write", "read", "none"])
SOMEBODY, WRITER = st.sampled_from(EVERYBODY), st.sampled_from(WRITERS)


class Gate(RuleBasedStateMachine):
    """The same world, with hypothesis choosing, and shrinking what it finds."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.root = tempfile.TemporaryDirectory(prefix="gate-")
        self.stage: Any = None

    def do(self, act: Awaitable[Any]) -> None:
        async def go() -> None:
            await act

        self.runner.run(go())

    @initialize(mode=st.sampled_from(list(LandingMode)))
    def begin(self, mode: LandingMode) -> None:
        async def go() -> None:
            self.stage = staged(Path(self.root.name))
            self.history = History(await self.stage.__aenter__(), mode)
            await self.history.begin()

        self.do(go())

    @rule(who=SOMEBODY, files=FILES)
    def push(self, who: str, files: dict[str, str]) -> None:
        self.do(self.history.push(who, files))

    @rule(files=FILES)
    def move_base(self, files: dict[str, str]) -> None:
        self.do(self.history.move_base("rosa", files))

    @rule(who=WRITER, base=st.sampled_from(["main", "decoy"]))
    def retarget(self, who: str, base: str) -> None:
        self.do(self.history.retarget(who, base))

    @rule(who=SOMEBODY, event=st.sampled_from(["APPROVE", "REQUEST_CHANGES", "COMMENT"]))
    def review(self, who: str, event: str) -> None:
        self.do(self.history.review(who, event))

    @rule(who=SOMEBODY, verb=st.sampled_from(["approve", "merge"]))
    def say(self, who: str, verb: str) -> None:
        self.do(self.history.say(who, verb, self.history.oracle.current(self.history.pull)))

    @rule(who=WRITER, of=WRITER)
    def dismiss(self, who: str, of: str) -> None:
        self.do(self.history.dismiss(who, of))

    @rule(login=SOMEBODY, role=ROLES)
    def grade(self, login: str, role: str) -> None:
        self.do(self.history.grade(login, role))

    @rule(
        method=st.sampled_from(["merge", "mark_ready", "reviews", "permission"]),
        base=st.sampled_from(["main", "decoy"]),
    )
    def race(self, method: str, base: str) -> None:
        self.history.races.append(Race(method, lambda: self.history.retarget("carl", base)))

    @rule(position=st.integers(0, 5), keep=st.booleans())
    def deliver(self, position: int, *, keep: bool) -> None:
        self.do(self.history.deliver(position, keep=keep))

    @precondition(lambda self: self.stage is not None)
    @invariant()
    def holds(self) -> None:
        self.history.check()

    def teardown(self) -> None:
        async def end() -> None:
            try:
                await calm(self.history)
            finally:
                await self.history.close()
                await self.stage.__aexit__(None, None, None)

        if self.stage is not None:
            self.do(end())
        self.runner.close()
        self.root.cleanup()


Gate.TestCase.settings = settings(
    max_examples=6,
    stateful_step_count=14,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestGate = Gate.TestCase
