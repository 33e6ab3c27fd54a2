"""The scanner role: what to run in the sandbox to scan a tree, and how to read what it printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bot.domain.verdict import Finding


class ScanFailed(Exception):  # noqa: N818 - the scan's own fault, never "no findings"
    """The scanner did not finish or printed something unreadable; nothing may pass on such a scan."""


@dataclass(frozen=True, slots=True)
class ScanCommand:
    """A bash command for the sandbox, and files it needs first: (path, bytes)."""

    command: str
    files: tuple[tuple[str, bytes], ...]
    report_path: str


class Scanner(Protocol):
    """Pure on both sides of the sandbox: builds the command, reads the report."""

    def command(self, paths: tuple[str, ...]) -> ScanCommand:
        """Scan these paths of the work tree (relative), with the operator's rules, offline."""
        ...

    def read(self, report: bytes, exit_code: int) -> tuple[Finding, ...]:
        """Raises ScanFailed on an exit code or report that does not mean a finished scan."""
        ...
