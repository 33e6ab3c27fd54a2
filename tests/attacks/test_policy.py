"""What a hostile change may try to slip past a reviewer: every case raises a flag that has to be named, or is denied."""

from __future__ import annotations

import base64
import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.domain.change import ChangedPath, FileMode, TreeEntry
from bot.domain.ids import BlobId, RepositoryId, TaskId
from bot.domain.pull import Permission
from bot.domain.verdict import Finding
from bot.policy.engine import check
from bot.policy.facts import MayStart, Person
from bot.policy.flags import Flag, Weight, merged
from bot.policy.limits import Limits
from bot.policy.paths import flags_of
from bot.policy.sources import Source
from bot.providers.scanner.semgrep import ROOT as SCAN_ROOT
from bot.providers.scanner.semgrep import Semgrep
from bot.settings import load_policies
from bot.stages.landing.texts import squash_message
from bot.stages.publishing.names import title
from bot.stages.publishing.texts import commit_message
from bot.stages.verifying import suppressions
from bot.workflow.judging import secret_flags
from tests.attacks.conftest import Control
from tests.unit.stages.approving.builders import ADA

POLICIES = Path(__file__).parents[2] / "policies"
CANARY = "ghp_" + "A1b2C3d4E5f6" * 3

Files = Mapping[str, bytes | None]


def flags(after: Files, before: Files | None = None, *, mode: str = "100644") -> dict[str, Weight]:
    """The flags of a change of whole files; None on a side means absent."""
    old = before or {}
    contents: dict[BlobId, bytes] = {}

    def side(path: str, data: bytes | None) -> TreeEntry | None:
        if data is None:
            return None
        blob = BlobId(hashlib.sha1(data).hexdigest())
        contents[blob] = data
        return TreeEntry(path, FileMode(mode), blob)

    changes = [ChangedPath(path, side(path, old.get(path)), side(path, data)) for path, data in after.items()]
    found: tuple[Flag, ...] = flags_of(changes, files_before=40, peek=contents.get, limits=Limits())
    return {flag.name: flag.weight for flag in merged((*found, *secret_flags(changes, contents)))}


LOCK = (
    b'{"packages": {"node_modules/a": {"version": "1.0.0", "resolved": "https://npm.example/a.tgz",'
    b' "integrity": "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAA=="}}}'
)
LOCKED = {"package-lock.json": LOCK}

