"""A context fits its budget, shows whole definitions, and is the same to the byte."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.retrieval.overview import BYTES_PER_TOKEN, overview
from bot.retrieval.service import context_of_folder, search_folder
from tests.unit.retrieval.test_index import PROJECT, put

QUERY = "The rate limiter forgets keys\n\nRateLimiter.allow returns False in app/views.py"


def many() -> dict[str, str | bytes]:
    bodies = {
        f"pkg/part_{n % 7}/mod_{n}.py": "".join(
            f"def rate_{n}_{i}(key):\n    limit = {i}\n    return key + limit\n\n\n" for i in range(30)
        )
        for n in range(40)
    }
    return {**PROJECT, **bodies}


def test_the_parts_that_matter_are_shown_with_line_numbers(tmp_path: Path):
    root = put(tmp_path / "tree", PROJECT)
    found = context_of_folder(tmp_path / "index.db", root, QUERY, 2000)
    assert "2     def allow(self, key):" in found.text
    assert any(part.path == "app/limits.py" for part in found.parts)
    assert "app/mail.py" in found.text


@pytest.mark.parametrize("tokens", [100, 700, 3000, 30_000])
def test_it_fits_the_budget(tmp_path: Path, tokens: int):
    root = put(tmp_path / "tree", many())
    found = context_of_folder(tmp_path / "index.db", root, QUERY, tokens)
    assert len(found.text.encode()) <= tokens * BYTES_PER_TOKEN
    lines = {part.path: (root / part.path).read_text().count("\n") + 1 for part in found.parts}
    assert all(1 <= part.first <= part.last <= lines[part.path] for part in found.parts)


def test_a_rebuilt_index_gives_the_same_bytes(tmp_path: Path):
    root = put(tmp_path / "tree", many())
    texts = {context_of_folder(tmp_path / f"{n}.db", root, QUERY, 4000).text for n in range(3)}
    assert len(texts) == 1


def test_an_index_that_grew_bit_by_bit_gives_the_same_bytes(tmp_path: Path):
    root = tmp_path / "tree"
    files = many()
    for start in range(0, len(files), 9):
        put(root, dict(list(files.items())[start : start + 9]))
        grown = context_of_folder(tmp_path / "grown.db", root, QUERY, 4000).text
    assert grown == context_of_folder(tmp_path / "fresh.db", root, QUERY, 4000).text


def test_other_processes_give_the_same_bytes(tmp_path: Path):
    root = put(tmp_path / "tree", many())
    here = hashlib.sha256(context_of_folder(tmp_path / "here.db", root, QUERY, 4000).text.encode()).hexdigest()
    program = (
        "import hashlib, sys; from pathlib import Path; from bot.retrieval.service import context_of_folder as c;"
        "print(hashlib.sha256(c(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], 4000).text.encode()).hexdigest())"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", program, str(tmp_path / f"{seed}.db"), str(root), QUERY]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == here


def test_a_file_that_is_gone_meanwhile_is_left_out(tmp_path: Path):
    root = put(tmp_path / "tree", PROJECT)
    assert search_folder(tmp_path / "index.db", root, QUERY)[0].path in {"app/limits.py", "app/views.py"}


def test_a_large_tree_is_shown_as_folders():
    paths = [f"a/b{n % 5}/c{n}.py" for n in range(2000)]
    shown = overview(paths, 100)
    assert "a/b1/ 400 files" in shown
    assert len(shown.encode()) <= 300
    assert overview(reversed(paths), 100) == shown
