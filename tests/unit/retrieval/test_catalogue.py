"""What is carried from tree to tree is what would be made of the last tree anew."""

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.retrieval.catalogue import NOTHING, Catalogue, made, packed, unpacked, updated
from bot.retrieval.files import File
from bot.retrieval.store import Document

PATHS = (
    "app/__init__.py",
    "app/rateLimits.py",
    os.fsdecode(b"caf\xe9.py"),
    "docs/guide.md",
    "tests/test_limits.py",
    "𝒳/é.js",
)
Files = dict[str, int]
"""Paths, and which content each has."""


def listed(files: Files) -> list[tuple[File, Document]]:
    return [
        (
            File(path, f"{content:040x}"),
            Document(content, "read", content + 1, 9, content % 5 == 0, content * 7, content),
        )
        for path, content in sorted(files.items())
    ]


def same(one: Catalogue, other: Catalogue) -> bool:
    return (
        one.paths.all() == other.paths.all()
        and one.facts.tobytes() == other.facts.tobytes()
        and np.array_equal(one.words.starts, other.words.starts)
        and np.array_equal(one.words.values, other.words.values)
    )


def test_packing_keeps_everything():
    held = updated(NOTHING, (), listed(dict.fromkeys(PATHS, 3)), tree="a" * 40)
    again = unpacked(packed(held))
    assert same(again, held)
    assert again.tree == "a" * 40
    assert same(unpacked(b""), NOTHING)


NAMES = st.sampled_from(
    [*PATHS, *(f"{folder}/m{n}.{end}" for folder in "abz" for n in range(4) for end in ("py", "go"))]
)
TREES = st.lists(st.dictionaries(NAMES, st.integers(1, 60)), min_size=1, max_size=6)


@given(TREES)
@settings(deadline=None)
def test_carried_over_any_edits_it_is_what_a_new_one_is(trees: list[Files]):
    held, before = NOTHING, Files()
    for number, files in enumerate(trees):
        put = {path: content for path, content in files.items() if before.get(path) != content}
        held = updated(unpacked(packed(held)), before.keys() - files.keys(), listed(put), tree=f"{number:040x}")
        assert same(held, made(listed(files)))
        before = files


def test_a_row_is_found_by_path_module_and_name():
    held = made(listed(dict.fromkeys(PATHS, 1)))
    assert [held.row(path) for path in held.paths] == list(range(len(PATHS)))
    assert held.row("app") is None
    assert held.row("zz") is None
    assert [held.paths[row] for row in held.by_stem("app")] == ["app/__init__.py"]
    assert [held.paths[row] for row in held.by_name("ratelimits.py")] == ["app/rateLimits.py"]
    assert held.by_name("rate.py") == []


def test_paths_are_found_by_their_words_and_the_rarer_word_counts_more():
    held = made(listed({"app/limits.py": 1, "app/mail.py": 1, "app/rates.py": 1}))
    scores = held.scores({"app": 1.0, "limit": 1.0}, np.ones(3, np.bool_))
    assert scores[0] > scores[1] == scores[2] > 0
