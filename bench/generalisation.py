"""What the ranking can be expected to do on projects it was not chosen on. Prints one JSON object last.

  python -m bench.generalisation --data FILE.jsonl --snapshots DIR [--mirrors DIR] --keep DIR [--parts left_out weights signals context]

left_out: for each project, whole weights are chosen on the others by one small procedure (from all ones, twice over all
weights, each put to what serves the others best), and measured on it. weights: each off, halved and doubled. signals, context: their
constants halved and doubled. Each as the difference to the product's own figures on the same rows, 95 % by bootstrap. --keep holds
trees and indexes; signals are gathered once, so one choice of weights takes a second.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt

from bench import localisation
from bench.localisation import Row
from bench.retrieval import Laid, inside, laid, viewed
from bot.retrieval import catalogue, chunks, context, graph, rank, signals, view
from bot.retrieval.rank import WEIGHTS, Evidence, gathered

LEVELS = (0, 1, 2, 4)
ROUNDS = 2
DRAWS = 1000
MEASURES = ("acc@5", "acc@10", "mrr")
LINES = "lines@30k"
AFTER = ((rank, "APART"), (rank, "FOLDER_SPREAD"), (graph, "DAMPING"), (graph, "SEEDS"))
"""Constants that count after the signals are gathered."""
BEFORE = (
    (rank, "POOL"),
    (graph, "BACKWARDS"),
    (signals, "TITLE_WEIGHT"),
    (signals, "PATH_TITLE_WEIGHT"),
    (signals, "MOST_REPEATS"),
    (signals, "BEST_PASSAGES"),
    (view, "K1"),
    (view, "B"),
    (chunks, "K1"),
    (chunks, "B"),
    (chunks, "USUAL_TERMS"),
    (catalogue, "K1"),
    (catalogue, "B"),
)
"""Constants of the signals."""
CONTEXT = (
    (context, "SHARPNESS"),
    (context, "STEEPNESS"),
    (context, "PRIOR"),
    (context, "PART_FILES"),
    (context, "MAP_SHARE"),
    (context, "OUTLINE_SHARE"),
)

PARTS = ("left_out", "weights", "signals", "context")

Weights = Mapping[str, float]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """One row and what speaks for the files of its tree."""

    project: str
    gold: tuple[str, ...]
    evidence: Evidence


def gather(trees: Sequence[Laid]) -> list[Case]:
    """Every row's signals, as the product's code now gives them."""
    cases: list[Case] = []
    for one in trees:
        with viewed(one) as seen:
            cases += [Case(row.project, row.gold, gathered(seen, signals.query_of(row.query))) for row in one.rows]
    return cases


def scores(cases: Sequence[Case], weights: Weights = WEIGHTS) -> Scores:
    """One line for each case: acc@5, acc@10, MRR."""
    return np.array([_score(case, weights) for case in cases]).reshape(-1, len(MEASURES))


def _score(case: Case, weights: Weights) -> tuple[float, float, float]:
    paths = case.evidence.paths
    place = {paths[number]: at for at, number in enumerate(rank.order(case.evidence, weights))}
    ranks = [place.get(path, len(paths) + 1000) for path in case.gold]
    first = min(ranks)
    return float(max(ranks) < 5), float(max(ranks) < 10), 1 / (first + 1) if first < len(paths) else 0.0


def by_project(cases: Sequence[Case], scored: Scores) -> dict[str, Scores]:
    """Means of each project's rows."""
    owner = np.array([case.project for case in cases])
    return {project: scored[owner == project].mean(0) for project in sorted(set(owner.tolist()))}


