import pytest

from bot.domain.change import Change, ChangedPath, FileMode, TreeEntry
from bot.domain.decision import Decision, Outcome, Reason
from bot.domain.errors import Transient, UserError
from bot.domain.ids import BlobId, CommitId, TreeId, is_full_object_id, short
from bot.domain.money import ZERO, MicroUsd, dollars, from_dollars, show
from bot.domain.plan import Plan, PlannedFile, Step
from bot.domain.pull import Permission
from bot.domain.spending import Usage
from bot.domain.task import ENDINGS, Stage
from bot.domain.verdict import Failure, FailureKind, TestReport, Verdict, VerifiedChange

BASE, TREE = TreeId("0" * 40), TreeId("1" * 40)
RUN = TestReport("pytest", 0, 1.0, ())


def reason(outcome: Outcome) -> Reason:
    return Reason("rule", outcome, "text")


def test_only_whole_object_ids_are_ids():
    assert is_full_object_id("a" * 40)
    assert is_full_object_id("a" * 64)
    assert not is_full_object_id("a" * 39)
    assert not is_full_object_id("A" * 40)
    assert not is_full_object_id("main")
    assert short("0123456789abcdef") == "0123456789ab"


def test_money_is_exact_and_reads_like_money():
    assert from_dollars("0.50") == 500_000
    assert dollars(MicroUsd(123_456)) == 0.123456
    assert show(MicroUsd(73_700)) == "$0.0737"
    assert show(MicroUsd(1_500_000)) == "$1.50"
    assert show(ZERO) == "$0.0000"


def test_a_decision_without_reasons_allows_nothing():
    assert not Decision("x", ()).allowed


@pytest.mark.parametrize(
    ("outcomes", "wanted"),
    [
        ((Outcome.PASSED,), Outcome.PASSED),
        ((Outcome.PASSED, Outcome.WAITING), Outcome.WAITING),
        ((Outcome.WAITING, Outcome.REFUSED, Outcome.PASSED), Outcome.REFUSED),
    ],
)
def test_the_worst_reason_decides(outcomes: tuple[Outcome, ...], wanted: Outcome):
    decision = Decision("x", tuple(reason(outcome) for outcome in outcomes))
    assert decision.outcome is wanted
    assert decision.allowed is (wanted is Outcome.PASSED)
    assert all(one.outcome is not Outcome.PASSED for one in decision.against())


def change(tree: TreeId = TREE) -> Change:
    return Change(CommitId("b" * 40), BASE, tree, ())


def test_a_verified_change_cannot_be_made_of_a_verdict_that_does_not_prove_it():
    failed = Failure(FailureKind.BROKE_TEST, "t", "", "s")
    assert VerifiedChange(change(), Verdict(TREE, RUN, RUN, (), ())).change == change()
    with pytest.raises(ValueError, match="passing verdict"):
        VerifiedChange(change(), Verdict(TREE, RUN, RUN, (), (failed,)))
    with pytest.raises(ValueError, match="passing verdict"):
        VerifiedChange(change(), Verdict(BASE, RUN, RUN, (), ()))
    with pytest.raises(ValueError, match="passing verdict"):
        VerifiedChange(change(BASE), Verdict(BASE, RUN, RUN, (), ()))


def test_a_changed_path_says_what_happened_to_it():
    entry = TreeEntry("a", FileMode.REGULAR, BlobId("c" * 40))
    assert ChangedPath("a", None, entry).kind == "added"
    assert ChangedPath("a", entry, None).kind == "deleted"
    assert ChangedPath("a", entry, entry).kind == "modified"


def test_a_plan_names_each_file_once():
    files = (PlannedFile("b"), PlannedFile("a"))
    steps = tuple(Step(name, name, "g", files, (), ()) for name in ("x", "y"))  # type: ignore[arg-type]
    assert Plan("s", steps).files() == ("a", "b")


def test_permissions_that_write():
    assert [permission for permission in Permission if permission.can_write] == [Permission.ADMIN, Permission.WRITE]


def test_a_ready_pull_request_is_not_the_end_of_its_task():
    assert not Stage.READY.ended
    assert Stage.LANDED.ended
    assert all(stage.ended for stage in ENDINGS)


def test_errors_carry_what_the_reader_can_do():
    assert str(UserError("It is wrong.", "Do this.")) == "It is wrong. Do this."
    assert Transient("later", 3.0).retry_after == 3.0


def test_a_prompt_is_all_its_parts():
    assert Usage(1, 2, 3, 4, 5, 1).prompt == 10
