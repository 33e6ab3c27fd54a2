"""Gates broken on purpose. A model check that does not find each of them finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from bot.domain.action import ReviewMessage
from bot.domain.decision import Decision
from bot.domain.ids import CommitId
from bot.domain.pull import Approval, Permission, PullRequest, Snapshot
from bot.emulators.github.records import Pull
from bot.providers.forge.port import Forge
from bot.stages.approving import gate
from bot.stages.approving.checks import Terms
from bot.workflow.records import Envelope
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


MUTANTS = (
    (Mutant("merges whatever the head is by then", forge=_as(_NoGuard)), 0),
    (Mutant("ignores the base branch and the digest", rule=without("base_branch", "merge_base", "digest")), 0),
    (Mutant("takes a review of any commit for one of the head", envelope=_live_commit), 0),
    (Mutant("takes a review of any base for one of the present base", envelope=_live_base), 0),
    (Mutant("trusts everybody", forge=_as(_TrustsEverybody)), 0),
    (Mutant("does not ask again who may approve", rule=without("reviewer")), 0),
    (Mutant("does not look whether the approval still stands", rule=without("approval")), 0),
    (Mutant("does not hear objections", rule=without("no_objection")), 0),
    (Mutant("does not test what would land", rule=without("verified")), 0),
    (Mutant("reads the pull request once", forge=_as(_ReadsOnce)), 0),
    (Mutant("does not compare what landed", landed=lambda landed: replace(landed, alarm=False)), 0),
)
"""Each with the first seed whose history is known to find it."""
