"""A10 and A11: what GitHub enforces, and what Apps may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.audit.findings import Finding, Severity
from bot.audit.operator import Operator
from bot.audit.protection import check_apps, check_rules, combined
from bot.providers.organisation.port import Bypass, Guard, Installation, Read, RequiredCheck
from bot.providers.organisation.readings import guard_of_protection, guard_of_rules
from tests.unit.audit.builders import APP, GUARD, HOME, facts, snapshot

H, M, L, U = Severity.HIGH, Severity.MEDIUM, Severity.LOW, Severity.UNKNOWN


def rules(**changes: Any) -> list[Finding]:
    return list(check_rules(snapshot(facts(**changes))))


def test_a_guarded_branch_is_silent():
    assert rules() == []


@pytest.mark.parametrize(
    ("lacking", "severity"),
    [
        ({"pull_request": False}, H),
        ({"approvals": 0}, H),
        ({"dismiss_stale": False}, M),
        ({"last_push": False}, M),
        ({"code_owners": False}, L),
        ({"checks": ()}, H),
        ({"checks": (RequiredCheck("pullwright/gate", None),)}, M),
        ({"checks": (RequiredCheck("pullwright/gate", 5),)}, H),
        ({"checks": (RequiredCheck("ci", 411),)}, H),
    ],
)
def test_each_rule_that_is_lacking_is_one_finding(lacking: dict[str, Any], severity: Severity):
    (one,) = rules(rules=Read(replace(GUARD, **lacking)))
    assert (one.check, one.severity, one.target) == ("A10", severity, "octo-org/hello:main")


def test_one_check_among_several_is_enough():
    checks = (RequiredCheck("pullwright/gate", None), RequiredCheck("pullwright/gate", 411))
    assert rules(rules=Read(replace(GUARD, checks=checks))) == []


def test_classic_protection_and_rulesets_hold_together():
    classic = replace(GUARD, rulesets=())
    assert rules(rules=Read(Guard()), protection=Read(classic), bypass=()) == []
    assert combined(Guard(approvals=2), Guard(approvals=1, last_push=True)) == Guard(approvals=2, last_push=True)
    assert combined(GUARD, None) == GUARD


def test_what_rulesets_give_needs_no_classic_protection_to_be_read():
    assert rules(protection=Read(None, "403 no")) == []
    (one,) = rules(rules=Read(replace(GUARD, last_push=False, checks=())), protection=Read(None, "403 no"))
    assert one.severity is U
    assert "whoever pushed last may approve, pullwright/gate is no required check" in one.evidence


@pytest.mark.parametrize(
    "missing", [{"rules": Read(None, "x")}, {"bot_rules": Read(None)}, {"bypass": ((5, Read((), "x")),)}]
)
def test_what_was_not_read_is_unknown(missing: dict[str, Any]):
    assert [one.severity for one in rules(**missing)] == [U]


@pytest.mark.parametrize(
    ("actor", "found"),
    [
        (Bypass("Integration", "411"), [H]),
        (Bypass("Integration", "9"), []),
        (Bypass("Team", "411"), []),
        (Bypass("OrganizationAdmin", ""), []),
    ],
)
def test_only_our_app_has_no_business_in_the_bypass_list(actor: Bypass, found: list[Severity]):
    assert [one.severity for one in rules(bypass=((5, Read((actor,))),))] == found
    classic = replace(GUARD, bypass=(replace(actor, actor="pullwright" if found else "x"),))
    assert [one.severity for one in rules(protection=Read(classic))] == found


def test_an_app_in_the_bypass_list_is_unknown_while_ours_is():
    somebody = facts(bypass=((5, Read((Bypass("Integration", "411"),))),))
    (one,) = check_rules(snapshot(somebody, installations=Read((), "403 no")))
    assert one.severity is U
    assert list(check_rules(snapshot(somebody, installations=Read(())))) == []


@pytest.mark.parametrize("bots", [Guard(), Guard(creation=True), Guard(update=True)])
def test_branches_of_the_bot_are_the_apps_alone(bots: Guard):
    (one,) = rules(bot_rules=Read(bots))
    assert (one.severity, one.target) == (M, "octo-org/hello:agent/**")


def test_an_archived_repository_needs_no_rules():
    assert rules(repository=replace(HOME, archived=True), rules=Read(Guard())) == []


def apps(*installed: Installation, allowed: tuple[str, ...] = (), fault: str = "") -> list[tuple[Severity, str]]:
    seen = snapshot(
        operator=Operator(allowed_apps=allowed),
        installations=Read(installed, fault),
        manifest=({"contents": "write", "metadata": "read"}, ("push",)),
    )
    return [(one.severity, one.evidence) for one in check_apps(seen)]


def test_an_app_as_its_manifest_is_silent():
    other = Installation(8, 9, "Known", (), ())
    assert apps(APP, other, allowed=("known",)) == []
    assert apps(replace(APP, permissions=(("contents", "read"),))) == []


def test_wider_permissions_events_and_strangers_are_found():
    assert apps(replace(APP, permissions=(("workflows", "write"),)))[0][0] is H
    assert apps(replace(APP, permissions=(("metadata", "write"),)))[0][0] is H
    assert apps(replace(APP, events=("push", "release"))) == [(L, "is sent release; app.yml does not ask for it")]
    assert apps(Installation(8, 9, "stranger", (("contents", "write"),), ())) == [
        (M, "is installed and on no list; it has contents:write")
    ]
    assert apps(fault="403 no")[0][0] is U


def test_rules_of_a_branch_are_the_strictest_of_all():
    one = {"type": "pull_request", "ruleset_id": 1, "parameters": {"required_approving_review_count": 1}}
    two = {
        "type": "pull_request",
        "ruleset_id": 2,
        "parameters": {"required_approving_review_count": 2, "require_last_push_approval": True},
    }
    checks = {"type": "required_status_checks", "parameters": {"required_status_checks": [{"context": "x"}]}}
    assert guard_of_rules([one, two, checks, {"type": "creation", "ruleset_id": 1}]) == Guard(
        pull_request=True,
        approvals=2,
        last_push=True,
        checks=(RequiredCheck("x", None),),
        creation=True,
        rulesets=(1, 2),
    )
    assert guard_of_rules([]) == Guard()


def test_classic_protection_is_read_as_github_writes_it():
    told = {
        "required_pull_request_reviews": {
            "required_approving_review_count": 1,
            "dismiss_stale_reviews": True,
            "require_code_owner_reviews": True,
            "require_last_push_approval": True,
            "bypass_pull_request_allowances": {
                "apps": [{"slug": "pullwright"}],
                "users": [{"login": "ada"}],
                "teams": [],
            },
        },
        "required_status_checks": {"contexts": ["a", "b"], "checks": [{"context": "b", "app_id": 4}]},
        "restrictions": {"users": []},
        "block_creations": {"enabled": True},
    }
    assert guard_of_protection(told) == Guard(
        pull_request=True,
        approvals=1,
        dismiss_stale=True,
        last_push=True,
        code_owners=True,
        checks=(RequiredCheck("a", None), RequiredCheck("b", 4)),
        creation=True,
        update=True,
        bypass=(Bypass("Integration", "pullwright"), Bypass("User", "ada")),
    )
    assert guard_of_protection({}) == Guard()
