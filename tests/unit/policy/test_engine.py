from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.decision import Outcome
from bot.domain.event import Actor
from bot.domain.ids import RepositoryId, TaskId, UserId
from bot.domain.pull import Permission
from bot.policy.cases import differs, read_case
from bot.policy.engine import Policies, check
from bot.policy.facts import ChangeFacts, MayApprove, MayPublish, MayStart, Person, touched
from bot.policy.sources import Source, split
from bot.settings import load_policies

ROOT = Path(__file__).parents[3] / "policies"
CASES = sorted((ROOT / "cases").glob("*.toml"))
ADA = Person(Actor(UserId(1), "ada", is_bot=False), Permission.WRITE)
BOT = Actor(UserId(9), "pullwright[bot]", is_bot=True)
START = MayStart(ADA, RepositoryId(42))
CHANGE = ChangeFacts(RepositoryId(42), BOT, ADA.actor, "agent/1", "main", ("a",), verified=True)


@pytest.fixture(scope="module")
def policies() -> Policies:
    return load_policies(ROOT)


def made(text: str, *, schema: str | None = None, limits: str = "") -> Policies:
    schema = (ROOT / "schema.cedarschema").read_text() if schema is None else schema
    return check([Source("x.cedar", text)], schema, limits)


def test_the_shipped_policies_hold(policies: Policies) -> None:
    assert policies.faults == ()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, policies: Policies) -> None:
    assert differs(read_case(path.read_text("utf-8")), policies) is None


def test_every_rule_is_reached_by_a_case(policies: Policies) -> None:
    reached = {rule for path in CASES for rule in read_case(path.read_text("utf-8")).because}
    assert {statement.name for statement in policies.statements} <= reached


def test_a_case_that_is_answered_otherwise_says_how(policies: Policies) -> None:
    case = read_case('about = "x"\nasks = "start"\nexpect = "denied"\n')
    assert differs(case, policies) == "allowed because start"
    for form, text in (
        ("yml", "about: x\nasks: start\nexpect: denied\n"),
        ("json", '{"asks": "start", "expect": "denied"}'),
    ):
        assert differs(read_case(text, form=form), policies) == "allowed because start"
    for form, text in (("yml", "a: [1"), ("json", "{"), ("toml", "="), ("xml", "<a/>"), ("json", "[]")):
        with pytest.raises(ValueError, match=r"no YML|no JSON|no TOML|not xml|Input should be"):
            read_case(text, form=form)
    with pytest.raises(ValueError, match=r"asks: Input should be"):
        read_case('about = "x"\nasks = "dance"\nexpect = "denied"\n')


@pytest.mark.parametrize("number", range(23))
def test_without_any_one_rule_some_case_is_answered_otherwise(policies: Policies, number: int) -> None:
    kept = [part for index, (_, part) in enumerate(split(policies.sources[0].text)) if index != number]
    weaker = check([Source("pullwright.cedar", "\n".join(kept))], policies.schema, policies.limits_text)
    assert weaker.faults == ()
    assert any(differs(read_case(path.read_text("utf-8")), weaker) for path in CASES)


def test_nothing_permitted_is_denied_by_default() -> None:
    rules = made('@id("a") @reason("b") forbid (principal, action == Pullwright::Action::"LandChange", resource);')
    decision = rules.decide(START)
    assert [reason.rule for reason in decision.reasons] == ["default-deny"]
    assert decision.outcome is Outcome.REFUSED


PERMIT = '@id("all") @reason("Everything.") permit (principal, action, resource);\n'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (PERMIT + "\n// note; with (odd words\nforbid (principal, action, resource", 4, "unexpected end"),
        (PERMIT + '@id("x") @reason("y")\nforbid (principal, action, resource)\nwhen { principal.nope };', 2, "nope"),
        (PERMIT + 'forbid (principal, action, resource) when { context.x == ";" };', 2, "@id"),
        (PERMIT + PERMIT, 2, "twice"),
        ('@id("x") permit (principal, action, resource);', 1, "@reason"),
        ('@id("t") @reason("t") permit (principal == ?principal, action, resource);', 1, "template"),
        ("\n\nhello;", 3, "unexpected"),
        ('@id("a") @reason("b") permit (principal, action == Pullwright::Action::"Dance", resource);', 1, "Dance"),
    ],
)
def test_an_invalid_policy_denies_everything_and_names_the_line(text: str, line: int, words: str) -> None:
    rules = made(text)
    assert rules.faults
    assert rules.faults[0].line == line or words == "@id"
    assert any(words in str(fault) for fault in rules.faults)
    decision = rules.decide(START)
    assert not decision.allowed
    assert f"x.cedar:{rules.faults[0].line}: " in decision.reasons[0].text


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (made(""), "no rule at all"),
        (made("// only a note\n"), "no rule at all"),
        (made(PERMIT, schema="entity {"), "schema"),
        (made(PERMIT, limits="changed_files = 0"), "limits.toml"),
        (made(PERMIT, limits="unknown = 1"), "unknown"),
        (check([], "", ""), "no rule at all"),
    ],
)
def test_anything_missing_or_unknown_denies(rules: Policies, words: str) -> None:
    decision = rules.decide(START)
    assert not decision.allowed
    assert words in " ".join(reason.text for reason in decision.reasons)


