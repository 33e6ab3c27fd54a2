"""What a repository says about itself: `.github/pullwright.toml`, and the test command its files suggest."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bot.domain.repository import SETTINGS_PATH, LandingMode, RepositorySettings

_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True)
class SettingsFault:
    """Why the file does not hold. `message` is whole sentences for a comment; `line` counts from 1, `key` may be empty."""

    message: str
    line: int | None = None
    key: str = ""


Command = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4000, pattern=r"^[^\x00]*$")]


class _File(BaseModel):
    """The keys the file may have; the same names and defaults as `RepositorySettings`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    setup: list[Command] = Field(default=[], max_length=20)
    setup_files: list[Annotated[str, StringConstraints(min_length=1, max_length=400)]] = Field(
        default=[], max_length=50
    )
    test: Command | None = None
    step_test: Command | None = None
    lint: Command | None = None
    proof: Command | None = None
    test_timeout_seconds: int = Field(default=900, ge=10, le=7200)
    plan_gate: bool = False
    landing: LandingMode = Field(default=LandingMode.READY, strict=False)
    template: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$")] | None = None


def parse_settings(data: bytes) -> RepositorySettings | SettingsFault:
    """The settings in these bytes of `.github/pullwright.toml`, or what is wrong with them."""
    try:
        text = data.decode("utf-8")
        given = tomllib.loads(text)
    except UnicodeDecodeError:
        return SettingsFault(f"`{SETTINGS_PATH}` is not UTF-8.")
    except tomllib.TOMLDecodeError as error:
        found = _LINE.search(str(error))
        return SettingsFault(f"`{SETTINGS_PATH}` is not TOML: {error}.", int(found[1]) if found else None)
    except RecursionError:
        return SettingsFault(f"`{SETTINGS_PATH}` is nested too deep.")
    if isinstance(given.get("setup"), str):
        given["setup"] = [given["setup"]]
    try:
        file = _File.model_validate(given)
    except ValidationError as error:
        return _fault(error, text)
    return RepositorySettings(
        setup=tuple(file.setup),
        setup_files=tuple(file.setup_files),
        test=file.test,
        step_test=file.step_test,
        lint=file.lint,
        proof=file.proof,
        test_timeout_seconds=file.test_timeout_seconds,
        plan_gate=file.plan_gate,
        landing=file.landing,
        template=file.template,
    )


def _fault(error: ValidationError, text: str) -> SettingsFault:
    first = error.errors(include_url=False, include_context=False)[0]
    key = str(first["loc"][0]) if first["loc"] else ""
    line = _line_of(key, text)
    where = f"`{SETTINGS_PATH}`" + (f", line {line}" if line else "")
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(_File.model_fields))
        return SettingsFault(f"{where}: there is no setting `{_shown(key)}`. The settings are {known}.", line, key)
    return SettingsFault(f"{where}: `{_shown(key)}`: {first['msg']}.", line, key)


def _line_of(key: str, text: str) -> int | None:
    form = re.compile(rf"""\s*\[{{0,2}}\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), start=1) if form.match(line)), None)


def _shown(key: str) -> str:
    return re.sub(r"[^\w .-]", "?", key)[:60]


def default_test_command(paths: Iterable[str]) -> str | None:
    """The command that usually runs the tests of a repository with these files; None when nothing suggests one."""
    names = frozenset(paths)
    root = frozenset(path for path in names if "/" not in path)
    if _has_python_tests(names, root):
        return "python -m pytest -q"
    for marks, command in _BY_ROOT_FILE:
        if root & marks:
            return command
    return "dotnet test" if any(name.endswith((".sln", ".csproj")) for name in root) else None


_BY_ROOT_FILE: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"go.mod", "go.work"}), "go test ./..."),
    (frozenset({"Cargo.toml"}), "cargo test"),
    (frozenset({"pnpm-lock.yaml"}), "pnpm test"),
    (frozenset({"yarn.lock"}), "yarn test"),
    (frozenset({"bun.lockb", "bun.lock"}), "bun test"),
    (frozenset({"deno.json", "deno.jsonc"}), "deno test"),
    (frozenset({"package.json"}), "npm test"),
    (frozenset({"mvnw"}), "./mvnw -q test"),
    (frozenset({"pom.xml"}), "mvn -q test"),
    (frozenset({"gradlew"}), "./gradlew test"),
    (frozenset({"build.gradle", "build.gradle.kts"}), "gradle test"),
    (frozenset({"mix.exs"}), "mix test"),
    (frozenset({".rspec"}), "bundle exec rspec"),
    (frozenset({"Rakefile"}), "bundle exec rake test"),
    (frozenset({"phpunit.xml", "phpunit.xml.dist"}), "vendor/bin/phpunit"),
    (frozenset({"Package.swift"}), "swift test"),
    (frozenset({"build.sbt"}), "sbt test"),
)

_PYTHON_ROOT = frozenset(
    {
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "pytest.ini",
        "conftest.py",
        "requirements.txt",
        "noxfile.py",
    }
)
_PYTHON_TEST = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?)\.py$|(?:^|/)tests?/[^/]+\.py$")


def _has_python_tests(names: frozenset[str], root: frozenset[str]) -> bool:
    if root & {"pytest.ini", "conftest.py"}:
        return True
    others = any(root & marks for marks, _ in _BY_ROOT_FILE)
    tests = any(_PYTHON_TEST.search(name) for name in names)
    return tests and (bool(root & _PYTHON_ROOT) or not others)
