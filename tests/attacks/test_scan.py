"""Tests are the change's own: they must not be able to reach for the scan that judges it."""

from __future__ import annotations

from pathlib import Path

from bot.custody.mirror import Mirror
from bot.custody.workbench import BenchSettings, Workbench
from bot.domain.change import Change
from bot.domain.ids import RepositoryId
from bot.domain.repository import RepositorySettings
from bot.domain.verdict import TestReport, Verdict
from bot.providers.sandbox.e2b import E2BSandboxes
from bot.providers.sandbox.port import Sandbox
from bot.providers.scanner.semgrep import ROOT, Semgrep
from bot.sandboxd.serve import Config, running
from bot.stages.verifying.run import Checks, Verifier
from tests.attacks.conftest import Control
from tests.contracts.sandbox_server import KEY
from tests.unit.custody.local import Clone

RULES = Path(__file__).parents[2] / "policies" / "semgrep"
FORGES = f"""
mkdir -p {ROOT}
(while :; do for rules in {ROOT}/rules/*.yml; do
   grep -q never "$rules" || sed -i 's/pattern: .*/pattern: never_called(1)/; s/regex: .*/regex: never/' "$rules"
 done; sleep 0.02; done) >/dev/null 2>&1 &
for _ in $(seq 50); do [ -d {ROOT}/rules ] && break; sleep 0.1; done
for _ in $(seq 1200); do [ -d {ROOT}/rules ] && [ ! -s {ROOT}/report.json ] || break; sleep 0.1; done
kill %1; true
"""
"""Rewrites the scan's rules while they are written, until the scan has reported; five seconds where there is none to be seen."""


async def test_what_the_changes_own_tests_do_never_touches_the_scan(tmp_path: Path, control: Control) -> None:
    clone, mirror = Clone(tmp_path / "clone"), Mirror(tmp_path / "mirrors", RepositoryId(3))
    base = await mirror.from_directory(clone.path, clone.commit({"app.py": "print(1)\n"}))
    head = await mirror.from_directory(clone.path, clone.commit({"app.py": "eval(input())\n"}))
    old, new = await mirror.tree_of(base), await mirror.tree_of(head)
    change = Change(base, old, new, await mirror.diff(old, new))
    checks = Checks(RepositorySettings(test=FORGES), TestReport(FORGES, 0, 1.0, ()))
    verifier = Verifier(mirror, Semgrep.from_directory(RULES, "/opt/semgrep/bin/semgrep"), checks)
    async with running(Config(tmp_path / "home", KEY)) as end:
        sandboxes = E2BSandboxes(end.api_key, end.api_url, end.sandbox_url)
        bench = Workbench(sandboxes, mirror, base, BenchSettings("pullwright", {"attack": "scan"}))

        async def in_one(sandbox: Sandbox) -> Verdict:
            return await verifier.check(sandbox, change)

        try:
            together = await bench.act(new, in_one)
            control(not together.findings, "in one sandbox with the tests the scan finds nothing")
            bench.disturbed()
            verdict, proof = await verifier.verify(bench, change)
        finally:
            await bench.close()
    assert [finding.rule for finding in verdict.findings] == ["python-eval"]
    assert proof is None
