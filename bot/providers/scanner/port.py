"""The scanner role: what to run in the sandbox to scan files, and how to read what it printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bot.domain.verdict import Finding


class ScanFailed(Exception):  # noqa: N818 - the scan's own fault, never "no findings"
    """The scanner did not finish or printed something unreadable; nothing may pass on such a scan."""


@dataclass(frozen=True, slots=True)
class ScanCommand:
    """A bash command for the sandbox, the files it needs first as (path, bytes), and where it leaves its report."""

    command: str
    files: tuple[tuple[str, bytes], ...]
    report_path: str


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Findings before and after, each sorted by path and line."""

    before: tuple[Finding, ...]
    after: tuple[Finding, ...]

    def introduced(self) -> tuple[Finding, ...]:
        """Findings of `after` whose fingerprint `before` does not have."""
        known = {finding.fingerprint for finding in self.before}
        return tuple(finding for finding in self.after if finding.fingerprint not in known)


class Scanner(Protocol):
    """Pure on both sides of the sandbox: builds the command, reads the report."""

    def command(self, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> ScanCommand:
        """Scan these contents by path, both sides in one run, with the operator's rules, offline."""
        ...

    def read(
        self, report: bytes, exit_code: int, before: Mapping[str, bytes], after: Mapping[str, bytes]
    ) -> ScanResult:
        """Raises ScanFailed on an exit code or report that does not mean a finished scan of every path."""
        ...
