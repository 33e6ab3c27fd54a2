"""What people read on GitHub, as they read it. Look before you update a snapshot."""

from dataclasses import replace

from syrupy.assertion import SnapshotAssertion

from bot.domain.egress import Attempt
from bot.domain.ids import CommitId, Digest, StepId, TaskId, TreeId
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan, Step
from bot.domain.task import Ending, Stage
from bot.domain.verdict import TestCase, TestOutcome, TestReport, Verdict
from bot.policy.flags import Flag, Weight
from bot.stages.publishing.texts import (
    Cost,
    PullView,
    StatusView,
    commit_message,
    cost_line,
    evidence,
    marker,
    pull_body,
    status,
    ways_out,
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


PULL = PullView(
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


def test_the_pull_requests_body(snapshot: SnapshotAssertion):
    assert pull_body(PULL) == snapshot


FLAGS = (
    Flag("binary", Weight.NAMED, ("logo.png",), "A binary file is not shown as a diff."),
    Flag("large", Weight.NAMED, (), "120 files change, more than 100."),
    Flag("lockfile", Weight.SHOWN, tuple(f"{n}/uv.lock" for n in range(10)), "Versions of dependencies change."),
)


def test_what_is_to_be_looked_at_stands_before_the_digest_with_the_words_that_allow_it(snapshot: SnapshotAssertion):
    body = pull_body(replace(PULL, flags=FLAGS))
    assert body[body.index("## Look") : body.index("To recompute")] == snapshot
    assert "allow:" not in pull_body(replace(PULL, flags=FLAGS[2:]))


def test_a_command_that_names_no_tests_is_not_counted_as_one():
    before, after = (TestReport("npm test", 0, seconds, (TestCase("command: npm test", P),)) for seconds in (1.25, 2.5))
    said = evidence(Verdict(TREE, before, after, (), ()))
    assert "before: the command succeeded in 1.2 s" in said
    assert "after: the command succeeded in 2.5 s" in said
    assert "names no single tests" in said
    assert "1 passed" not in said
    assert "No test that passed" not in said


def test_what_still_fails_is_named():
    said = evidence(Verdict(TREE, report(a=F, b=P), report(a=F, b=P), (), ()))
    assert "- Failing as before: `test_a`" in said


EGRESS = (
    Attempt("files.example.org:443", allowed=True, phase="set-up", times=3),
    Attempt("files.example.org:443", allowed=False, unlisted=True, phase="the tests on the base"),
    Attempt("inside.example.org:443", allowed=False, reason="leads to an address that is not public", phase="set-up"),
)


def test_what_was_asked_of_the_network_is_folded_into_both(snapshot: SnapshotAssertion):
    assert ways_out(EGRESS) == snapshot
    assert f"\n\n{ways_out(EGRESS)}\n\n<sub>" in status(view(Stage.CODING, egress=EGRESS))
    body = pull_body(replace(PULL, egress=EGRESS))
    assert (
        f"in a fresh sandbox with the network named below that held exactly the tree below.\n\n{ways_out(EGRESS)}\n\n"
        in body
    )
    assert "in a fresh sandbox without network" in pull_body(replace(PULL, egress=EGRESS[1:]))


def test_of_very_much_only_the_beginning_is_shown_and_what_a_sandbox_named_is_inert():
    evil = "@rosa `</details><img src=x> \u202eevil\nfixes #1 " + "a" * 500
    many = tuple(Attempt(f"{number}{evil}", allowed=False, reason=evil, phase="set-up") for number in range(40))
    said = ways_out(many)
    assert "- and 28 more" in said
    assert len(said) < 5_000
    assert said.count("<") == 4
    assert all(line.count("`") == 4 for line in said.splitlines() if line.startswith("- `"))
    assert "PULLWRIGHT_EGRESS" not in said, "adding it would not help"


def test_the_hit_rate_is_reads_over_the_whole_prompt():
    assert Cost(MicroUsd(1), MicroUsd(2), 1, 10, 30, 60, 5).hit_rate == 0.6
    assert Cost(MicroUsd(1), MicroUsd(2), 0, 0, 0, 0, 0).hit_rate == 0.0
    assert "0 tokens from cache (0%)" in cost_line(Cost(MicroUsd(1), MicroUsd(2), 0, 0, 0, 0, 0))


def test_the_commit_names_the_issue_and_the_task():
    assert commit_message("Add a limit", 7, TASK) == "Add a limit\n\nFor #7, by Pullwright (task:1:7:1).\n"
