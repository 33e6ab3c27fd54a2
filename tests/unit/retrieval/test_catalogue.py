"""What is kept of paths is what would be made of them anew."""

import os

import numpy as np

from bot.retrieval.catalogue import Catalogue, made, packed, unpacked, updated

PATHS = ("app/__init__.py", "app/rateLimits.py", "docs/guide.md", os.fsdecode(b"caf\xe9.py"), "tests/test_limits.py")


def same(one: Catalogue, other: Catalogue) -> bool:
    arrays = ((one.kinds, other.kinds), (one.starts, other.starts), (one.hashes, other.hashes))
    return (one.paths, one.stems) == (other.paths, other.stems) and all(np.array_equal(a, b) for a, b in arrays)


def test_packing_keeps_everything():
    assert same(unpacked(packed(made(PATHS))), made(PATHS))
    assert same(unpacked(b""), made(()))


def test_added_moved_and_gone_paths_give_what_a_new_catalogue_has():
    held = unpacked(packed(made(PATHS)))
    for paths in (PATHS, PATHS[1:], ("a/b.py", *PATHS[2:], "z/new_file.go"), ()):
        assert same(updated(held, paths), made(paths))


def test_paths_are_found_by_their_words_and_the_rarer_word_counts_more():
    held = made(("app/limits.py", "app/rates.py", "app/mail.py"))
    scores = held.scores({"app": 1.0, "limit": 1.0}, np.ones(3, np.bool_))
    assert scores[0] > scores[1] == scores[2] > 0
