"""`tests/reports.toml` names tests that are there, and every id of the list has one."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE: dict[str, dict[str, list[str]]] = tomllib.loads((TESTS / "reports.toml").read_text("utf-8"))
IDS = [
    "E1",
    "E2",
    "E4",
    "E5",
    "E7",
    "E8",
    "E10",
    "E11",
    "E13",
    "E14",
    "E16",
    "R1",
    "R3",
    "R5",
    "R7",
    "R8",
    "R10",
    "R11",
    "R12",
    "R13",
    "D1",
    "D3",
    "D4",
    "D8",
    "D9",
    "D10",
    "A1",
    "A2",
    "A4",
    "A6",
    "M2",
    "M4",
    "M5",
    "M6",
    "M7",
    "M9",
]
NAMED = [(key, test) for section in TABLE.values() for key, tests in section.items() for test in tests]


def test_every_reported_fault_has_a_test():
    known = {key for section, faults in TABLE.items() if section != "also" for key in faults}
    assert known == set(IDS)
    assert all(tests for section in TABLE.values() for tests in section.values())


@pytest.mark.parametrize(("key", "test"), NAMED)
def test_a_named_test_is_there(key: str, test: str):
    path, _, name = test.partition("::")
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in names, key