FLAGGED: tuple[tuple[str, str, Files, Files], ...] = (
    ("O01", "workflows", {".github/workflows/ci.yml": b"on: push\n"}, {}),
    ("O01", "ci", {".gitlab-ci.yml": b"job: {}\n"}, {}),
    ("O02", "codeowners", {"CODEOWNERS": b"\n", "pay/rates.py": b"x = 2\n"}, {"CODEOWNERS": b"pay/ @ada\n"}),
    ("O03", "bot_config", {"policies/pullwright.cedar": b"permit(principal, action, resource);\n"}, {}),
    ("O03", "bot_config", {".semgrepignore": b"*\n"}, {}),
    (
        "O03",
        "bot_config",
        {"policies/semgrep/python.yml": b"rules: []\n"},
        {"policies/semgrep/python.yml": b"rules: [1]\n"},
    ),
    ("O03", "bot_config", {".gitleaks.toml": b"[allowlist]\n"}, {}),
    ("O03", "bot_config", {".github/pullwright.cedar": b"\n"}, {".github/pullwright.cedar": b"forbid(x);\n"}),
    ("O04", "agent_instructions", {"AGENTS.md": b"Obey.\n"}, {}),
    ("O04", "agent_instructions", {"docs/CLAUDE.md": b"Obey.\n"}, {}),
    ("O04", "agent_instructions", {".claude/skills/x/SKILL.md": b"Obey.\n"}, {}),
    ("O04", "agent_instructions", {".claude/settings.json": b"{}\n"}, {}),
    ("O04", "agent_instructions", {".mcp.json": b"{}\n"}, {}),
    ("O05", "gitattributes", {".gitattributes": b"*.py -diff linguist-generated\n", "a.py": b"x\n"}, {}),
    ("O06-new-host", "install_source", {"package-lock.json": LOCK.replace(b"npm.example", b"evil.example")}, LOCKED),
    ("O06-new-hash", "repinned", {"package-lock.json": LOCK.replace(b"AAAA", b"BBBB")}, LOCKED),
    ("O06-lock-only", "lock_only", {"package-lock.json": LOCK.replace(b"1.0.0", b"1.0.1")}, LOCKED),
    (
        "O06-git",
        "install_source",
        {"requirements.txt": b"a @ git+https://x.example/a\n"},
        {"requirements.txt": b"a==1\n"},
    ),
    ("O06-url", "install_source", {"pyproject.toml": b"a = 'https://x.example/a'\n"}, {"pyproject.toml": b"a = '1'\n"}),
    (
        "O06-script",
        "install_source",
        {"package.json": b'{"scripts": {"postinstall": "sh x"}}\n'},
        {"package.json": b"{}\n"},
    ),
    ("O07", "build_hook", {"conftest.py": b"x = 1\n"}, {}),
    ("O07", "build_hook", {"evil.pth": b"import os\n"}, {}),
    ("O07", "build_hook", {"sitecustomize.py": b"x = 1\n"}, {}),
    ("O07", "build_hook", {".envrc": b"x\n"}, {}),
    ("O07", "build_hook", {".vscode/tasks.json": b"{}\n"}, {}),
    ("O07", "build_hook", {".devcontainer/devcontainer.json": b"{}\n"}, {}),
    ("O07", "build_hook", {".pre-commit-config.yaml": b"repos: []\n"}, {}),
    ("O08", "hidden_characters", {"a.py": "x = 1 # \u202e\u2066\n".encode()}, {}),
    ("O08", "hidden_characters", {"a.py": "ad\u200bmin = 1\n".encode()}, {}),
    ("O10", "tests_removed", {"tests/test_a.py": None}, {"tests/test_a.py": b"def test_a(): assert 1\n"}),
    (
        "O10",
        "tests_skipped",
        {"tests/test_a.py": b"import pytest\n\n\n@pytest.mark.skip\ndef test_a():\n    assert 1\n"},
        {"tests/test_a.py": b"import pytest\n\n\ndef test_a():\n    assert 1\n"},
    ),
    (
        "O10-weakened",
        "tests_removed",
        {"tests/test_a.py": b"def test_a():\n    pass\n"},
        {"tests/test_a.py": b"def test_a():\n    assert 1\n"},
    ),
    (
        "O10-threshold",
        "threshold_lowered",
        {"tox.ini": b"--cov-fail-under=50\n"},
        {"tox.ini": b"--cov-fail-under=90\n"},
    ),
    (
        "O10-threshold",
        "threshold_lowered",
        {".coveragerc": b"[report]\n"},
        {".coveragerc": b"[report]\nfail_under = 90\n"},
    ),
    (
        "O10-threshold",
        "threshold_lowered",
        {"jest.config.js": b"coverageThreshold: { global: { lines: 10 } }\n"},
        {"jest.config.js": b"coverageThreshold: { global: { lines: 90 } }\n"},
    ),
    ("O11-executable", "executable", {"run": b"not a script\n"}, {}),
    ("O11", "binary", {"a.bin": bytes(range(256)) * 4}, {}),
    ("O11", "minified", {"a.js": b"x=1;" * 2000 + b"\n"}, {}),
    ("O11", "encoded_blob", {"a.py": b"x = '" + base64.b64encode(bytes(range(256)) * 6) + b"'\n"}, {}),
    ("O14", "mass_deletion", {f"f{n}.py": None for n in range(30)}, {f"f{n}.py": b"x\n" for n in range(30)}),
)


@pytest.mark.parametrize(
    ("case", "name", "after", "before"), FLAGGED, ids=[f"{f[0]}-{f[1]}-{n}" for n, f in enumerate(FLAGGED)]
)
def test_what_a_reviewer_has_to_name(case: str, name: str, after: Files, before: Files, control: Control):
    control(flags({"plain.py": b"x = 1\n"}) == {}, "an ordinary file raises nothing")
    mode = "100755" if name == "executable" else "100644"
    assert flags(after, before, mode=mode)[name] is Weight.NAMED, case


TASK = TaskId("task:1:7:1")

DENIED: tuple[tuple[str, str, Files], ...] = (
    ("O09", "tag_characters", {"a.py": "x = 1 # \U000e0041\U000e0042\n".encode()}),
    ("O09", "tag_characters", {"AGENTS.md": "Be kind.\U000e0041\n".encode()}),
    ("O11", "archive", {"a.zip": b"PK\x03\x04" + bytes(200)}),
    ("O11", "binary_program", {"run": b"\x7fELF" + bytes(200)}),
    ("O13", "secret", {"a.py": f"token = '{CANARY}'\n".encode()}),
    ("O13", "secret", {f"{CANARY}.txt": b"x\n"}),
    ("O13", "secret", {"a.py": b"x = '" + base64.b64encode(CANARY.encode()) + b"'\n"}),
    ("O13", "secret", {"a.py": f"x = '{CANARY.encode().hex()}'\n".encode()}),
    ("O13", "secret", {"a.py": f"x = '{CANARY[::-1]}'\n".encode()}),
    ("O13-split", "secret", {"a.py": f"x = (\n    '{CANARY[:9]}'\n    '{CANARY[9:]}'\n)\n".encode()}),
    ("O13-split", "secret", {"a.js": f'x = "{CANARY[:9]}" +\n  "{CANARY[9:20]}" + "{CANARY[20:]}"\n'.encode()}),
)


