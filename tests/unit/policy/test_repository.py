from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.repository import LandingMode, RepositorySettings
from bot.policy.repository import SettingsFault, default_test_command, parse_settings

FULL = b"""
setup = ["pip install -e ."]
setup_files = ["requirements/*.txt"]
test = "pytest -q"
step_test = "pytest -q tests/unit"
lint = "ruff check"
test_timeout_seconds = 120
plan_gate = true
landing = "merge"
template = "python-3.12"
"""


def test_every_setting_is_read() -> None:
    assert parse_settings(FULL) == RepositorySettings(
        setup=("pip install -e .",),
        setup_files=("requirements/*.txt",),
        test="pytest -q",
        step_test="pytest -q tests/unit",
        lint="ruff check",
        test_timeout_seconds=120,
        plan_gate=True,
        landing=LandingMode.MERGE,
        template="python-3.12",
    )


def test_an_empty_file_means_the_defaults() -> None:
    assert parse_settings(b"# nothing yet\n") == RepositorySettings()


def test_one_setup_command_needs_no_list() -> None:
    assert parse_settings(b'setup = "make deps"') == RepositorySettings(setup=("make deps",))


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (b"# x\n\nbudget = 5\n", 3, "budget", "no setting `budget`"),
        (b"[deploy]\nto = 'prod'\n", 1, "deploy", "no setting `deploy`"),
        (b"deploy.to = 'prod'\n", 1, "deploy", "no setting `deploy`"),
        (b"test = 5\n", 1, "test", "valid string"),
        (b"plan_gate = 'yes'\n", 1, "plan_gate", "valid boolean"),
        (b"landing = 'now'\n", 1, "landing", "'ready' or 'merge'"),
        (b"test = ''\n", 1, "test", "at least 1 character"),
        (b"lint = 'x'\ntest_timeout_seconds = 5\n", 2, "test_timeout_seconds", "greater than or equal to 10"),
        (b"setup = [1]\n", 1, "setup", "valid string"),
        (b"template = '../x'\n", 1, "template", "pattern"),
        (b"test = 'a\nb'\n", 1, "", "not TOML"),
        (b"test = 'a'\ntest = 'b'\n", 2, "", "not TOML"),
        (b"\xff\n", None, "", "not UTF-8"),
    ],
)
def test_a_fault_names_line_and_key(text: bytes, line: int | None, key: str, words: str) -> None:
    fault = parse_settings(text)
    assert isinstance(fault, SettingsFault)
    assert (fault.line, fault.key) == (line, key)
    assert words in fault.message


def test_a_key_cannot_format_the_answer() -> None:
    fault = parse_settings(b'"x`\\n## pwned @team" = 1')
    assert isinstance(fault, SettingsFault)
    assert "## pwned" not in fault.message
    assert "@" not in fault.message


def test_nesting_without_end_is_a_fault() -> None:
    assert isinstance(parse_settings(b"test = " + b"[" * 20_000), SettingsFault)


@given(st.binary(max_size=200))
def test_any_bytes_are_settings_or_a_fault(data: bytes) -> None:
    assert isinstance(parse_settings(data), RepositorySettings | SettingsFault)


@pytest.mark.parametrize(
    ("paths", "command"),
    [
        (["pyproject.toml", "tests/test_a.py"], "python -m pytest -q"),
        (["setup.py", "pkg/test.py", "package.json"], "python -m pytest -q"),
        (["conftest.py"], "python -m pytest -q"),
        (["a.py", "test_a.py"], "python -m pytest -q"),
        (["package.json", "scripts/tests/x.py"], "npm test"),
        (["package.json", "yarn.lock"], "yarn test"),
        (["package.json", "pnpm-lock.yaml"], "pnpm test"),
        (["go.mod", "main.go"], "go test ./..."),
        (["Cargo.toml"], "cargo test"),
        (["pom.xml"], "mvn -q test"),
        (["mvnw", "pom.xml"], "./mvnw -q test"),
        (["gradlew", "build.gradle"], "./gradlew test"),
        (["App.sln"], "dotnet test"),
        ([".rspec", "Gemfile"], "bundle exec rspec"),
        (["README.md"], None),
        (["sub/package.json"], None),
        ([], None),
    ],
)
def test_the_files_suggest_a_test_command(paths: list[str], command: str | None) -> None:
    assert default_test_command(paths) == command
