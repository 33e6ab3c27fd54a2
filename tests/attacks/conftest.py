"""The tally of the attack corpus: one JSON object after everything else, also when tests run in several processes.

A test names its cases in its own name (`test_g01_g02_…`), in its class (`TestT01Images`) or in a parameter's id (`O06-new-host`);
`control` notes the positive control. Cases whose tests belong to another room are listed in `elsewhere.txt`, which `make attacks` runs
too. Only what ran counts: a case whose test failed is a hit, one that no test named is `untried`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("cases.yaml")
_CASE = re.compile(r'- \{id: (\w+), seam: (\w+), case: ("(?:[^"\\]|\\.)*"), expect: (.+)\}')
_IN_NAME = re.compile(r"_([a-z]\d\d)(?=_|$)")
_IN_CLASS = re.compile(r"(?:^|::)Test([A-Z]\d\d)(?=[A-Z_:]|$)")
_IN_PARAMETER = re.compile(r"(?<![A-Za-z0-9])([A-Z]\d\d)(?![A-Za-z0-9])")

ELSEWHERE = Path(__file__).with_name("elsewhere.txt")

Control = Callable[[object, str], None]


@cache
def corpus() -> dict[str, str]:
    """Case → seam, with the sandbox's probes."""
    cases = {found[1]: found[2] for found in map(_CASE.match, CASES.read_text("utf-8").splitlines()) if found}
    return cases | {f"P{number:02}": "sbx" for number in range(1, 57)}


def elsewhere() -> dict[str, list[str]]:
    """Test → the cases it tries, for tests outside this folder."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in ELSEWHERE.read_text("utf-8").splitlines():
        case, _, test = line.partition(" ")
        found[test].append(case)
    return found


def cases_of(item: str) -> list[str]:
    """The cases that a test's id names; the file's part of the id says nothing."""
    path, _, parameters = item.partition("[")
    if path in _ELSEWHERE:
        return _ELSEWHERE[path]
    where, _, name = path.rpartition("::")
    named = [found.upper() for found in _IN_NAME.findall(name)]
    return named + _IN_CLASS.findall(f"{where}::{name}") + _IN_PARAMETER.findall(parameters)


_ELSEWHERE = elsewhere()


@pytest.fixture
def control(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Control:
    """Say that without the defence the attack works here; a control that fails makes the case prove nothing."""

    def note(worked: object, what: str) -> None:
        assert worked, f"the control did not work: {what}"
        record_property("control", what)

    return note


class Tally:
    """Collects reports, in the process that prints."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.controlled: set[str] = set()
        self.hits: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cases = cases_of(report.nodeid)
        if report.when == "call":
            self.seen |= set(cases)
            if report.passed and any(name == "control" for name, _ in report.user_properties):
                self.controlled |= set(cases)
        if report.failed and (cases or report.nodeid.startswith("tests/attacks/")):
            self.hits |= dict.fromkeys(cases or [report.nodeid], report.nodeid)

    def told(self) -> dict[str, object]:
        known = corpus()
        seams: dict[str, dict[str, int]] = defaultdict(lambda: {"of": 0, "cases": 0, "controls": 0, "hits": 0})
        for case, seam in known.items():
            row = seams[seam]
            row["of"] += 1
            row["cases"] += case in self.seen
            row["controls"] += case in self.controlled
            row["hits"] += case in self.hits
        seen = known.keys() & self.seen
        return {
            "cases": len(seen),
            "controls": len(known.keys() & self.controlled),
            "hits": len(self.hits),
            "by_seam": dict(seams),
            "without_control": sorted(seen - self.controlled),
            "untried": sorted(known.keys() - self.seen),
            "hit_by": self.hits,
        }


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Tally(), "attack-tally")


def pytest_unconfigure(config: pytest.Config) -> None:
    tally = config.pluginmanager.get_plugin("attack-tally")
    if isinstance(tally, Tally) and tally.seen:
        print(json.dumps(tally.told()), flush=True)
