"""Landing compares what landed, and where, with what was approved; every difference is an alarm."""

from dataclasses import replace

import pytest

from bot.domain.ids import CommitId, TreeId
from bot.domain.pull import Approval, Snapshot
from bot.domain.repository import LandingMode
from bot.providers.forge.port import CommitRecord
from bot.stages.approving.gate import Terms, decide
from bot.stages.landing.run import Landing, LandingWork, land
from tests.unit.stages.approving.builders import BASE, HEAD, HEAD_TREE, approval, snapshot, with_pull

LANDED, MOVED = CommitId("5" * 40), CommitId("6" * 40)
OTHER_TREE = TreeId("7" * 40)


class Hub:
    """A forge and a mirror of a few answers: what the merge makes, and where the pull request points afterwards."""

    def __init__(
        self, tree: TreeId = HEAD_TREE, base_ref: str = "main", parents: tuple[CommitId, ...] = (BASE,)
    ) -> None:
        self.tree, self.base_ref = tree, base_ref
        self.record = CommitRecord(LANDED, tree, parents, "A change (#7)\n")
        self.predicted = HEAD_TREE
        self.fork = BASE

    async def mark_ready(self, _pull: str) -> None: ...

    async def merge(self, _number: int, *, head: CommitId, title: str, message: str) -> CommitId:
        assert head == HEAD
        return LANDED

    async def pull(self, _number: int) -> object:
        return replace(snapshot().pull, base_ref=self.base_ref)

    async def branch_head(self, _branch: str) -> CommitId:
        return LANDED

    async def commit(self, _commit: CommitId) -> CommitRecord:
        return self.record

    async def fetch(self, _upstream: object, *, commits: tuple[CommitId, ...]) -> None: ...

    async def tree_of(self, _commit: CommitId) -> TreeId:
        return self.tree

    async def merge_base(self, _base: CommitId, _head: CommitId) -> CommitId:
        return self.fork

    async def raw_diff(self, _old: TreeId, _new: TreeId) -> bytes:
        return b"another change"

    async def merge_tree(self, _base: CommitId, _head: CommitId) -> TreeId:
        return self.predicted


async def landed(hub: Hub, now: Snapshot | None = None, then: Approval | None = None) -> Landing:
    async def look() -> Snapshot:
        return now or snapshot()

    given = then or approval()
    outside: dict[str, object] = {"forge": hub, "mirror": hub, "upstream": hub}
    work = LandingWork(given, LandingMode.MERGE, "A change")
    return await land(work, look=look, decide=lambda seen: decide(given, seen, Terms()), **outside)  # type: ignore[arg-type]


async def test_the_approved_and_tested_tree_on_the_approved_branch_is_no_alarm():
    assert not (await landed(Hub())).alarm


async def test_a_merge_into_another_branch_is_an_alarm_that_names_both():
    outcome = await landed(Hub(base_ref="decoy"))
    assert outcome.alarm
    assert "`decoy`" in outcome.note
    assert "`main`" in outcome.note


async def test_a_tree_that_git_does_not_predict_is_an_alarm():
    hub = Hub(tree=OTHER_TREE)
    assert (await landed(hub)).alarm


async def test_a_predicted_tree_that_was_not_tested_is_an_alarm():
    hub = Hub(tree=OTHER_TREE)
    hub.predicted = OTHER_TREE
    outcome = await landed(hub)
    assert outcome.alarm
    assert "not run" in outcome.note


async def test_a_base_rewritten_below_the_change_is_an_alarm():
    hub = Hub()
    hub.fork = MOVED
    outcome = await landed(hub)
    assert outcome.alarm
    assert "rewritten at the last moment" in outcome.note


@pytest.mark.parametrize("parents", [(), (MOVED,)])
async def test_a_merge_by_somebody_that_cannot_be_found_is_an_alarm_and_no_crash(parents: tuple[CommitId, ...]):
    hub = Hub(parents=parents)
    hub.record = replace(hub.record, message="Something else\n", tree=OTHER_TREE)
    assert (await landed(hub, with_pull(open=False, merged=True))).alarm
