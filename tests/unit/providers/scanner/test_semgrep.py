import json
from typing import Any

import pytest

from bot.providers.scanner.port import ScanFailed
from bot.providers.scanner.semgrep import ROOT, Semgrep

SCANNER = Semgrep((("a.yml", b"rules: []"),), "/opt/semgrep/bin/semgrep")
BEFORE = {"app.py": b"import hashlib\nhashlib.md5(x)\n"}
AFTER = {
    "app.py": b"import hashlib\n\n\nhashlib.md5(x)\nhashlib.md5(x)\n",
    "tests/it's a test.py": b"ok\n",
    "LICENSE": b"x",
}


def report(
    *found: tuple[str, int], errors: list[dict[str, Any]] | None = None, scanned: list[str] | None = None
) -> bytes:
    results = [
        {"check_id": "rules.weak", "path": path, "start": {"line": line}, "extra": {"message": "Use sha256."}}
        for path, line in found
    ]
    every = ["after/00000-LICENSE", "after/00001.py", "after/00002.py", "before/00000.py"]
    return json.dumps(
        {"results": results, "errors": errors or [], "paths": {"scanned": every if scanned is None else scanned}}
    ).encode()


def test_files_are_scanned_under_numbers_so_that_no_name_hides_them():
    command = SCANNER.command(BEFORE, AFTER)
    names = [path for path, _ in command.files]
    assert names == [
        f"{ROOT}/rules/a.yml",
        f"{ROOT}/before/00000.py",
        f"{ROOT}/after/00000-LICENSE",
        f"{ROOT}/after/00001.py",
        f"{ROOT}/after/00002.py",
    ]
    assert "it's" not in command.command


def test_suppression_comments_and_the_network_are_switched_off():
    line = SCANNER.command({}, AFTER).command
    assert "--disable-nosem" in line
    assert "--metrics=off" in line
    assert "--disable-version-check" in line
    assert line.count("before") == 0


def test_only_what_the_change_adds_is_introduced_wherever_the_old_one_moved():
    found = report(("before/00000.py", 2), ("after/00001.py", 4), ("after/00001.py", 5))
    result = SCANNER.read(found, 0, BEFORE, AFTER)
    assert [finding.line for finding in result.after] == [4, 5]
    assert [(finding.path, finding.rule) for finding in result.introduced()] == [("app.py", "weak")]


@pytest.mark.parametrize("code", [2, 7, -9, 124])
def test_an_exit_that_means_no_finished_scan_fails(code: int):
    with pytest.raises(ScanFailed):
        SCANNER.read(report(), code, BEFORE, AFTER)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"results": []}'])
def test_an_unreadable_report_fails(data: bytes):
    with pytest.raises(ScanFailed):
        SCANNER.read(data, 0, BEFORE, AFTER)


def test_an_error_in_the_report_fails_and_a_warning_does_not():
    error = [{"level": "error", "message": "Rule parse error"}]
    with pytest.raises(ScanFailed, match="parse error"):
        SCANNER.read(report(errors=error), 0, BEFORE, AFTER)
    warning = [{"level": "warn", "message": "partly parsed"}]
    assert SCANNER.read(report(errors=warning), 0, BEFORE, AFTER).after == ()


def test_a_file_that_was_left_out_fails_the_scan():
    with pytest.raises(ScanFailed, match="left out 1"):
        SCANNER.read(report(scanned=["after/00000-LICENSE", "after/00001.py", "before/00000.py"]), 0, BEFORE, AFTER)
