"""The pipeline's order and reactions, driven with a conductor that answers from a script."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.domain.action import ClosedMessage, Command, CommandMessage, PullMessage, ReviewMessage, TaskMessage, Verb
from bot.domain.change import Change
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.egress import Attempt
from bot.domain.event import Actor, Closing, PullActivity, ReviewState, Subject
from bot.domain.ids import (
    CommentId,
    CommitId,
    DeliveryId,
    Digest,
    InstallationId,
    NodeId,
    RepositoryId,
    ReviewId,
    StepId,
    TaskId,
    TreeId,
    UserId,
)
from bot.domain.money import MicroUsd
from bot.domain.plan import Plan, Step
from bot.domain.pull import Approval, Permission
from bot.domain.repository import LandingMode, RepositoryRef, RepositorySettings
from bot.domain.task import Ending, Stage, TaskSpec
from bot.domain.verdict import Failure, FailureKind, TestReport, Verdict
from bot.stages.planning.texts import plan_hash
from bot.stages.publishing import texts as publishing_texts
from bot.workflow import records, task
from bot.workflow.building import Progress
from bot.workflow.journal import TaskEnded

BASE, HEAD, OTHER = CommitId("b" * 40), CommitId("c" * 40), CommitId("d" * 40)
TREE, OTHER_TREE = TreeId("1" * 40), TreeId("2" * 40)
DIGEST = Digest("f" * 64)
RUNS = TestReport("pytest", 0, 1.0, ())
REVIEWER = Actor(UserId(5), "robin", is_bot=False)
SPEC = TaskSpec(
    TaskId("task:1:7:1"),
    Subject(RepositoryRef(RepositoryId(1), "o/r", InstallationId(9)), 7, is_pull=False),
    Actor(UserId(4), "rosa", is_bot=False),
    "Title",
    "Body",
    MicroUsd(500_000),
)
PASSED = Decision("gate", (Reason("all", Outcome.PASSED, "Fine."),))
REFUSED = Decision("gate", (Reason("head", Outcome.REFUSED, "Moved."),))


def approval(digest: Digest = DIGEST) -> Approval:
    return Approval(
        RepositoryId(1),
        NodeId("PR_1"),
        8,
        ReviewId(1),
        REVIEWER,
        Permission.WRITE,
        "now",
        DeliveryId("d"),
        HEAD,
        HEAD,
        "main",
        BASE,
        BASE,
        digest,
        TREE,
        TREE,
        "policy",
        (),
    )


def step(name: str) -> Step:
    return Step(StepId(name), name, "Do it.", (), (), ())


def verified(tree: TreeId, *failures: str) -> records.Verified:
    made = tuple(Failure(FailureKind.BROKE_TEST, name, "", name) for name in failures)
    return records.Verified(Change(BASE, TreeId("0" * 40), tree, ()), Verdict(tree, RUNS, RUNS, (), made))


def published(head: CommitId = HEAD, tree: TreeId = TREE) -> records.Published:
    return records.Published(8, NodeId("PR_1"), "agent/7-x-1", head, tree, DIGEST)


@dataclass
class Script:
    """A conductor that plays what the test wrote down and keeps what was asked of it."""

    inbox: Sequence[TaskMessage] = ()
    examined: Sequence[records.Examined] = ()
    landed: Sequence[records.Landed] = ()
    verdicts: Sequence[records.Verified] = (verified(TREE),)
    settings: RepositorySettings = field(default_factory=RepositorySettings)
    asks: bool = False
    """Every segment asks the way out."""
    calls: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shown: list[tuple[Attempt, ...]] = field(default_factory=list)
    asked: list[records.ExamineOrder] = field(default_factory=list)
    adopts: records.Verified = field(default_factory=lambda: verified(OTHER_TREE))
    fail_in: str = ""
    overtaken: bool = False
    """Somebody pushes while a review is worked in."""

    def __post_init__(self) -> None:
        self._inbox, self._examined = list(self.inbox), list(self.examined)
        self._landed, self._verdicts = list(self.landed), list(self.verdicts)

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fail_in:
            raise TaskEnded(Ending(Stage.OVER_BUDGET, "No money."))

    async def prepare(self) -> records.Prepared:
        self._called("prepare")
        return records.Prepared("main", BASE, TreeId("0" * 40), self.settings, RUNS, RUNS, egress=self._asked("base"))

    async def plan(self, prepared: records.Prepared) -> Plan:
        self._called("plan")
        return Plan("Summary.", (step("a"), step("b")))

    async def code(self, order: records.CodeOrder) -> records.Coded:
        self._called(f"code {order.step.id}")
        return records.Coded(TREE, "", 1, 1, self._asked("work"))

    async def verify(self, key: str, order: records.VerifyOrder) -> records.Verified:
        self._called(f"verify {order.tree[:1]}")
        found = self._verdicts.pop(0) if len(self._verdicts) > 1 else self._verdicts[0]
        return replace(found, egress=self._asked("check"))

    def _asked(self, phase: str) -> tuple[Attempt, ...]:
        return (Attempt("files.example.org:443", allowed=False, unlisted=True, phase=phase),) if self.asks else ()

    async def publish(self, key: str, order: records.PublishOrder) -> records.Published:
        self._called(f"publish {'first' if order.pull_number is None else 'more'}")
        self.shown.append(order.verified.egress)
        made = published() if order.pull_number is None else published(OTHER, OTHER_TREE)
        return replace(made, moved=self.overtaken and order.pull_number is not None)

    async def examine(self, key: str, order: records.ExamineOrder) -> records.Examined:
        self._called("examine")
        self.asked.append(order)
        message = order.envelope.message
        found = self._examined.pop(0) if len(self._examined) > 1 else self._examined[0]
        return replace(found, request=message.body if isinstance(message, ReviewMessage) else "")

    async def adopt(self, key: str, order: records.AdoptOrder) -> records.Adopted:
        self._called("adopt")
        return records.Adopted(published(order.head, OTHER_TREE), self.adopts)

    async def land(self, key: str, order: records.LandOrder) -> records.Landed:
        self._called(f"land {order.mode.value}")
        return self._landed.pop(0)

    async def tell(self, stage: Stage, progress: Progress) -> None:
        self.stages.append(stage)
        self.notes.append(progress.note)
        self.shown.append(progress.egress)

    async def report_gate(self, key: str, state: records.ReviewState, examined: records.Examined, note: str) -> None:
        self._called("gate")

    async def receive(self) -> records.Envelope | None:
        if not self._inbox:
            return None
        return records.Envelope(self._inbox.pop(0), DeliveryId("d"), "now")


def review(state: ReviewState = ReviewState.APPROVED, commit: CommitId = HEAD, body: str = "") -> ReviewMessage:
    return ReviewMessage(REVIEWER, ReviewId(1), state, commit, body)


def said(verb: Verb, argument: str = "") -> CommandMessage:
    return CommandMessage(REVIEWER, Command(verb, argument), CommentId(3))


def landed(*, merged: bool = False, alarm: bool = False, decision: Decision = PASSED) -> records.Landed:
    commit = CommitId("e" * 40) if merged else None
    return records.Landed(decision, ready=decision.allowed, merged=commit, merged_tree=None, note="note", alarm=alarm)


async def ending_of(script: Script) -> Ending:
    return await task.run(script)


async def test_the_stages_run_in_order_and_an_unreviewed_draft_ends_after_a_month():
    script = Script()
    ending = await ending_of(script)
    assert script.calls == ["prepare", "plan", "code a", "code b", "verify 1", "publish first"]
    assert ending.stage is Stage.CANCELLED


async def test_a_segment_that_ends_the_task_ends_it_there():
    script = Script(fail_in="code a")
    assert (await ending_of(script)).stage is Stage.OVER_BUDGET
    assert "publish first" not in script.calls


async def test_what_the_full_check_finds_is_repaired_at_most_twice_and_never_published():
    script = Script(verdicts=(verified(TREE, "t"),))
    ending = await ending_of(script)
    assert ending.stage is Stage.NEEDS_HUMAN
    assert [call for call in script.calls if call.startswith(("code repair", "verify", "publish"))] == [
        "verify 1",
        "code repair-1",
        "verify 1",
        "code repair-2",
        "verify 1",
    ]


async def test_an_approval_makes_the_draft_ready_and_a_merge_of_its_digest_lands():
    script = Script(
        inbox=(review(), said(Verb.MERGE, DIGEST[:12])),
        examined=(records.Examined(PASSED, approval(), given=True), records.Examined(PASSED, approval())),
        landed=(landed(), landed(merged=True)),
    )
    assert (await ending_of(script)).stage is Stage.LANDED
    assert [call for call in script.calls if call.startswith("land")] == ["land ready", "land merge"]
    assert Stage.READY in script.stages


async def test_a_repository_that_merges_on_approval_merges_at_once():
    script = Script(
        inbox=(review(),),
        examined=(records.Examined(PASSED, approval(), given=True),),
        landed=(landed(merged=True),),
        settings=RepositorySettings(landing=LandingMode.MERGE),
    )
    assert (await ending_of(script)).stage is Stage.LANDED
    assert "land merge" in script.calls


async def test_a_merge_of_another_digest_does_not_land():
    script = Script(
        inbox=(review(), said(Verb.MERGE, "0" * 12)),
        examined=(records.Examined(PASSED, approval(), given=True), records.Examined(PASSED, approval())),
        landed=(landed(),),
    )
    await ending_of(script)
    assert "land merge" not in script.calls


async def test_a_merge_without_an_approval_does_not_land():
    script = Script(inbox=(said(Verb.MERGE, DIGEST[:12]),), examined=(records.Examined(REFUSED),))
    await ending_of(script)
    assert not any(call.startswith("land") for call in script.calls)


async def test_a_push_by_somebody_else_voids_the_approval_and_is_verified():
    pushed = PullMessage(REVIEWER, PullActivity.PUSHED, OTHER, merged=False)
    script = Script(
        inbox=(review(), pushed, said(Verb.MERGE, DIGEST[:12])),
        examined=(
            records.Examined(PASSED, approval(), given=True),
            records.Examined(REFUSED, moved=OTHER),
            records.Examined(REFUSED),
        ),
        landed=(landed(),),
    )
    await ending_of(script)
    assert "adopt" in script.calls
    assert "land merge" not in script.calls


async def test_an_approval_of_a_push_we_had_not_heard_of_counts_after_it_is_verified():
    script = Script(
        inbox=(review(commit=OTHER),),
        examined=(records.Examined(REFUSED, moved=OTHER), records.Examined(PASSED, approval(), given=True)),
        landed=(landed(),),
    )
    await ending_of(script)
    assert script.calls[-3:] == ["examine", "gate", "land ready"]


async def test_our_own_push_is_no_news():
    echo = PullMessage(REVIEWER, PullActivity.PUSHED, HEAD, merged=False)
    script = Script(inbox=(echo,))
    await ending_of(script)
    assert "examine" not in script.calls


async def test_a_moved_base_is_tested_before_the_approval_counts():
    script = Script(
        inbox=(review(),),
        examined=(
            records.Examined(REFUSED, approval(), retest=OTHER_TREE, base=OTHER),
            records.Examined(PASSED, approval(), given=True),
        ),
        landed=(landed(),),
    )
    await ending_of(script)
    assert "verify 2" in script.calls
    assert "land ready" in script.calls


async def test_a_merge_result_that_fails_keeps_the_gate_closed():
    script = Script(
        inbox=(review(),),
        examined=(records.Examined(REFUSED, approval(), retest=OTHER_TREE, base=OTHER),),
        verdicts=(verified(TREE), verified(OTHER_TREE, "t")),
    )
    await ending_of(script)
    assert not any(call.startswith("land") for call in script.calls)
    assert script.asked[-1].state.failed_trees == (OTHER_TREE,), "the gate says what is known now"
    assert "`main` moved on" in script.notes[-1]
    assert "- broke_test: t" in script.notes[-1]


async def test_a_merge_result_that_failed_and_passes_later_opens_the_gate():
    script = Script(
        inbox=(review(), review()),
        examined=(
            records.Examined(REFUSED, approval(), retest=OTHER_TREE, base=OTHER),
            records.Examined(REFUSED, approval()),
            records.Examined(REFUSED, approval(), retest=OTHER_TREE, base=OTHER),
            records.Examined(PASSED, approval(), given=True),
        ),
        verdicts=(verified(TREE), verified(OTHER_TREE, "flaky"), verified(OTHER_TREE)),
        landed=(landed(),),
    )
    await ending_of(script)
    assert script.asked[-1].state.failed_trees == ()
    assert "land ready" in script.calls


async def test_a_pushed_head_is_looked_at_again_once_it_was_checked_and_what_fails_is_named():
    pushed = PullMessage(REVIEWER, PullActivity.PUSHED, OTHER, merged=False)
    script = Script(
        inbox=(pushed,),
        examined=(records.Examined(REFUSED, moved=OTHER), records.Examined(REFUSED)),
        adopts=verified(OTHER_TREE, "t"),
    )
    await ending_of(script)
    assert script.calls[-4:] == ["gate", "adopt", "examine", "gate"]
    assert script.asked[-1].state.failed_trees == (OTHER_TREE,)
    assert "does not pass the checks" in script.notes[-1]
    assert "- broke_test: t" in script.notes[-1]


async def test_what_was_merged_past_the_gate_is_not_called_approved():
    merged = PullMessage(REVIEWER, PullActivity.CLOSED, HEAD, merged=True)
    script = Script(inbox=(merged,), examined=(records.Examined(REFUSED, merged=True, open=False),))
    ending = await ending_of(script)
    assert ending.stage is Stage.LANDED
    assert "by robin before the gate opened" in ending.reason
    assert "approved" not in publishing_texts.HEADLINES[Stage.LANDED]


async def test_changes_requested_become_one_more_commit_and_a_new_digest():
    asks = review(ReviewState.CHANGES_REQUESTED, body="Rename it.")
    script = Script(inbox=(asks,), examined=(records.Examined(REFUSED),))
    await ending_of(script)
    assert script.calls[-5:] == ["code review-3", "verify 1", "publish more", "examine", "gate"]


async def test_a_request_that_is_delivered_twice_is_worked_in_once():
    asks = review(ReviewState.CHANGES_REQUESTED, body="Rename it.")
    script = Script(inbox=(asks, asks), examined=(records.Examined(REFUSED),))
    await ending_of(script)
    assert sum(call.startswith("code review") for call in script.calls) == 1


async def test_what_somebody_pushed_is_taken_in_before_a_review_is_worked_in():
    asks = review(ReviewState.CHANGES_REQUESTED, body="Rename it.")
    script = Script(inbox=(asks,), examined=(records.Examined(REFUSED, moved=OTHER),))
    await ending_of(script)
    assert script.calls.index("adopt") < script.calls.index("code review-3")


async def test_a_push_while_a_review_is_worked_in_is_left_alone_and_the_task_goes_on():
    asks = review(ReviewState.CHANGES_REQUESTED, body="Rename it.")
    script = Script(
        inbox=(asks, said(Verb.APPROVE, DIGEST[:12])),
        examined=(records.Examined(REFUSED), records.Examined(REFUSED, moved=OTHER)),
        overtaken=True,
    )
    assert (await ending_of(script)).stage is Stage.CANCELLED
    assert script.calls[-1] == "adopt"


async def test_rounds_of_review_are_bounded():
    asks = tuple(replace(review(ReviewState.CHANGES_REQUESTED, body="again"), review_id=ReviewId(n)) for n in range(9))
    script = Script(inbox=asks, examined=tuple(records.Examined(REFUSED) for _ in range(9)))
    assert (await ending_of(script)).stage is Stage.NEEDS_HUMAN
    assert sum(call.startswith("code review") for call in script.calls) == 5


GATED = RepositorySettings(plan_gate=True)
PLAN_HASH = plan_hash(Plan("Summary.", (step("a"), step("b"))))


async def test_with_the_plan_gate_nothing_is_coded_before_its_hash_is_typed():
    script = Script(
        settings=GATED, inbox=(said(Verb.APPROVE, DIGEST[:12]), review(ReviewState.APPROVED), said(Verb.STOP))
    )
    assert (await ending_of(script)).stage is Stage.CANCELLED
    assert script.calls == ["prepare", "plan"]
    assert script.stages[-1] is Stage.AWAITING_PLAN_APPROVAL


async def test_the_hash_of_the_plan_lets_the_coding_begin():
    script = Script(settings=GATED, inbox=(said(Verb.APPROVE, PLAN_HASH[:12]),))
    await ending_of(script)
    assert script.calls[2] == "code a"


async def test_nobody_who_approves_the_plan_ends_the_task():
    script = Script(settings=GATED)
    assert "plan" in (await ending_of(script)).reason
    assert script.calls == ["prepare", "plan"]


async def test_the_plan_is_shown_when_asked_for():
    script = Script(inbox=(said(Verb.PLAN),))
    await ending_of(script)
    assert "Summary." in script.notes[-1]


async def test_stop_close_and_a_closed_pull_request_end_the_task():
    assert (await ending_of(Script(inbox=(said(Verb.STOP),)))).stage is Stage.CANCELLED
    gone = Script(inbox=(ClosedMessage(REVIEWER),), examined=(records.Examined(REFUSED),))
    assert (await ending_of(gone)).stage is Stage.CANCELLED
    archived = Script(inbox=(ClosedMessage(REVIEWER, Closing.ARCHIVED),))
    assert "archived" in (await ending_of(archived)).reason
    closed = PullMessage(REVIEWER, PullActivity.CLOSED, HEAD, merged=False)
    script = Script(inbox=(closed,), examined=(records.Examined(REFUSED, open=False),))
    assert (await ending_of(script)).stage is Stage.CANCELLED


async def test_a_merge_by_hand_of_the_approved_change_is_checked():
    merged = PullMessage(REVIEWER, PullActivity.CLOSED, HEAD, merged=True)
    script = Script(
        inbox=(review(), merged),
        examined=(
            records.Examined(PASSED, approval(), given=True),
            records.Examined(REFUSED, approval(), merged=True, open=False),
        ),
        landed=(landed(), landed(merged=True, alarm=True)),
    )
    assert (await ending_of(script)).stage is Stage.NEEDS_HUMAN


async def test_an_issue_that_a_merge_closed_ends_by_what_became_of_the_merge():
    merged = records.Examined(REFUSED, approval(), merged=True, open=False)
    script = Script(
        inbox=(review(), ClosedMessage(REVIEWER)),
        examined=(records.Examined(PASSED, approval(), given=True), merged, merged),
        landed=(landed(), landed(merged=True)),
    )
    assert (await ending_of(script)).stage is Stage.LANDED


async def test_a_refusal_at_the_last_moment_voids_the_approval():
    script = Script(
        inbox=(review(), said(Verb.MERGE, DIGEST[:12])),
        examined=(records.Examined(PASSED, approval(), given=True), records.Examined(REFUSED)),
        landed=(landed(decision=REFUSED),),
    )
    await ending_of(script)
    assert script.calls.count("land ready") == 1
    assert "land merge" not in script.calls


async def test_what_any_part_asked_the_way_out_for_is_shown_from_then_on_and_with_the_pull_request():
    script = Script(asks=True, verdicts=(verified(TREE, "t"), verified(TREE)))
    await task.run(script)
    counted = [[(attempt.phase, attempt.times) for attempt in shown] for shown in script.shown]
    assert counted[:2] == [[], [("base", 1)]]
    assert counted[-1] == [("base", 1), ("work", 3), ("check", 2)]
    published = script.stages.index(Stage.PUBLISHING) + 1
    assert counted[published] == counted[-1]
