"""What the result of a set-up depends on: only what is known to install is believed not to look at every file."""

from __future__ import annotations

import pytest

from bot.policy.setup import setup_files

PATHS = (
    "pyproject.toml",
    "requirements.txt",
    "requirements/dev.txt",
    "constraints.txt",
    "package.json",
    "package-lock.json",
    "src/app.py",
    "src/fast.pyx",
    "scripts/setup.sh",
    "docs/index.md",
    "vendor/lib/setup.py",
)
ALWAYS = {
    "pyproject.toml",
    "requirements.txt",
    "requirements/dev.txt",
    "package.json",
    "package-lock.json",
    "vendor/lib/setup.py",
}


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("pip install -r requirements.txt", set()),
        ("python -m pip install -q -r requirements.txt -c constraints.txt", {"constraints.txt"}),
        ("python3.12 -m venv .venv && . .venv/bin/activate && pip install 'pytest>=8'", set()),
        ("pip install -e .", {"src/fast.pyx"}),
        ("pip install --editable '.[test]'", {"src/fast.pyx"}),
        ("uv sync --frozen; npm ci --no-audit", set()),
        ("yarn", set()),
        ("mvn -q dependency:go-offline", set()),
    ],
)
def test_an_installer_reads_what_declares_dependencies_and_what_it_is_given(command: str, more: set[str]) -> None:
    assert setup_files((command,), PATHS, ()) == frozenset(ALWAYS | more)


@pytest.mark.parametrize(
    "command",
    [
        "pip install .",
        "pip install ./",
        "pip install '.[test]'",
        "pip install ./vendor/lib",
        "pip install vendor/lib",
        "npm run build",
        "npm ci && npm run build",
        "make deps",
        "bash scripts/setup.sh",
        "python setup.py develop",
        "pip install -r requirements.txt | tee log",
        "pip install $(cat list)",
        "pip install -r requirements.txt & make",
        "pip install 'unclosed",
        "echo `id`",
        "go build ./...",
        "cargo install --path .",
        "npm ci ../..",
    ],
)
def test_what_may_have_built_from_anything_reads_every_file(command: str) -> None:
    assert setup_files((command,), PATHS, ()) is None
    assert setup_files(("npm ci", command), PATHS, ()) is None


def test_the_repositorys_own_patterns_are_taken_at_their_word() -> None:
    assert setup_files(("make deps",), PATHS, ("requirements/*.txt", "scripts/*")) == frozenset(
        {"requirements/dev.txt", "scripts/setup.sh"}
    )


def test_patterns_that_match_no_file_are_a_slip_and_not_a_reason_to_keep_for_ever() -> None:
    assert setup_files(("npm ci",), PATHS, ("requirement/*.txt",)) is None