@pytest.mark.parametrize(("case", "name", "after"), DENIED, ids=[f"{d[0]}-{d[1]}-{n}" for n, d in enumerate(DENIED)])
def test_what_nobody_can_allow(case: str, name: str, after: Files, control: Control):
    control(name not in flags({"plain.py": b"x = 1\n"}), "an ordinary file may be allowed")
    assert flags(after)[name] is Weight.DENIED, case


@pytest.mark.parametrize(
    "said", [CANARY, base64.b64encode(CANARY.encode()).decode(), CANARY[::-1], CANARY.encode().hex()]
)
def test_o13_a_commit_message_carries_no_secret(said: str, control: Control):
    issue = f"Add {said}"
    control(said in commit_message(issue, 7, TASK), "with the issue's title as it is, the message holds it")
    for message in (commit_message(title(issue), 7, TASK), squash_message(title(issue), 7, "0" * 64, "ada")):
        assert CANARY not in message
        assert said not in message


def scan(before: Mapping[str, bytes], after: Mapping[str, bytes], root: Path) -> tuple[Finding, ...]:
    """What the shipped rules find in `after` and not in `before`, by Semgrep itself."""
    scanner = Semgrep.from_directory(POLICIES / "semgrep", str(POLICIES.parent / ".venv-semgrep" / "bin" / "semgrep"))
    asked = scanner.command(before, after)
    for path, data in asked.files:
        place = root / path.removeprefix(f"{SCAN_ROOT}/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    command = asked.command.replace(SCAN_ROOT, str(root))
    code = subprocess.run(["bash", "-c", command], timeout=120, check=False).returncode
    return scanner.read((root / "report.json").read_bytes(), code, before, after).introduced()


def test_o13_a_secret_that_was_there_before_is_not_held_against_the_change():
    line = f"token = '{CANARY}'\n".encode()
    assert "secret" not in flags({"a.py": line + b"x = 1\n"}, {"a.py": line})


def test_a_password_of_a_database_on_the_own_machine_is_no_secret():
    text = (
        b"a = 'postgres://app:app@localhost:5432/x'\nb = 'redis://u:pw@cache/0'\nc = 'https://a:b@www.example.org/'\n"
    )
    assert "secret" not in flags({"settings.py": text})
    assert "secret" in flags({"settings.py": b"a = 'https://bot:hunter22@git.acme.dev/x'\n"})


def test_o12_an_added_suppression_fails_the_check(control: Control):
    control(suppressions.added({}, {"a.py": b"eval(x)\n"}) == (), "the line alone is no suppression")
    assert suppressions.added({}, {"a.py": b"eval(x)  # nosemgrep\n"})


def test_o12_a_finding_that_the_change_brings_fails_the_check(tmp_path: Path, control: Control):
    """Semgrep itself, with the shipped rules, on the lines that were there and on those that came."""
    before = {"a.py": b"import subprocess\n\n\ndef f(x):\n    return x\n"}
    after = {"a.py": before["a.py"].replace(b"return x", b"return subprocess.run(x, shell=True)")}
    control(scan(before, before, tmp_path / "control") == (), "what was there before is not held against it")
    found = scan(before, after, tmp_path / "attack")
    assert [(one.path, one.line) for one in found] == [("a.py", 5)]


@pytest.mark.parametrize(
    "text", ["", "permit (principal", "permit (principal, action, resource) when { context.nobody };"]
)
def test_o15_without_valid_rules_everything_is_denied(text: str, control: Control):
    whole = load_policies(POLICIES)
    broken = check((Source("pullwright.cedar", text),), whole.schema, whole.limits_text)

    question = MayStart(Person(ADA, Permission.WRITE), RepositoryId(1))
    control(whole.decide(question).allowed, "with the shipped rules, it is allowed")
    assert not broken.decide(question).allowed


def test_o15_an_unknown_key_among_the_limits_denies(tmp_path: Path):
    whole = load_policies(POLICIES)
    assert check(whole.sources, whole.schema, whole.limits_text + "\nunknown = 1\n").faults
    assert load_policies(tmp_path).faults
