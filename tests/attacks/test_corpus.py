"""The corpus itself: our copy is the shared one, and every case of the seams below has a test."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.attacks.conftest import CASES, cases_of, corpus

HERE = Path(__file__).parent
SEAMS = {"git", "imp", "sbx", "net"}


def test_the_copy_is_the_shared_corpus_where_there_is_one():
    shared = HERE.parents[2] / "shared" / "cases" / "attacks.yaml"
    assert not shared.exists() or shared.read_bytes() == CASES.read_bytes()
    assert len(corpus()) > 150


def test_every_case_of_git_importer_sandbox_and_network_has_a_test():
    named: set[str] = set()
    for path in HERE.glob("test_*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named |= set(cases_of(node.name))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
                named |= {case for case in corpus() if node.value.startswith(case)}
    wanted = {case for case, seam in corpus().items() if seam in SEAMS}
    assert sorted(wanted - named) == []
