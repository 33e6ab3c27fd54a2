"""`pullwright policy check` and `policy explain`, as programs call them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bot.cli import app
from bot.commands import policy
from bot.domain.errors import UserError
from bot.policy.limits import Limits

POLICIES = Path(__file__).parents[3] / "policies"


def run(*words: str, directory: Path = POLICIES) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["policy", *words, "--policies", str(directory)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def told(*words: str, directory: Path = POLICIES) -> dict[str, object]:
    found: dict[str, object] = json.loads(run(*words, "--json", directory=directory)[1])
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(POLICIES, tmp_path / "policies"))


def test_the_shipped_policies_and_their_cases_are_fine():
    code, said = run("check")
    assert code == 0
    assert said.startswith("The policies are valid.")
    assert told("check")["differing"] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("pullwright.cedar", "resource.verified", "resource.verifyed", "pullwright.cedar:"),
        ("pullwright.cedar", "context.fork", "context.fork &&", "pullwright.cedar:"),
        ("limits.toml", "two_person = false", "two_person = 1", "limits.toml:10: `two_person`"),
        ("limits.toml", "approvals = 1", "approvals = 0", "limits.toml:12: `approvals`"),
        ("limits.toml", "approvals = 1", "approvals = ", "limits.toml:12: this is not TOML"),
        ("schema.cedarschema", "entity Repository;", "entity Repository", "schema.cedarschema"),
        (
            "cases/start-by-bot.toml",
            '"denied"',
            '"allowed"',
            "cases/start-by-bot.toml: denied because start-needs-a-person",
        ),
        ("cases/start-by-bot.toml", "asks", "ask", "cases/start-by-bot.toml: asks"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(copy: Path, name: str, old: str, new: str, words: str):
    text = (copy / name).read_text("utf-8")
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1), "utf-8")
    code, said = run("check", directory=copy)
    assert code == 1
    assert words in said
    found = told("check", directory=copy)
    assert words in json.dumps(found["faults"]) + json.dumps(found["differing"])


def test_the_line_of_a_cedar_rule_is_the_line_it_begins_on(copy: Path):
    path = copy / "pullwright.cedar"
    text = path.read_text("utf-8")
    path.write_text(text.replace("resource.verified", "resource.verifyed", 1), "utf-8")
    line = text.splitlines().index('@id("verified-only")') + 1
    assert f"pullwright.cedar:{line}: " in run("check", directory=copy)[1]


def test_a_case_is_explained_with_rule_place_and_reason():
    code, said = run("explain", str(POLICIES / "cases" / "start-by-reader.toml"))
    assert code == 0
    assert "StartTask: denied" in said
    assert "start-needs-write (pullwright.cedar:" in said
    found = told("explain", str(POLICIES / "cases" / "start-by-reader.toml"))
    assert found["decision"] == "denied"
    assert found["as_expected"] is True
    assert [one["rule"] for one in found["because"]] == ["start-needs-write"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "decision", "rules"),
    [
        (("person:write", "start", "repository"), "allowed", ["start"]),
        (("person:read", "StartTask", "repository"), "denied", ["start-needs-write"]),
        (("person:write", "start", "fork"), "denied", ["start-not-on-forks"]),
        (("bot:admin", "approve", "a.py"), "denied", ["approve-needs-a-person"]),
        (("author:write", "approve", "a.py"), "denied", ["approve-not-the-author"]),
        (("person:write", "approve", "a.py,.github/workflows/ci.yml"), "denied", ["flags-need-a-name"]),
        (("task", "publish", ".github/workflows/ci.yml"), "denied", ["no-workflow-drafts"]),
        (("task", "land", "a.py"), "allowed", ["land"]),
        (("person:write/approve/src/a.py",), "allowed", ["approve"]),
    ],
)
def test_a_question_in_three_words_is_explained(words: tuple[str, ...], decision: str, rules: list[str]):
    found = told("explain", *words)
    assert found["decision"] == decision
    assert [one["rule"] for one in found["because"]] == rules  # type: ignore[attr-defined]
    assert run("explain", *words)[0] == (0 if decision == "allowed" else 1)


def test_a_repositorys_own_rules_are_part_of_the_answer(tmp_path: Path):
    own = tmp_path / "pullwright.cedar"
    own.write_text('@id("no-sql") @reason("By hand.") forbid (principal, action, resource);\n')
    found = told("explain", "person:write", "start", "repository", "--repository-policy", str(own))
    assert found["because"] == [
        {"rule": "no-sql", "effect": "forbid", "place": ".github/pullwright.cedar:1", "reason": "By hand."}
    ]
    own.write_text("permit (principal, action, resource);\n")
    broken = told("explain", "person:write", "start", "repository", "--repository-policy", str(own))
    assert broken["decision"] == "denied"
    assert ".github/pullwright.cedar:1" in json.dumps(broken["because"])


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["person:write", "dance", "x"], "no action 'dance'"),
        (["task", "approve", "x"], "cannot ask for approve"),
        (["person:write", "land", "x"], "cannot ask for land"),
        (["person:owner", "start", "x"], "cannot be asked"),
        (["nowhere.toml"], "is no case"),
        (["a", "b"], "Give one case file"),
    ],
)
def test_what_cannot_be_asked_says_what_can(words: list[str], hint: str):
    with pytest.raises(UserError, match=hint):
        policy.asked(words, Limits(), None)
