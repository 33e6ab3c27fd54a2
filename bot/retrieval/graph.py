"""The graph of the files near a task: imports, names used and defined, tests and their code; personalised PageRank on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bot.retrieval import imports
from bot.retrieval.catalogue import Floats, module_of
from bot.retrieval.chunks import Chunks
from bot.retrieval.kinds import Kind
from bot.retrieval.segment import Outline
from bot.retrieval.view import View, idf
from bot.retrieval.words import hash_of, whole

DAMPING = 0.5
ROUNDS = 12
SEEDS = 50
BACKWARDS = 0.3
"""Weight of an edge against its direction: from what is used to what uses it."""
_MOST_DEFINERS = 4
_TEST_MARK = re.compile(r"^tests?_|_tests?$|\.(?:test|spec)$|Tests?$|_spec$", re.IGNORECASE)

Matrix = npt.NDArray[np.float64]


def imported(view: View, item: int, outline: Outline) -> list[int]:
    """Items that this one imports; nothing for an import that is ambiguous or from outside."""
    path, language = view.items[item].path, view.items[item].language
    found: dict[int, None] = {}
    for written in outline.imports:
        for module in imports.meant(path, written, language):
            items = view.modules(module) if module else []
            if 0 < len(items) <= 3:
                found.update(dict.fromkeys(other for other in items if other != item))
                break
    return list(found)


def spread(
    view: View, pool: Sequence[int], outlines: Mapping[int, Outline], passages: Mapping[int, Chunks], seeds: Floats
) -> Floats:
    """What reaches each item of the pool over its edges, given how likely each is by itself (any non-negative numbers)."""
    edges = _import_edges(view, pool, outlines) + _by_row(_name_edges(pool, outlines, passages))
    both = edges + BACKWARDS * (_by_row(edges.T))
    walk = _by_row(both)
    restart = np.zeros(len(pool))
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


def _import_edges(view: View, pool: Sequence[int], outlines: Mapping[int, Outline]) -> Matrix:
    place = {item: number for number, item in enumerate(pool)}
    edges = np.zeros((len(pool), len(pool)))
    for item in pool:
        for other in imported(view, item, outlines[item]) + _tested(view, item):
            if other in place:
                edges[place[item], place[other]] = 1.0
    return _by_row(edges)


def _tested(view: View, item: int) -> list[int]:
    """The code that a test is named after."""
    if view.items[item].kind is not Kind.TEST:
        return []
    name = _TEST_MARK.sub("", module_of(view.items[item].path).rsplit("/", 1)[-1])
    items = [other for other in view.catalogue.by_stem(name) if view.items[other].kind is Kind.CODE]
    return items if len(items) <= 3 else []


def _name_edges(pool: Sequence[int], outlines: Mapping[int, Outline], passages: Mapping[int, Chunks]) -> Matrix:
    """Names that one file uses and at most four of the pool define; the rarer among the pool, the stronger."""
    definers: dict[int, list[int]] = {}
    for number, item in enumerate(pool):
        names = {definition.name for definition in outlines[item].definitions if len(definition.name) > 3}
        for hashed in sorted({hash_of(whole(name)) for name in names}):
            definers.setdefault(hashed, []).append(number)
    asked = np.array(sorted(hashed for hashed, items in definers.items() if len(items) <= _MOST_DEFINERS), np.uint32)
    edges = np.zeros((len(pool), len(pool)))
    if not len(asked):
        return edges
    uses = np.zeros((len(pool), len(asked)))
    for number, item in enumerate(pool):
        held = passages[item]
        at = np.searchsorted(asked, held.hashes)
        at[at == len(asked)] = 0
        hit = asked[at] == held.hashes
        uses[number] = np.sqrt(np.bincount(at[hit], held.frequencies[hit], len(asked)))
    having = (uses > 0).sum(0)
    strength = np.array([idf(len(pool), int(count)) for count in having])
    place = {hashed: row for row, hashed in enumerate(asked.tolist())}
    defined: list[list[int]] = [[] for _ in pool]
    for hashed, row in place.items():
        strength[row] /= len(definers[hashed])
        for number in definers[hashed]:
            defined[number].append(row)
    uses *= strength
    for number, names_there in enumerate(defined):
        edges[:, number] = uses[:, names_there].sum(1)
    np.fill_diagonal(edges, 0.0)
    return edges
