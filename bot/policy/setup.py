"""Which files the result of a repository's set-up depends on. While they are as they were, the result can be used again.

What is not known here to install dependencies and nothing else may have built something from any file: then all files count.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from bot.policy.paths import is_dependency_file

_OPTION = r"(?:\s+-{1,2}[\w-]+(?:=\S+)?)*"
_PYTHON = r"(?:\S*/)?python(?:3(?:\.\d+)?)?"
_PIP = rf"(?:(?:\S*/)?pip3?|{_PYTHON} -m pip|uv pip)"
_INSTALLERS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_PIP} install(?:\s+\S+)+",
        rf"(?:uv sync|poetry install|pdm (?:install|sync)|pipenv (?:install|sync)){_OPTION}",
        rf"(?:npm (?:ci|install|i)|yarn(?: install)?|pnpm (?:install|i)|bun install){_OPTION}",
        rf"(?:bundle install|composer install|mix deps\.get|dotnet restore|go mod download|cargo fetch){_OPTION}",
        rf"(?:mvn|\./mvnw){_OPTION} dependency:(?:go-offline|resolve){_OPTION}",
    )
)
"""What only installs. npm's own scripts of a package are run by it too: they are part of its manifest, which counts."""

_READS_NOTHING = re.compile(
    rf"{_PYTHON} -m venv{_OPTION}\s+\S+|uv venv{_OPTION}(?:\s+\S+)?|(?:\.|source) \S+/bin/activate"
)

_BUILT_IN_PLACE = re.compile(
    r".*\.(?:c|cc|cpp|cxx|h|hpp|pyx|pxd|rs|f|f90|go|swig|i)|(?:.*/)?(?:CMakeLists\.txt|meson\.build)"
)
"""Sources that installing a project in place compiles."""


def setup_files(commands: Sequence[str], paths: Iterable[str], declared: Sequence[str]) -> frozenset[str] | None:
    """The paths, of those given, that the result of these commands depends on; None: on every one.

    `declared` are the repository's own patterns, which are taken at their word, unless they match nothing.
    """
    known = frozenset(paths)
    if declared:
        return frozenset(path for path in known if any(fnmatchcase(path, pattern) for pattern in declared)) or None
    chosen = {path for path in known if is_dependency_file(path)}
    for command in commands:
        for part in re.split(r"&&|;|\n", command):
            more = _read_by(part.strip(), known)
            if more is None:
                return None
            chosen |= more
    return frozenset(chosen)


def _read_by(command: str, known: frozenset[str]) -> frozenset[str] | None:
    if not command:
        return frozenset()
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return None
    if _READS_NOTHING.fullmatch(command):
        return frozenset()
    plain = not re.search(r"[$`{}*?]", command) and not any(word.strip("();<>|&") == "" for word in words)
    if not plain or not any(installer.fullmatch(" ".join(words)) for installer in _INSTALLERS):
        return None
    named: set[str] = set()
    for word, before in zip(words, ["", *words], strict=False):
        editable = before in {"-e", "--editable"} or word.startswith(("--editable=", "-e.", "-e/"))
        place = word.partition("=")[2] if word.startswith("-") else word
        found = _editable(known) if editable else _at(place, known)
        if found is None:
            return None
        named |= found
    return frozenset(named)


def _editable(known: frozenset[str]) -> frozenset[str]:
    return frozenset(path for path in known if _BUILT_IN_PLACE.fullmatch(path))


def _at(word: str, known: frozenset[str]) -> frozenset[str] | None:
    """The file of that name; None when it is the project, or a directory of it, that is installed as it stands."""
    plain = re.sub(r"\[[^\]]*\]$", "", word).removeprefix("./").rstrip("/")
    if plain in {"", ".", ".."} and word:
        return None
    if plain in known:
        return frozenset({plain})
    return None if any(path.startswith(f"{plain}/") for path in known) else frozenset()
