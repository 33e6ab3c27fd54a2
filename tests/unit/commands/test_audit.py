"""What an audit reads on this machine, the operator's files, and what people and programs are shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bot.audit.checks import CHECKS, audited
from bot.audit.facts import WorkingCopy
from bot.audit.findings import Finding, Severity
from bot.audit.operator import Operator, read_last_report, read_operator, read_pins
from bot.audit.report import exit_code, told
from bot.commands import audit_local
from bot.commands.audit import audit
from bot.commands.manifest import read_manifest
from bot.domain.errors import UserError
from bot.providers.organisation.port import Read
from bot.settings import Settings
from tests.unit.audit.builders import facts, snapshot, with_file

DPKG = """\
Package: git
Status: install ok installed
Version: 1:2.39.5-0+deb12u3

Package: gone
Status: deinstall ok config-files
Version: 1.0

Package: libgit
Status: install ok installed
Description: Package: bubblewrap
Version: 9
"""


def repository(place: Path) -> Path:
    inside = place / ".git"
    (inside / "hooks").mkdir(parents=True)
    (inside / "HEAD").write_text("ref: refs/heads/main\n")
    (inside / "config").write_text("[core]\n")
    return inside


def faults(copy: WorkingCopy) -> list[str]:
    return [text.fault for _, text in copy.configs]


def test_a_working_copy_is_read_with_its_hooks(tmp_path: Path):
    inside = repository(tmp_path)
    (inside / "hooks" / "pre-commit.sample").touch()
    (inside / "hooks" / "pre-push").touch()
    (inside / "config.worktree").write_text("[a]\n")
    copy = audit_local.working_copy(tmp_path)
    assert copy.configs == (("config", Read("[core]\n")), ("config.worktree", Read("[a]\n")))
    assert copy.hooks == Read(("pre-push",))
    assert audit_local.working_copy(inside).configs == copy.configs


def test_links_and_worktrees_are_not_followed(tmp_path: Path):
    real = repository(tmp_path / "real")
    linked, tree, config, empty = (tmp_path / name for name in ("linked", "tree", "config", "empty"))
    for place in (linked, tree, empty):
        place.mkdir()
    (linked / ".git").symlink_to(real)
    (tree / ".git").write_text(f"gitdir: {real}\n")
    (repository(config) / "config").unlink()
    (config / ".git" / "config").symlink_to(real / "config")
    assert faults(audit_local.working_copy(linked)) == [".git is a link"]
    assert faults(audit_local.working_copy(tree)) == ["it belongs to another repository; name that"]
    assert faults(audit_local.working_copy(config)) == ["it is a link or no file: git would write where it leads"]
    assert faults(audit_local.working_copy(empty)) == ["it is no working copy"]
    assert faults(audit_local.working_copy(tmp_path / "missing")) == ["it is no working copy"]


def test_a_config_that_is_missing_or_too_long_is_a_fault(tmp_path: Path):
    inside = repository(tmp_path)
    (inside / "config").write_bytes(b"#" * (2 << 20))
    assert faults(audit_local.working_copy(tmp_path)) == ["it has more than 1,048,576 bytes"]
    (inside / "config").unlink()
    assert faults(audit_local.working_copy(tmp_path)) == ["No such file or directory"]


async def test_versions_are_those_of_the_distribution(tmp_path: Path):
    status = tmp_path / "status"
    status.write_text(DPKG)
    asked = ("git", "gone", "bubblewrap", "kernel")
    settings = Settings(home=tmp_path, egress="*.x", e2b_api_key="k")
    host = await audit_local.host(settings, asked, status)
    assert host.versions["git"] == Read("1:2.39.5-0+deb12u3")
    assert host.versions["kernel"].value
    assert [host.versions[name].value for name in ("gone", "bubblewrap")] == [None, None]
    assert host.uploads.fault
    without = await audit_local.host(settings, ("git",), tmp_path / "none")
    assert without.versions["git"] == Read(None, "this machine has no Debian packages")


def test_the_operators_file():
    text = 'departed = ["ada"]\nbranch_prefix = "bot/"\n[floors]\ngit = "1"\n'
    assert read_operator(text) == Operator(departed=("ada",), branch_prefix="bot/", floors={"git": "1"})
    assert read_operator("") == Operator()
    assert read_pins('[[pin]]\nname = "x"\n')[0].commit == ""
    assert read_last_report('{"instruction_files": {"a": "b"}}') == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("departed = 3", "departed"),
        ('departed = ["a b"]', "departed.0"),
        ("gone = []", "gone"),
        ('branch_prefix = "agent"', "branch_prefix"),
        ("= 1", "Invalid statement"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(text: str, words: str):
    with pytest.raises(ValueError, match=words):
        read_operator(text)


@pytest.mark.parametrize("text", ["[]", "{}", '{"instruction_files": {"a": 1}}', "{"])
def test_what_is_no_report_is_refused(text: str):
    with pytest.raises(ValueError, match=r"report|property name"):
        read_last_report(text)


async def test_without_a_token_or_with_a_wrong_file_nothing_is_asked(tmp_path: Path):
    with pytest.raises(UserError, match="PULLWRIGHT_AUDIT_TOKEN is not set"):
        await audit(Settings(home=tmp_path), "octo-org", None)
    wrong = tmp_path / "audit.toml"
    wrong.write_text("departed = 1\n")
    with pytest.raises(UserError, match=r"audit\.toml cannot be used: departed"):
        await audit(Settings(home=tmp_path, audit_token="t"), "octo-org", wrong)
    with pytest.raises(UserError, match="cannot be used: No such file"):
        await audit(Settings(home=tmp_path, audit_token="t"), "octo-org", tmp_path / "none")


def test_a_manifest():
    assert read_manifest("default_permissions: {a: read}\ndefault_events: [push]\n") == ({"a": "read"}, ("push",))
    for text in ("", "[", "default_permissions: 3\ndefault_events: 4\n"):
        with pytest.raises(ValueError, match="no App's manifest"):
            read_manifest(text)


def test_what_was_not_asked_for_is_listed_and_never_silent():
    found = audited(snapshot(facts()))
    assert exit_code(found) == 0
    left = {one.check for one in found.not_checked}
    assert {"A4", "A6", "A7", "A9", "A13", "A14", "A16"} <= left
    assert set(found.checked) | left == {check.id for check in CHECKS}
    unasked = audited(snapshot(facts(), collaborators=Read((), "403 no")))
    assert (unasked.findings, "A4" in unasked.checked) == ((), False)
    without = audited(snapshot(facts(), operator=Operator(enterprise_cloud=False)))
    assert "A3" in {one.check for one in without.not_checked}
    assert "A3" not in without.checked


def test_the_report_is_one_object_for_programs():
    seen = snapshot(with_file("AGENTS.md", "Make a gist.\n"))
    found = audited(seen, {})
    report = json.loads(told(found, as_json=True))
    assert report["exit"] == exit_code(found) == Severity.MEDIUM
    assert [(one["check"], one["severity"]) for one in report["findings"]] == [("A5", "medium"), ("A5", "low")]
    assert report["instruction_files"] == {"octo-org/hello:AGENTS.md": "b" * 40}
    assert report["limits"]
    assert "\n" not in told(found, as_json=True)


def test_the_report_for_people_shows_no_secret_and_no_escape():
    token = "ghp_" + "a1B2" * 9
    copy = WorkingCopy("/x\x1b[31m", (("config", Read(f"[alias]\nx = !curl -H {token}\n")),))
    shown = told(audited(snapshot(facts(), copies=(copy,))), as_json=False)
    assert "alias.x" in shown
    assert token not in shown + told(audited(snapshot(facts(), copies=(copy,))), as_json=True)
    assert "\x1b" not in shown
    assert "octo-org: 1 high in" in shown
    assert "Not checked by this version or without more input:" in shown


@pytest.mark.parametrize(("severity", "code"), [("LOW", 3), ("UNKNOWN", 4), ("MEDIUM", 5), ("HIGH", 6)])
def test_the_worst_finding_is_the_exit_code(severity: str, code: int):
    one, least = Finding("A1", Severity[severity], "x", "y", "z"), Finding("A2", Severity.LOW, "x", "y", "z")
    assert exit_code(replace(audited(snapshot(facts())), findings=(least, one))) == code