class Chooser:
    """Chooses weights. What a project scored under some weights is remembered: the choices without one project or another meet."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = {case.project: [one for one in cases if one.project == case.project] for case in cases}
        self._known: dict[tuple[str, tuple[float, ...]], float] = {}

    def without(self, project: str) -> dict[str, float]:
        """Weights that serve the other projects best, each counted alike; of equal ones the smaller."""
        weights: dict[str, float] = dict.fromkeys(WEIGHTS, 1)
        best = self._served(project, weights)
        for _ in range(ROUNDS):
            for name in WEIGHTS:
                for level in LEVELS:
                    tried = {**weights, name: level}
                    served = self._served(project, tried)
                    if served > best or (served == best and level < weights[name]):
                        weights, best = tried, served
        return weights

    def _served(self, left_out: str, weights: Weights) -> float:
        return round(sum(self._of(project, weights) for project in self._cases if project != left_out), 9)

    def _of(self, project: str, weights: Weights) -> float:
        asked = (project, tuple(weights.values()))
        if asked not in self._known:
            self._known[asked] = float(scores(self._cases[project], weights).mean(0).sum())
        return self._known[asked]


def left_out(cases: Sequence[Case]) -> dict[str, object]:
    """Each project under weights that were chosen without it."""
    scored = np.zeros((len(cases), len(MEASURES)))
    projects: dict[str, object] = {}
    chooser = Chooser(cases)
    for project in sorted({case.project for case in cases}):
        weights = chooser.without(project)
        mine = [number for number, case in enumerate(cases) if case.project == project]
        scored[mine] = scores([cases[number] for number in mine], weights)
        projects[project] = {"rows": len(mine), **named(scored[mine].mean(0)), "weights": weights}
        print(f"without {project}: {projects[project]}", file=sys.stderr, flush=True)
    means = np.mean(list(by_project(cases, scored).values()), 0)
    return {
        **named(scored.mean(0)),
        "interval95": _interval(scored),
        "mean_of_projects": named(means),
        "projects": projects,
    }


def named(means: Scores) -> dict[str, float]:
    """Figures with their names."""
    return {name: round(float(value), 4) for name, value in zip(MEASURES, means, strict=True)}


def _interval(scored: Scores, names: Sequence[str] = MEASURES) -> dict[str, list[float]]:
    drawn = np.random.default_rng(0).integers(0, len(scored), (DRAWS, len(scored)))
    low, high = np.percentile(scored[drawn].mean(1), (2.5, 97.5), axis=0)
    return {name: [round(float(low[at]), 3), round(float(high[at]), 3)] for at, name in enumerate(names)}


def difference(what: str, base: Scores, now: Scores, names: Sequence[str] = MEASURES) -> dict[str, object]:
    """How much better or worse on the same rows, with intervals."""
    means = {name: round(float(value), 4) for name, value in zip(names, (now - base).mean(0), strict=True)}
    found: dict[str, object] = {"what": what, "difference": means, "interval95": _interval(now - base, names)}
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


@contextmanager
def _changed(module: ModuleType, name: str, factor: float) -> Iterator[str]:
    before = getattr(module, name)
    value = before * factor
    setattr(module, name, max(1, round(value)) if isinstance(before, int) else value)
    yield f"{module.__name__.rpartition('.')[2]}.{name} {before} -> {getattr(module, name)}"
    setattr(module, name, before)


Constants = Sequence[tuple[ModuleType, str]]


def _each(
    constants: Constants, measured: Callable[[], Scores], names: Sequence[str] = MEASURES
) -> list[dict[str, object]]:
    base, found = measured(), []
    for module, name in constants:
        for factor in (0.5, 2.0):
            with _changed(module, name, factor) as what:
                found.append(difference(what, base, measured(), names))
    return found


def of_weights(cases: Sequence[Case]) -> list[dict[str, object]]:
    """Each weight off, halved and doubled."""
    base = scores(cases)
    return [
        difference(f"{name} {weight} -> {weight * factor:g}", base, scores(cases, {**WEIGHTS, name: weight * factor}))
        for name, weight in WEIGHTS.items()
        for factor in (0.0, 0.5, 2.0)
    ]


def lines_of(trees: Sequence[Laid]) -> Scores:
    """lines@30k of each row that has any."""
    found: list[float] = []
    for one in trees:
        with viewed(one) as seen:
            shares = [inside(seen, row, one.tree) for row in one.rows]
        found += [share for share in shares if share is not None]
    return np.array(found).reshape(-1, 1)


def report(trees: Sequence[Laid], parts: Sequence[str]) -> dict[str, object]:
    """All figures, or some of them."""
    cases = gather(trees)
    scored = scores(cases)
    made: dict[str, Callable[[], object]] = {
        "left_out": lambda: left_out(cases),
        "weights": lambda: of_weights(cases) + _each(AFTER, lambda: scores(cases)),
        "signals": lambda: _each(BEFORE, lambda: scores(gather(trees))),
        "context": lambda: _each(CONTEXT, lambda: lines_of(trees), (LINES,)),
    }
    return {
        "rows": len(cases),
        "product": {**named(scored.mean(0)), "interval95": _interval(scored)},
        "projects": {project: named(means) for project, means in by_project(cases, scored).items()},
        **{part: made[part]() for part in parts},
    }


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--snapshots", type=Path, required=True)
    parser.add_argument("--mirrors", type=Path, help="OWNER+NAME/repo of the rows that have no archive")
    parser.add_argument("--keep", type=Path, required=True, help="trees and indexes are laid here, once")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    given = parser.parse_args()
    rows: list[Row] = localisation.rows(given.data, mirrored=given.mirrors is not None)
    trees = list(laid(rows, snapshots=given.snapshots, mirrors=given.mirrors, keep=given.keep))
    print(json.dumps(report(trees, given.parts)))


if __name__ == "__main__":
    main()
