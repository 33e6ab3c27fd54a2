"""Facts about the changed paths of a change → flags. Judged on git's raw comparison, never on the text of a patch."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from bot.domain.change import ChangedPath, FileMode
from bot.domain.ids import BlobId
from bot.policy import contents
from bot.policy.flags import Flag, Weight, merged
from bot.policy.limits import Limits

Peek = Callable[[BlobId], bytes | None]
"""The bytes of a blob; None when they are not at hand (too large, or not fetched)."""


def _rule(name: str, weight: Weight, why: str, *patterns: str) -> tuple[str, Weight, str, re.Pattern[str]]:
    return name, weight, why, re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_HERE = r"(?:^|.*/)"
_NAMED, _SHOWN = Weight.NAMED, Weight.SHOWN

_BY_PATH = (
    _rule(
        "workflows",
        _NAMED,
        "Workflows run with the repository's own credentials.",
        r"\.github/workflows/.*",
        r"\.github/actions/.*",
        _HERE + r"action\.ya?ml",
    ),
    _rule(
        "ci",
        _NAMED,
        "The change alters what is run to check it.",
        r"\.gitlab-ci\.ya?ml",
        r"jenkinsfile.*",
        r"\.circleci/.*",
        r"azure-pipelines.*\.ya?ml",
        r"\.buildkite/.*",
        r"\.travis\.ya?ml",
        r"bitbucket-pipelines\.ya?ml",
        r"\.drone\.ya?ml",
        r"appveyor\.ya?ml",
        r"\.cirrus\.(?:ya?ml|star)",
        r"\.woodpecker/.*",
        r"\.tekton/.*",
    ),
    _rule(
        "codeowners",
        _NAMED,
        "Who must review, and how the repository is protected, is decided here.",
        r"(?:\.github/|docs/)?codeowners",
        r"\.github/settings\.ya?ml",
        r"\.github/rulesets/.*",
        r"(?:\.github/|docs/)?security\.md",
        r"\.github/dependabot\.ya?ml",
        r"(?:\.github/)?\.?renovate(?:rc)?(?:\.json5?)?",
    ),
    _rule(
        "bot_config",
        _NAMED,
        "The rules that judge changes are changed.",
        r"\.github/pullwright\..*",
        r"policies/.*",
        _HERE + r"\.semgrep.*",
        _HERE + r"\.?(?:gitleaks|trivyignore|bandit|snyk).*",
    ),
    _rule(
        "agent_instructions",
        _NAMED,
        "Instructions to coding agents steer later tasks.",
        _HERE + r"(?:agents|claude|gemini|copilot-instructions)\.md",
        _HERE + r"\.(?:claude|cursor|codex|windsurf|aider|agents)[^/]*(?:/.*)?",
        _HERE + r"\.mcp\.json",
        r"\.github/(?:instructions|prompts|chatmodes|agents)/.*",
        _HERE + r"skills/.*\.md",
        _HERE + r"skill\.md",
    ),
    _rule(
        "gitattributes",
        _NAMED,
        "Attributes can hide files from the shown diff.",
        _HERE + r"\.gitattributes",
    ),
    _rule("gitmodules", _NAMED, "Submodules bring content nobody reviewed here.", _HERE + r"\.gitmodules"),
    _rule("git_ignore", _SHOWN, "", _HERE + r"\.gitignore", _HERE + r"\.git-blame-ignore-revs", _HERE + r"\.mailmap"),
    _rule(
        "lockfile",
        _SHOWN,
        "Versions of dependencies change.",
        _HERE + r"(?:package-lock|npm-shrinkwrap)\.json",
        _HERE + r"(?:yarn|poetry|uv|pdm|cargo|gemfile|composer|mix|flake|pipfile|podfile|pubspec)\.lock",
        _HERE + r"(?:pnpm-lock\.yaml|bun\.lockb?|go\.sum|packages\.lock\.json|gradle\.lockfile)",
        _HERE + r"requirements(?:[-_./].*)?\.txt",
    ),
    _rule(
        "manifest",
        _SHOWN,
        "Declared dependencies or build settings may change.",
        _HERE + r"(?:package\.json|pyproject\.toml|setup\.cfg|cargo\.toml|go\.mod|gemfile|pom\.xml|pipfile)",
        _HERE + r"(?:build\.gradle(?:\.kts)?|composer\.json|mix\.exs|[^/]+\.gemspec|[^/]+\.csproj)",
        _HERE + r"\.(?:npmrc|yarnrc(?:\.yml)?|pypirc)|pip\.conf",
    ),
)

_BUILD_HOOK = re.compile(
    _HERE
    + r"(?:setup\.py|conftest\.py|makefile|gnumakefile|[^/]*\.mk|dockerfile[^/]*|[^/]*\.dockerfile|docker-compose[^/]*"
    r"|\.pre-commit-config\.yaml|\.husky/.*|lefthook\.ya?ml|\.envrc|\.vscode/(?:tasks|settings|launch)\.json|\.idea/.*"
    r"|\.devcontainer(?:/.*|\.json)|[^/]*\.pth|sitecustomize\.py|usercustomize\.py|noxfile\.py|tox\.ini|build\.rs"
    r"|rakefile|justfile|taskfile\.ya?ml|cmakelists\.txt|gruntfile\.js|gulpfile\.js|binding\.gyp)"
)
_TEST = re.compile(
    r"(?:^|.*/)(?:tests?|specs?|__tests__)/.*|(?:^|.*/)(?:test_[^/]*|[^/]*_test|[^/]*[._-](?:test|spec))\.[^/]+"
)


def flags_of(changes: Sequence[ChangedPath], *, files_before: int, peek: Peek, limits: Limits) -> tuple[Flag, ...]:
    """Every flag of a change, the weightiest first. `files_before` is the number of files of the base tree."""
    found = [*_amounts(changes, files_before, limits), *_locks_alone(changes)]
    for change in changes:
        found += _by_path(change)
        found += _by_mode(change)
        found += _by_content(change, peek, limits)
    return merged(found)


def _flat(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()


def is_test(path: str) -> bool:
    """Whether a path is where tests live by the usual conventions."""
    return _TEST.fullmatch(_flat(path)) is not None


def is_agent_instruction(path: str) -> bool:
    """Whether coding agents take their instructions or settings from it."""
    flat = _flat(path)
    return any(name == "agent_instructions" and pattern.fullmatch(flat) for name, _, _, pattern in _BY_PATH)


def is_dependency_file(path: str) -> bool:
    """Whether it declares or locks dependencies, or steers how a project is built."""
    flat = _flat(path)
    kinds = ("lockfile", "manifest")
    declares = any(pattern.fullmatch(flat) for name, _, _, pattern in _BY_PATH if name in kinds)
    return declares or _BUILD_HOOK.fullmatch(flat) is not None


def _by_path(change: ChangedPath) -> Iterator[Flag]:
    flat = _flat(change.path)
    for name, weight, why, pattern in _BY_PATH:
        if pattern.fullmatch(flat):
            yield Flag(name, weight, (change.path,), why)
    if _BUILD_HOOK.fullmatch(flat):
        weight = _NAMED if change.old is None else _SHOWN
        yield Flag("build_hook", weight, (change.path,), "It runs on the machines of people and of CI.")
    if change.new is None and is_test(change.path):
        yield Flag("tests_removed", _NAMED, (change.path,), "Test files are deleted.")


def _by_mode(change: ChangedPath) -> Iterator[Flag]:
    modes = {side.mode for side in (change.old, change.new) if side is not None}
    if FileMode.GITLINK in modes:
        yield Flag("gitmodules", _NAMED, (change.path,), "A submodule is added, moved or removed.")
    if change.new is not None and change.new.mode is FileMode.SYMLINK:
        yield Flag("symlink", _NAMED, (change.path,), "A link may show other content than its name says.")


def _by_content(change: ChangedPath, peek: Peek, limits: Limits) -> Iterator[Flag]:
    new = change.new
    if new is None or new.mode in {FileMode.GITLINK, FileMode.SYMLINK}:
        return
    data = peek(new.blob)
    if data is None:
        yield Flag("unreadable", _NAMED, (change.path,), "The content could not be looked at.")
        return
    old = change.old
    comparable = old is not None and old.mode not in {FileMode.GITLINK, FileMode.SYMLINK}
    before = (peek(old.blob) if old is not None and comparable else b"") or b""
    if new.mode is FileMode.EXECUTABLE and (old is None or old.mode is not FileMode.EXECUTABLE):
        script = data.startswith(b"#!")
        why = "A script becomes executable." if script else "A file that is no script becomes executable."
        yield Flag("executable", _SHOWN if script else _NAMED, (change.path,), why)
    yield from contents.flags_of_content(change.path, before, data, limits)
    if is_test(change.path) and old is not None:
        yield from contents.weakened_tests(change.path, before, data)


def _locks_alone(changes: Sequence[ChangedPath]) -> Iterator[Flag]:
    """Lock files follow manifests; one that moves on its own was not asked for by any declared dependency."""
    flat = [(change.path, _flat(change.path)) for change in changes]
    kinds = {name: pattern for name, _, _, pattern in _BY_PATH}
    moved = [path for path, name in flat if kinds["lockfile"].fullmatch(name) and not name.endswith(".txt")]
    if moved and not any(kinds["manifest"].fullmatch(name) for _, name in flat):
        yield Flag("lock_only", _NAMED, tuple(moved), "Locked versions change without a declared dependency.")


def _amounts(changes: Sequence[ChangedPath], files_before: int, limits: Limits) -> Iterator[Flag]:
    moved = {change.new.blob for change in changes if change.new is not None and change.old is None}
    gone = tuple(
        change.path for change in changes if change.new is None and change.old and change.old.blob not in moved
    )
    if len(gone) > limits.deleted_files or (files_before and len(gone) / files_before > limits.deleted_share):
        yield Flag("mass_deletion", _NAMED, gone, f"{len(gone)} of {files_before} files are deleted.")
    if len(changes) > limits.changed_files:
        why = f"{len(changes)} files change, more than {limits.changed_files}."
        yield Flag("large", _NAMED, (), why)
