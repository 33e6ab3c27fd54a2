"""Semgrep as the scanner. It runs inside the sandbox, from an environment of its own, without network (D10).

Suppression comments are not obeyed (`--disable-nosem`): whether one may be added is a rule of `stages/verifying`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.domain.verdict import Finding
from bot.providers.scanner.port import ScanCommand, ScanFailed, ScanResult

ROOT = "/home/user/.pullwright/scan"
_FINISHED = frozenset({0, 1})
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class _Place(BaseModel):
    model_config = ConfigDict(extra="ignore")
    line: int


class _Extra(BaseModel):
    model_config = ConfigDict(extra="ignore")
    message: str = ""


class _Result(BaseModel):
    model_config = ConfigDict(extra="ignore")
    check_id: str
    path: str
    start: _Place
    extra: _Extra


class _Error(BaseModel):
    model_config = ConfigDict(extra="ignore")
    level: str = "error"
    message: str = ""
    path: str | None = None


class _Paths(BaseModel):
    model_config = ConfigDict(extra="ignore")
    scanned: list[str]


class _Report(BaseModel):
    model_config = ConfigDict(extra="ignore")
    results: list[_Result]
    paths: _Paths
    errors: list[_Error] = []


class Semgrep:
    """Builds the command for one rule set and reads its JSON report.

    `--experimental` is Semgrep's own native command line: the same rules and engine, about ten times quicker to start.
    """

    def __init__(self, rules: tuple[tuple[str, bytes], ...], executable: str = "semgrep") -> None:
        self._rules = rules
        self._executable = executable

    @classmethod
    def from_directory(cls, directory: Path, executable: str = "semgrep") -> Semgrep:
        """Every *.yml of the directory is a rule file."""
        files = sorted(directory.glob("*.yml"))
        return cls(tuple((file.name, file.read_bytes()) for file in files), executable)

    def command(self, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> ScanCommand:
        files = [(f"{ROOT}/rules/{name}", data) for name, data in self._rules]
        for side, contents in (("before", before), ("after", after)):
            files += [(f"{ROOT}/{name}", contents[path]) for name, path in _names(side, contents).items()]
        arguments = [
            self._executable,
            "scan",
            "--experimental",
            "--metrics=off",
            "--disable-version-check",
            "--disable-nosem",
            "--no-git-ignore",
            "--scan-unknown-extensions",
            "--max-target-bytes=6000000",
            "--timeout=30",
            "--jobs=1",
            "--json",
            "--quiet",
            "--config=rules",
            *(side for side, contents in (("before", before), ("after", after)) if contents),
        ]
        line = " ".join(shlex.quote(part) for part in arguments)
        command = f"cd {ROOT} && SEMGREP_SETTINGS_FILE={ROOT}/settings.yml {line} > report.json"
        return ScanCommand(command, tuple(files), f"{ROOT}/report.json")

    def read(
        self, report: bytes, exit_code: int, before: Mapping[str, bytes], after: Mapping[str, bytes]
    ) -> ScanResult:
        if exit_code not in _FINISHED:
            raise ScanFailed(f"Semgrep ended with {exit_code}")
        try:
            parsed = _Report.model_validate(json.loads(report))
        except (ValueError, ValidationError) as error:
            raise ScanFailed(f"Semgrep's report cannot be read: {str(error)[:200]}") from error
        fatal = [error.message for error in parsed.errors if error.level == "error"]
        if fatal:
            raise ScanFailed(f"Semgrep did not finish: {fatal[0][:300]}")
        missing = {*_names("before", before), *_names("after", after)} - set(parsed.paths.scanned)
        if missing:
            raise ScanFailed(f"Semgrep left out {len(missing)} of the files it was given")
        return ScanResult(_findings(parsed, "before", before), _findings(parsed, "after", after))


def _names(side: str, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Scan name → path. Numbers instead of the repository's names: Semgrep skips `tests/`, `vendor/` and more by name."""
    named = {}
    for number, path in enumerate(sorted(contents)):
        base = path.rsplit("/", 1)[-1]
        ending = f".{base.rsplit('.', 1)[-1]}" if "." in base else f"-{base}"
        named[f"{side}/{number:05d}{_UNSAFE.sub('_', ending)}"] = path
    return named


def _findings(report: _Report, side: str, contents: Mapping[str, bytes]) -> tuple[Finding, ...]:
    names = _names(side, contents)
    seen: Counter[str] = Counter()
    found = []
    mine = [result for result in report.results if result.path in names]
    for result in sorted(mine, key=lambda result: (names[result.path], result.start.line, result.check_id)):
        path = names[result.path]
        rule = result.check_id.removeprefix("rules.")
        lines = contents[path].split(b"\n")
        text = lines[result.start.line - 1].strip() if result.start.line <= len(lines) else b""
        basis = hashlib.sha256(b"\0".join((rule.encode(), path.encode(), text))).hexdigest()
        seen[basis] += 1
        found.append(
            Finding(rule, path, result.start.line, result.extra.message.strip(), f"{basis[:24]}:{seen[basis]}")
        )
    return tuple(found)
