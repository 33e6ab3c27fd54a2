"""Postings survive packing, cutting into buckets and merging."""

import random

import numpy as np
import pytest

from bot.retrieval.postings import Inverted, bits_for, buckets, inverted, joined, merged, summed

Counts = dict[tuple[int, int], int]


def some(documents: int, seed: int) -> tuple[Inverted, Counts]:
    chance = random.Random(seed)
    counts: Counts = {}
    triples = []
    for _ in range(documents * 30):
        term, document, times = (
            chance.randrange(1 << 32) >> 24 << 24,
            chance.randrange(documents),
            chance.randrange(1, 200),
        )
        counts[term, document] = counts.get((term, document), 0) + times
        triples.append((term, document, times))
    columns = [np.array(column) for column in zip(*triples, strict=True)]
    return inverted(columns[0].astype(np.uint32), columns[1], columns[2]), counts


def listed(found: Inverted) -> Counts:
    owner = np.repeat(found.hashes, np.diff(found.starts)).tolist()
    return dict(zip(zip(owner, found.documents.tolist(), strict=True), found.frequencies.tolist(), strict=True))


@pytest.mark.parametrize("bits", [0, 1, 7])
def test_buckets_hold_everything_in_order(bits: int):
    found, counts = some(50, 1)
    assert listed(found) == {pair: min(255, times) for pair, times in counts.items()}
    cut = dict(buckets(found, bits))
    assert list(cut) == sorted(cut)
    assert listed(joined(cut.values())) == listed(found)


def test_merging_shifts_documents_and_keeps_terms_ascending():
    one, other = some(20, 2)[0], some(30, 3)[0]
    whole = merged([(0, one), (20, other)])
    shifted = {(term, document + 20): times for (term, document), times in listed(other).items()}
    assert listed(whole) == listed(one) | shifted
    assert (np.diff(whole.hashes.astype(np.int64)) > 0).all()


def test_nothing_is_a_segment_too():
    nothing = inverted(np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert list(buckets(nothing, bits_for(0))) == []
    assert listed(merged([(0, nothing), (5, nothing)])) == {}


@pytest.mark.parametrize("scale", [1, 1 << 40])
def test_counts_of_a_key_are_added_up_however_large_they_are(scale: int):
    keys, sums = summed(np.array([7, 3 * scale, 7, 0]), np.array([scale, 2, 3, 4]))
    assert (keys.tolist(), sums.tolist()) == (
        [0, *sorted((3 * scale, 7))],
        [4, *([2, scale + 3] if scale == 1 else [scale + 3, 2])],
    )
