"""Where the operator asks for code owners or for several approvals: the product's own review loop against the stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bot.domain.repository import LandingMode
from bot.policy.engine import Policies
from tests.histories.history import History, Playing, playing
from tests.histories.stage import Mutant, shipped, staged

OWNERS = "* @nobody-at-all\n/feature.py @robin\n/stock.py @carl\n"


def asking(**settings: Any) -> Policies:
    """The shipped rules with these limits changed."""
    return replace(shipped(), limits=replace(shipped().limits, **settings))


def owned(root: Path, policies: Policies, files: Mapping[str, str] = MappingProxyType({})) -> Playing:
    return playing(root, LandingMode.MERGE, policies=policies, files=files)


async def approve(history: History, who: str) -> None:
    await history.review(who, "APPROVE", history.pull.head_sha)
    await history.deliver_all()
    history.check()


def said(history: History) -> str:
    return "\n".join(comment.body for comment in history.issue.comments)


async def test_a04_nobody_but_an_owner_of_each_path_lands_it(tmp_path: Path):
    async with owned(tmp_path, asking(code_owners=True), {"CODEOWNERS": OWNERS}) as history:
        await history.push("rosa", {"stock.py": "stock = 9\n"})
        await history.deliver_all()
        await approve(history, "rosa")
        assert not history.pull.merged
        assert "`@robin` for `feature.py`" in said(history)
        assert "`@carl` for `stock.py`" in said(history)
        await approve(history, "carl")
        assert not history.pull.merged
        assert "`@carl` for" not in said(history)
        await approve(history, "robin")
        assert history.pull.merged


async def test_a04_the_owners_are_read_from_the_base_and_not_from_the_change(tmp_path: Path):
    files = {".github/CODEOWNERS": "* @carl\n", "CODEOWNERS": "* @rosa\n"}
    async with owned(tmp_path, asking(code_owners=True), files) as history:
        await history.push("rosa", {".github/CODEOWNERS": "* @rosa\n"})
        await history.deliver_all()
        digest = history.oracle.current(history.pull)
        await history.say("rosa", "approve", f"{digest} allow:codeowners")
        await history.deliver_all()
        assert not history.pull.merged
        assert "`@carl` for `.github/CODEOWNERS`" in said(history)
        await history.say("carl", "approve", f"{digest} allow:codeowners")
        await history.deliver_all()
        assert history.pull.merged


async def test_an_owner_who_took_the_approval_back_is_missing_again(tmp_path: Path):
    async with owned(tmp_path, asking(code_owners=True, approvals=2), {"CODEOWNERS": OWNERS}) as history:
        await approve(history, "robin")
        assert not history.pull.merged
        await history.dismiss("carl", "robin")
        await history.deliver_all()
        await approve(history, "rosa")
        await approve(history, "carl")
        assert not history.pull.merged
        await approve(history, "robin")
        assert history.pull.merged


async def test_one_approval_is_not_two_and_a_push_voids_them_all(tmp_path: Path):
    async with owned(tmp_path, asking(approvals=2)) as history:
        await approve(history, "robin")
        await approve(history, "robin")
        assert "1 of 2 people have approved" in said(history)
        await history.push("rosa", {"feature.py": "feature = 7\n"})
        await history.deliver_all()
        await approve(history, "carl")
        assert not history.pull.merged
        await approve(history, "robin")
        assert history.pull.merged


async def test_a_merge_past_the_second_approval_does_not_pass_for_approved(tmp_path: Path):
    async with owned(tmp_path, asking(approvals=2)) as history:
        await approve(history, "robin")
        await history.flip("rosa", draft=False)
        await history.merge("carl")
        history.pending.sort(key=lambda one: one.action != "closed")
        await history.deliver_all()
        assert history.ending is not None
        assert "merged on GitHub by carl before the gate opened" in history.ending.reason


async def test_who_merged_is_named_only_by_what_tells_of_the_merge(tmp_path: Path):
    async with owned(tmp_path, asking(approvals=2)) as history:
        await history.flip("rosa", draft=False)
        await history.merge("carl")
        await history.deliver_all()
        assert history.ending is not None
        assert "merged on GitHub before the gate opened" in history.ending.reason


@pytest.mark.parametrize(
    ("owners", "words"),
    [
        ("* @corner-shop/pay\n", "members: read"),
        ("* carl@example.org\n", "Whose address"),
        ("* @carl\n!stock.py @rosa\n", "line 2: a pattern cannot be negated"),
        ("* @carl, @rosa\n", "line 1: an owner is"),
    ],
)
async def test_what_cannot_be_told_keeps_the_gate_closed_and_says_why(owners: str, words: str, tmp_path: Path):
    async with owned(tmp_path, asking(code_owners=True), {"docs/CODEOWNERS": owners}) as history:
        for who in ("carl", "rosa"):
            await approve(history, who)
        assert not history.pull.merged
        assert words in said(history)


async def test_a_team_is_asked_for_its_members_where_the_app_may_read_them(tmp_path: Path):
    files = {"CODEOWNERS": "* @corner-shop/pay @elsewhere/all\n"}
    async with owned(tmp_path, asking(code_owners=True), files) as history:
        history.stage.installation.permissions["members"] = "read"
        history.stage.teams["corner-shop/pay"] = ("carl",)
        await approve(history, "rosa")
        assert not history.pull.merged
        await approve(history, "carl")
        assert history.pull.merged


async def test_shipped_off_and_without_owners_nothing_is_asked_for(tmp_path: Path):
    async with owned(tmp_path / "off", shipped(), {"CODEOWNERS": "* @carl\n"}) as history:
        await approve(history, "rosa")
        assert history.pull.merged
    async with owned(tmp_path / "unowned", asking(code_owners=True), {"CODEOWNERS": "/stock.py @carl\n"}) as history:
        await approve(history, "rosa")
        assert history.pull.merged


async def test_a_repository_may_ask_for_its_owners_although_the_operator_does_not(tmp_path: Path):
    rules = (
        '@id("owners") @reason("Our owners approve.")\n'
        'forbid (principal, action == Pullwright::Action::"LandChange", resource)\n'
        "unless { context.missing_owners.isEmpty() };\n"
    )
    files = {"CODEOWNERS": "* @carl\n", ".github/pullwright.cedar": rules}
    async with owned(tmp_path, shipped(), files) as history:
        await approve(history, "rosa")
        assert not history.pull.merged
        assert "Our owners approve." in said(history)
        await approve(history, "carl")
        assert history.pull.merged


async def test_a_readers_review_takes_nothing_away_from_an_approval_that_stands(tmp_path: Path):
    async with staged(tmp_path, Mutant(), shipped()) as stage:
        history = History(stage, LandingMode.READY)
        await history.begin()
        await history.deliver_all()
        await approve(history, "robin")
        await approve(history, "rudi")
        assert "@rudi has no write permission" in said(history)
        assert not history.pull.draft
        await history.say("rosa", "merge", history.oracle.current(history.pull))
        await history.deliver_all()
        assert history.pull.merged
        await history.close()
