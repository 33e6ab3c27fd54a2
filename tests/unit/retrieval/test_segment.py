"""A batch of sources becomes the rows that each of them would become alone."""

import json
from pathlib import Path

from bot.retrieval.definition import Definition
from bot.retrieval.segment import Source, build, pack_outline, unpack_outline

TEXTS = {
    "python": "import os\n\nclass Reader:\n    limit = 3\n\n    def read(self):\n        '''Reads.'''\n",
    "c": "#define LIMIT 3\n/* Adds. */\nint add(int a, int b)\n{\n  return a + b;\n}\n",
    "markdown": "# Title\n\nText of it.\n",
    "": "no language",
}


def sources() -> list[Source]:
    return [
        Source(f"{language}{copy}", language, text.encode() * copy)
        for copy in (1, 40)
        for language, text in TEXTS.items()
    ]


def test_files_of_a_batch_are_as_they_are_alone():
    together = build(sources())
    assert together.rows == tuple(build([source]).rows[0] for source in sources())


def test_a_batch_too_large_for_one_group_keeps_its_order():
    filling = b'"""' + b"nothing to see here\n" * 20_000 + b'"""\n'
    large = [Source(f"{number}", "python", f"def f{number}(): pass\n".encode() + filling) for number in range(6)]
    assert [row.oid for row in build(large).rows] == [source.oid for source in large]
    assert [row.names for row in build(large).rows] == [build([source]).rows[0].names for source in large]


def test_a_file_that_is_gone_costs_only_itself(tmp_path: Path):
    good = sources()
    rows = build([good[0], Source("gone", "python", size=10, path=str(tmp_path / "gone.py")), *good[1:]]).rows
    assert rows == build(good).rows


def test_an_outline_is_json_and_comes_back():
    definitions = (
        Definition("a", "function", 1, 2, "def a(x=\"\\n\", y='é')", "Says \t\x01 “so”.", 'in "quotes"'),
        Definition("b", "field", 3, 3, "", "", ""),
    )
    assert json.loads(pack_outline(definitions)) == [list(one) for one in definitions]
    assert unpack_outline(pack_outline(definitions)) == definitions
    assert unpack_outline(pack_outline(())) == ()
