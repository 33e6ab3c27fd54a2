"""What people read on GitHub, as they read it. Look before you update a snapshot."""

from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from bot.domain.ids import CommitId, Digest, StepId, TaskId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan, Step
from bot.domain.task import Ending, Stage
from bot.domain.verdict import TestCase, TestOutcome, TestReport, Verdict
from bot.stages.publishing.texts import (
    Cost,
    PullView,
    StatusView,
    commit_message,
    cost_line,
    marker,
    pull_body,
    status,
)

TASK = TaskId("task:1:7:1")
TREE = TreeId("a" * 40)
COST = Cost(MicroUsd(110_826), MicroUsd(500_000), 14, 42, 21_900, 40_300, 5_100)
PLAN = Plan(
    "Adds a limit.",
    (
        Step(StepId("a"), "Add a bucket", "x", (), (), ()),
        Step(StepId("b"), "Use it everywhere", "y", (), (StepId("a"),), ()),
    ),
)


def report(**cases: TestOutcome) -> TestReport:
    return TestReport("pytest -q", 0, 1.25, tuple(TestCase(f"test_{name}", outcome) for name, outcome in cases.items()))


P, F, S = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED
VERDICT = Verdict(TREE, report(a=P, b=F, c=S), report(a=P, b=P, c=S, new=P), (), ())


def view(stage: Stage, **changes: object) -> StatusView:
    made = StatusView(TASK, stage, PLAN, ("Add a bucket", "Use it everywhere"), (StepId("a"),), StepId("b"), cost=COST)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_sticky_comment_while_it_works(snapshot: SnapshotAssertion):
    assert status(view(Stage.CODING)) == snapshot


def test_the_sticky_comment_in_review(snapshot: SnapshotAssertion):
    assert status(view(Stage.IN_REVIEW, pull_number=8, working=None, note="A note.")) == snapshot


def test_the_sticky_comment_at_an_end(snapshot: SnapshotAssertion):
    ending = Ending(Stage.NEEDS_HUMAN, "The same check failed twice.", "Reply `/agent retry` to try again.")
    assert status(view(Stage.NEEDS_HUMAN, ending=ending, working=None)) == snapshot


def test_every_stage_has_a_headline():
    for stage in Stage:
        assert status(StatusView(TASK, stage)).splitlines()[1].startswith("**")


def test_the_comment_begins_with_the_mark_it_is_found_by():
    assert status(view(Stage.CODING)).startswith(marker(TASK) + "\n")


def test_the_pull_requests_body(snapshot: SnapshotAssertion):
    body = pull_body(
        PullView(
            task=TASK,
            issue_number=7,
            issue_is_pull=False,
            plan_text="Adds a limit.\n\n1. **Add a bucket**",
            verdict=VERDICT,
            cost=COST,
            digest=Digest("d" * 64),
            base_ref="main",
            base=CommitId("b" * 40),
            tree=TREE,
            changed_files=3,
            digest_command="printf … | sha256sum",
        )
    )
    assert body == snapshot


def test_the_hit_rate_is_reads_over_the_whole_prompt():
    assert Cost(MicroUsd(1), MicroUsd(2), 1, 10, 30, 60, 5).hit_rate == 0.6
    assert Cost(MicroUsd(1), MicroUsd(2), 0, 0, 0, 0, 0).hit_rate == 0.0
    assert "0 tokens from cache (0%)" in cost_line(Cost(MicroUsd(1), MicroUsd(2), 0, 0, 0, 0, 0))


def test_the_commit_names_the_issue_and_the_task():
    assert commit_message("Add a limit", 7, TASK) == "Add a limit\n\nFor #7, by Pullwright (task:1:7:1).\n"
