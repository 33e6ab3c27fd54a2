"""The corpus itself: our copy is the shared one, and every case of the seams below has a test."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.attacks.conftest import CASES, cases_of, corpus, elsewhere

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_the_copy_is_the_shared_corpus_where_there_is_one():
    shared = HERE.parents[2] / "shared" / "cases" / "attacks.yaml"
    assert not shared.exists() or shared.read_bytes() == CASES.read_bytes()
    assert len(corpus()) > 150


def test_every_case_has_a_test():
    named: set[str] = set()
    for path in set(HERE.glob("test_*.py")) - {Path(__file__)}:
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                named |= set(cases_of(node.name))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
                named |= {case for case in corpus() if node.value.startswith(case)}
    for test, cases in elsewhere().items():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), test
        named |= set(cases)
    assert sorted(corpus().keys() - named) == []
