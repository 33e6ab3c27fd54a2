"""Files that a task is about, best first: a weighted sum of signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bot.retrieval import graph, signals
from bot.retrieval.catalogue import Floats
from bot.retrieval.kinds import Kind
from bot.retrieval.signals import Named, Query, Words, scaled
from bot.retrieval.view import View

WEIGHTS = {
    "symbols": 1,
    "passages": 4,
    "path": 2,
    "identifiers": 1,
    "defines": 1,
    "pairs": 1,
    "paths": 2,
    "frames": 1,
    "modules": 1,
    "graph": 2,
    "folder": 1,
}
"""Whole numbers. What each is worth, here and on projects it was not chosen on: docs/decisions/0005-how-files-are-ranked.md."""
MEANING = 1.5
"""Weight of a summary's nearness to the task, when there are vectors; not fitted: the public rows are run without keys."""
APART = 3.0
"""Taken from the score of tests, vendored, generated, documentation and data files: they come after code."""
FOLDER_SPREAD = 1.5
"""How far below the best a file may score and still speak for its folder."""
POOL = 150
APART_IN_POOL = 30
_IMPORTING = 10
_REASONS = 4


@dataclass(frozen=True, slots=True)
class Ranked:
    """A file with its score and why it is here, the strongest reason first."""

    path: str
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item of the pool with its signals, 0..1 each, its score, and the scores of its passages."""

    item: int
    signals: dict[str, float]
    score: float
    passages: Floats


def rank(view: View, text: str, meaning: Floats | None = None) -> tuple[Ranked, ...]:
    """All files near the task, best first; equal scores in path order. `meaning`: each item's nearness by its summary, if known."""
    query = signals.query_of(text)
    return tuple(explained(view, query, candidate) for candidate in candidates(view, query, meaning))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the items of a pool before it is weighed: signals, the graph between them, scores of their passages."""

    pool: tuple[int, ...]
    paths: tuple[str, ...]
    columns: Mapping[str, Floats]
    walk: graph.Matrix
    apart: npt.NDArray[np.bool_]
    passages: Mapping[int, Floats]


def candidates(view: View, query: Query, meaning: Floats | None = None) -> list[Candidate]:
    """The pool, scored and sorted."""
    return weighed(gathered(view, query, meaning))


def gathered(view: View, query: Query, meaning: Floats | None = None) -> Evidence:
    """The pool and what speaks for it; an empty pool when no word of the task is known."""
    by_words = signals.by_words(view, query)
    named = signals.by_names(view, query)
    pool = _pool(view, by_words, named, meaning)
    joints = view.joints(pool)
    near = [other for item in pool[:_IMPORTING] for other in graph.imported(view, item, joints[item])]
    added = [item for item in dict.fromkeys(near) if item not in joints]
    pool = sorted([*pool, *added])
    joints |= view.joints(added)
    passages = view.passages(pool)
    scores = signals.by_passages(query, by_words.rarity, passages)
    columns = _columns(by_words, named, pool)
    if meaning is not None:
        columns["meaning"] = meaning[pool]
    columns["passages"] = scaled(np.array([signals.best_passages(scores[item]) for item in pool]))
    walk = graph.walk(view, pool, joints, passages) if pool else np.zeros((0, 0))
    return Evidence(tuple(pool), tuple(view.paths[item] for item in pool), columns, walk, view.apart[pool], scores)


def weighed(evidence: Evidence, weights: Mapping[str, float] = WEIGHTS) -> list[Candidate]:
    """The pool by its evidence, best first."""
    columns, scores = _judged(evidence, weights)
    return [
        Candidate(
            evidence.pool[number],
            {name: float(column[number]) for name, column in columns.items()},
            float(scores[number]),
            evidence.passages[evidence.pool[number]],
        )
        for number in _sorted(evidence.paths, scores)
    ]


def order(evidence: Evidence, weights: Mapping[str, float]) -> list[int]:
    """Places in the pool under these weights, best first."""
    return _sorted(evidence.paths, _judged(evidence, weights)[1])


def _sorted(paths: Sequence[str], scores: Floats) -> list[int]:
    return sorted(range(len(paths)), key=lambda number: (-round(float(scores[number]), 9), paths[number]))


def _judged(evidence: Evidence, weights: Mapping[str, float]) -> tuple[dict[str, Floats], Floats]:
    """All signals and the scores. The graph and the folders speak for what is near to what the other signals say."""
    columns = dict(evidence.columns)
    first = _sum(columns, weights)
    likely = first - first.max(initial=0.0)
    seeds = np.exp(likely) * (~evidence.apart * 0.7 + 0.3)
    columns["graph"] = scaled(np.log1p(graph.spread(evidence.walk, seeds) * 1e4))
    columns["folder"] = scaled(np.sqrt(_folder(evidence.paths, np.exp(likely / FOLDER_SPREAD))))
    return columns, _sum(columns, weights) - APART * evidence.apart


def _pool(view: View, by_words: Words, named: Named, meaning: Floats | None) -> list[int]:
    """The items worth a closer look, best first: most of them code."""
    mentioned = (
        (named.paths > 0) + (named.defines > 0) + (named.frames > 0) + (named.pairs > 0) + 0.5 * (named.modules > 0)
    )
    quick = by_words.body + by_words.symbols + 0.5 * mentioned
    if meaning is not None:
        quick = quick + meaning
    order = np.argsort(-quick, kind="stable")
    order = order[quick[order] > 0]
    code = order[view.counted[order]][:POOL]
    others = order[view.apart[order]][:APART_IN_POOL]
    return [int(item) for item in np.concatenate([code, others])]


def _columns(by_words: Words, named: Named, pool: Sequence[int]) -> dict[str, Floats]:
    at = np.array(pool, np.int64)
    return {
        "symbols": by_words.symbols[at],
        "path": by_words.path[at],
        "identifiers": by_words.identifiers[at],
        "defines": named.defines[at],
        "pairs": named.pairs[at],
        "paths": named.paths[at],
        "frames": named.frames[at],
        "modules": named.modules[at],
    }


def _sum(columns: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    summed: Floats = np.sum([weights.get(name, MEANING) * column for name, column in sorted(columns.items())], axis=0)
    return summed


def _folder(paths: Sequence[str], likely: Floats) -> Floats:
    """How likely the other files of the same folder are."""
    folders = [path.rpartition("/")[0] for path in paths]
    sums: dict[str, float] = {}
    for folder, value in zip(folders, likely.tolist(), strict=True):
        sums[folder] = sums.get(folder, 0.0) + value
    return np.maximum(0.0, np.array([sums[folder] for folder in folders]) - likely)


_TEXTS = {
    "symbols": "its definitions are named like the task's words",
    "passages": "one passage has many of the task's words",
    "path": "its path has the task's words",
    "identifiers": "it uses identifiers of the task",
    "defines": "it defines a name of the task",
    "pairs": "it defines a dotted name of the task",
    "paths": "the task names its path",
    "frames": "it is in the stack trace",
    "modules": "the task names its module",
    "graph": "near files use it, or it uses them",
    "folder": "its folder holds near files",
    "meaning": "its summary is near the task",
}


def explained(view: View, query: Query, candidate: Candidate) -> Ranked:
    """The result that people see."""
    item = view.items[candidate.item]
    gained = {name: WEIGHTS.get(name, MEANING) * value for name, value in candidate.signals.items() if value > 0}
    strongest = sorted(gained, key=lambda name: (-gained[name], name))[:_REASONS]
    why = [_TEXTS[name] for name in strongest]
    if item.kind is not Kind.CODE:
        why.insert(0, f"ranked apart: {item.kind.value}")
    path_words = [term for term in query.path_weights if term in item.path.lower()][:4]
    if "path" in strongest and path_words:
        why[why.index(_TEXTS["path"])] = f"its path has {', '.join(path_words)}"
    return Ranked(item.path, round(candidate.score, 4), tuple(why))
