"""Gates broken on purpose. A model check that does not find each of them finds nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

from bot.domain.action import ReviewMessage
from bot.domain.decision import Decision
from bot.domain.ids import CommitId
from bot.domain.pull import Approval, Permission, PullRequest, Snapshot
from bot.domain.repository import LandingMode
from bot.emulators.github.records import Pull
from bot.providers.forge.port import Forge
from bot.stages.approving import gate
from bot.stages.approving.checks import Terms
from bot.workflow.records import Envelope
from tests.histories.history import History, Race
from tests.histories.stage import Mutant


def without(*rules: str) -> gate.Rule:
    """The gate, deaf to these reasons."""

    def decide(then: Approval | None, now: Snapshot, terms: Terms) -> Decision:
        decision = gate.decide(then, now, terms)
        return Decision(decision.subject, tuple(reason for reason in decision.reasons if reason.rule not in rules))

    return decide


class _Broken:
    """A forge with one method that does it wrong."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)


class _NoGuard(_Broken):
    async def merge(self, number: int, *, head: CommitId, title: str, message: str) -> CommitId:
        now = (await self._forge.pull(number)).head_sha
        return await self._forge.merge(number, head=now or head, title=title, message=message)


class _TrustsEverybody(_Broken):
    async def permission(self, _login: str) -> Permission:
        return Permission.WRITE


class _ReadsOnce(_Broken):
    _seen: PullRequest | None = None

    async def pull(self, number: int) -> PullRequest:
        self._seen = self._seen or await self._forge.pull(number)
        return self._seen


def _as(kind: type[_Broken]) -> Callable[[Forge], Forge]:
    return lambda forge: cast("Forge", kind(forge))


def _live_commit(envelope: Envelope, pull: Pull) -> Envelope:
    message = envelope.message
    if isinstance(message, ReviewMessage):
        envelope = replace(envelope, message=replace(message, commit_id=CommitId(pull.head_sha)))
    return envelope


def _live_base(envelope: Envelope, pull: Pull) -> Envelope:
    message = envelope.message
    if isinstance(message, ReviewMessage):
        envelope = replace(envelope, message=replace(message, base_ref=pull.base_ref))
    return envelope


async def _approved(history: History) -> str:
    """Robin approves the head, and the product hears of it."""
    await history.review("robin", "APPROVE", history.pull.head_sha)
    digest = history.oracle.current(history.pull)
    await history.deliver_all()
    return digest


async def _merged_after(history: History, digest: str) -> None:
    """Everything that happened since is lost; then somebody asks for the merge."""
    history.pending.clear()
    await history.say("rosa", "merge", digest)
    await history.deliver_all()


async def _push_before_the_merge(history: History) -> None:
    history.races.append(Race("merge", lambda: history.push("rosa", {"feature.py": "good = 7\n"})))
    await _approved(history)


async def _retarget_unheard(history: History) -> None:
    digest = await _approved(history)
    await history.retarget("rosa", "decoy")
    await _merged_after(history, digest)


async def _review_of_an_older_head(history: History) -> None:
    old = history.pull.head_sha
    await history.push("rosa", {"feature.py": "good = 7\n"})
    await history.deliver_all()
    await history.review("robin", "APPROVE", old)
    await history.deliver_all()


async def _retarget_before_the_review_is_heard(history: History) -> None:
    await history.review("robin", "APPROVE", history.pull.head_sha)
    heard = history.pending
    history.pending = []
    await history.retarget("rosa", "decoy")
    history.pending = heard
    await history.deliver_all()


async def base_rewound_before_it_is_heard(history: History) -> None:
    await history.move_base("carl", {"stock.py": "stock = 5\n"})
    await history.update_branch("carl")
    await history.deliver_all()
    await history.review("robin", "APPROVE", history.pull.head_sha)
    git = history.stage.git
    await history.move("carl", "main", git.parents(git.refs["refs/heads/main"])[0], force=True)
    await history.deliver_all()


async def _reader_approves(history: History) -> None:
    await history.review("rudi", "APPROVE", history.pull.head_sha)
    await history.deliver_all()


async def _demoted(history: History) -> None:
    digest = await _approved(history)
    await history.grade("robin", "none")
    await _merged_after(history, digest)


async def _dismissed(history: History) -> None:
    digest = await _approved(history)
    await history.dismiss("carl", "robin")
    await _merged_after(history, digest)


async def _objected(history: History) -> None:
    digest = await _approved(history)
    await history.review("carl", "REQUEST_CHANGES")
    await _merged_after(history, digest)


async def _failing_head(history: History) -> None:
    await history.push("rosa", {"feature.py": "bad = 1\n"})
    await history.deliver_all()
    await _approved(history)


async def _retarget_before_ready(history: History) -> None:
    history.races.append(Race("mark_ready", lambda: history.retarget("rosa", "decoy")))
    await _approved(history)


async def _retarget_before_the_merge(history: History) -> None:
    history.races.append(Race("merge", lambda: history.retarget("rosa", "decoy")))
    await _approved(history)


Script = Callable[[History], Awaitable[None]]
READY, MERGE = LandingMode.READY, LandingMode.MERGE

MUTANTS: tuple[tuple[Mutant, LandingMode, Script], ...] = (
    (Mutant("merges whatever the head is by then", forge=_as(_NoGuard)), MERGE, _push_before_the_merge),
    (
        Mutant("ignores base branch and digest", rule=without("base_branch", "merge_base", "digest", "policy")),
        READY,
        _retarget_unheard,
    ),
    (Mutant("takes a review of any commit", envelope=_live_commit), MERGE, _review_of_an_older_head),
    (
        Mutant("takes a review for any base", envelope=_live_base, blind=True),
        MERGE,
        _retarget_before_the_review_is_heard,
    ),
    (Mutant("takes a review for a change that was not shown", blind=True), MERGE, base_rewound_before_it_is_heard),
    (Mutant("trusts everybody", forge=_as(_TrustsEverybody)), MERGE, _reader_approves),
    (Mutant("does not ask again who may approve", rule=without("reviewer", "policy")), READY, _demoted),
    (Mutant("does not look whether it still stands", rule=without("approval", "policy")), READY, _dismissed),
    (Mutant("does not hear objections", rule=without("no_objection")), READY, _objected),
    (Mutant("does not test what would land", rule=without("verified")), MERGE, _failing_head),
    (Mutant("reads the pull request once", forge=_as(_ReadsOnce)), MERGE, _retarget_before_ready),
    (
        Mutant("does not compare what landed", landed=lambda landed: replace(landed, alarm=False)),
        MERGE,
        _retarget_before_the_merge,
    ),
)
"""Each with a history that finds it; the product as it is has to pass the same one."""