def test_a_directory_that_is_not_there_or_lacks_a_file_denies(tmp_path: Path) -> None:
    assert not load_policies(tmp_path / "none").decide(START).allowed
    (tmp_path / "a.cedar").write_text(PERMIT)
    assert not load_policies(tmp_path).decide(START).allowed
    (tmp_path / "schema.cedarschema").write_text((ROOT / "schema.cedarschema").read_text())
    (tmp_path / "limits.toml").write_text("")
    assert load_policies(tmp_path).decide(START).allowed
    (tmp_path / "b.cedar").write_bytes(b"\xff")
    assert not load_policies(tmp_path).decide(START).allowed


def test_rules_of_several_files_are_told_apart(tmp_path: Path) -> None:
    forbid = '@id("freeze") @reason("Frozen.") forbid (principal, action, resource);'
    rules = check(
        [Source("b.cedar", "// first\n" + forbid), Source("a.cedar", PERMIT)],
        (ROOT / "schema.cedarschema").read_text(),
        "",
    )
    assert rules.faults == ()
    decision = rules.decide(START)
    assert [(reason.rule, reason.text) for reason in decision.reasons] == [("freeze", "Frozen.")]
    assert {one.name: one.place for one in rules.statements} == {"all": "a.cedar:1", "freeze": "b.cedar:2"}


def test_an_error_while_deciding_denies_although_a_permit_holds() -> None:
    text = PERMIT + (
        '@id("sum") @reason("Too many.") forbid (principal, action == Pullwright::Action::"PublishDraft", resource)'
        " when { resource.files + 9223372036854775807 > 5 };"
    )
    decision = made(text).decide(MayPublish(TaskId("t"), RepositoryId(42), CHANGE))
    assert not decision.allowed
    assert decision.reasons[0].rule == "policy-error"


def test_a_repository_cannot_loosen_by_a_permit_hidden_among_forbids(policies: Policies) -> None:
    text = "forbid (principal, action, resource) when { false };\n// x\npermit (principal, action, resource);"
    tightened = policies.tightened(text)
    assert [str(fault) for fault in tightened.faults] == [
        ".github/pullwright.cedar:3: a repository's own policy may hold only `forbid`"
    ]
    assert not tightened.decide(START).allowed


def test_a_repository_rule_without_a_name_is_called_by_its_place(policies: Policies) -> None:
    tightened = policies.tightened("forbid (principal, action, resource);")
    assert [reason.rule for reason in tightened.decide(START).reasons] == [".github/pullwright.cedar:1"]
    assert policies.tightened("").decide(START).allowed
    assert not policies.tightened("forbid (principal, action, resource) when { principal.x };").decide(START).allowed


def test_the_digest_changes_with_every_text(policies: Policies) -> None:
    seen = {policies.digest, policies.tightened("").digest}
    seen.add(replace(policies, schema=policies.schema + " ").digest)
    seen.add(replace(policies, limits_text="").digest)
    seen.add(replace(policies, sources=(Source("other.cedar", policies.sources[0].text),)).digest)
    assert len(seen) == 5
    assert load_policies(ROOT).digest == policies.digest


def test_names_with_odd_characters_cannot_change_the_question(policies: Policies) -> None:
    odd = replace(CHANGE, branch='agent/x"] || true', paths=('a"b', "c\nd"), flags=('x", "y',))
    approve = MayApprove(ADA, odd, named=('x", "y',))
    assert policies.decide(approve).allowed
    assert not policies.decide(replace(approve, named=("x", "y"))).allowed


def test_every_directory_above_a_path_counts_as_touched() -> None:
    assert touched(("a/b/c.py", "d")) == ["a", "a/b", "a/b/c.py", "d"]
