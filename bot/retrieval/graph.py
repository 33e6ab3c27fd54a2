"""The graph of the files near a task: imports, names used and defined, tests and their code; personalised PageRank on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bot.retrieval.catalogue import Floats, module_of
from bot.retrieval.chunks import Chunks
from bot.retrieval.kinds import Kind
from bot.retrieval.languages import language_of
from bot.retrieval.postings import Hashes, Ints, matched, places, summed
from bot.retrieval.ragged import Ragged, starts_of
from bot.retrieval.segment import Joints
from bot.retrieval.view import View

DAMPING = 0.5
ROUNDS = 12
SEEDS = 50
BACKWARDS = 0.3
"""Weight of an edge against its direction: from what is used to what uses it."""
_MOST_DEFINERS = 4
_TEST_MARK = re.compile(r"^tests?_|_tests?$|\.(?:test|spec)$|Tests?$|_spec$", re.IGNORECASE)

Matrix = npt.NDArray[np.float64]


def imported(view: View, item: int, joints: Joints) -> list[int]:
    """Items that this one imports; nothing for an import that is ambiguous or from outside."""
    path = view.paths[item]
    folder, language = path.rpartition("/")[0], language_of(path)
    found: dict[int, None] = {}
    for written in joints.imports:
        found.update(dict.fromkeys(view.imported(folder, written, language)))
    return [other for other in found if other != item]


def walk(view: View, pool: Sequence[int], joints: Mapping[int, Joints], passages: Mapping[int, Chunks]) -> Matrix:
    """Chances of a step from each item of the pool to what it imports, tests or uses by name; back, too, but less."""
    edges = _import_edges(view, pool, joints) + _by_row(_name_edges(pool, joints, passages))
    return _by_row(edges + BACKWARDS * _by_row(edges.T))


def spread(walk: Matrix, seeds: Floats) -> Floats:
    """What reaches each item by such steps, given how likely each is by itself (any non-negative numbers)."""
    restart = np.zeros(len(seeds))
    strongest = np.argsort(-seeds, kind="stable")[:SEEDS]
    restart[strongest] = seeds[strongest]
    restart /= max(float(restart.sum()), 1e-12)
    rank = restart
    for _ in range(ROUNDS):
        rank = (1 - DAMPING) * restart + DAMPING * (rank @ walk)
    reached: Floats = rank - (1 - DAMPING) * restart
    return reached


def _by_row(matrix: Matrix) -> Matrix:
    sums = matrix.sum(1, keepdims=True)
    shares: Matrix = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0)
    return shares


def _import_edges(view: View, pool: Sequence[int], joints: Mapping[int, Joints]) -> Matrix:
    place = {item: number for number, item in enumerate(pool)}
    edges = np.zeros((len(pool), len(pool)))
    for item in pool:
        for other in imported(view, item, joints[item]) + _tested(view, item):
            if other in place:
                edges[place[item], place[other]] = 1.0
    return _by_row(edges)


def _tested(view: View, item: int) -> list[int]:
    """The code that a test is named after."""
    if view.kind(item) is not Kind.TEST:
        return []
    name = _TEST_MARK.sub("", module_of(view.paths[item]).rsplit("/", 1)[-1])
    items = [other for other in view.catalogue.by_stem(name) if view.kind(other) is Kind.CODE]
    return items if len(items) <= 3 else []


def _name_edges(pool: Sequence[int], joints: Mapping[int, Joints], passages: Mapping[int, Chunks]) -> Matrix:
    """Names that one file uses and at most four of the pool define; the rarer among the pool, the stronger."""
    size = len(pool)
    names, definers = _by_term([joints[item].names for item in pool])
    few = np.flatnonzero(definers.lengths <= _MOST_DEFINERS)
    if not len(few):
        return np.zeros((size, size))
    asked = names[few]
    users, terms, times = _uses([passages[item] for item in pool], asked)
    having = np.bincount(terms, minlength=len(few))
    strength = np.log1p((size - having + 0.5) / (having + 0.5)) / definers.lengths[few]
    use, at = places(definers.starts, few[terms])
    gained = (np.sqrt(times) * strength[terms])[use]
    weights = np.bincount(users[use] * size + definers.values[at], gained, size * size)
    edges = weights.astype(np.float64).reshape(size, size)
    np.fill_diagonal(edges, 0.0)
    return edges


def _by_term(held: Sequence[Hashes]) -> tuple[Hashes, Ragged]:
    """Distinct terms, ascending, and for each the places in `held` that have it."""
    owner = np.repeat(np.arange(len(held)), [len(one) for one in held])
    terms = np.concatenate(held)
    order = np.argsort(terms, kind="stable")
    names, counts = np.unique(terms, return_counts=True)
    return names, Ragged(starts_of(counts), owner[order])


def _uses(held: Sequence[Chunks], asked: Hashes) -> tuple[Ints, Ints, Ints]:
    """Which file uses which of the asked terms (ascending), and how often."""
    sizes = [len(one.hashes) for one in held]
    hit, term = matched(np.concatenate([one.hashes for one in held]), asked)
    user = np.repeat(np.arange(len(held)), sizes)[hit]
    keys, sums = summed(
        user * len(asked) + term, np.concatenate([one.frequencies for one in held])[hit].astype(np.int64)
    )
    return keys // len(asked), keys % len(asked), sums
