"""Finds the files to change on public issues: acc@k, hit@k, MRR, lines@30k, with intervals. Prints one JSON object last.

  python -m bench.retrieval --data FILE.jsonl --snapshots DIR [--mirrors DIR] [--rows OUT.jsonl]

acc@k: all files of the fix are among the first k; hit@k: any. lines@30k: share of the fix's functions and classes (of its
lines, where none are known by name) inside the context of 30,000 tokens.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench import localisation
from bench.localisation import Row
from bot.retrieval import context, signals
from bot.retrieval.index import index_folder
from bot.retrieval.rank import candidates
from bot.retrieval.store import Store
from bot.retrieval.view import View

KS = (1, 3, 5, 10, 20)
TOKENS = 30_000
DRAWS = 2000


@dataclass(slots=True)
class Result:
    """What one row came to."""

    id: str
    project: str
    named: bool
    ranks: list[int | None]
    seconds: float
    first: list[str]
    inside: float | None = None


def ranked(view: View, row: Row) -> Result:
    """Ranks of the row's gold files, from 0."""
    start = time.perf_counter()
    found = candidates(view, signals.query_of(row.query))
    seconds = time.perf_counter() - start
    paths = [view.items[candidate.item].path for candidate in found]
    place = {path: number for number, path in enumerate(paths)}
    ranks = [place.get(gold) for gold in row.gold]
    return Result(row.id, row.project, row.named, ranks, seconds, paths[:10])


def inside(view: View, row: Row, tree: Path) -> float | None:
    """Share of the fix's functions and classes (else of its lines) that the context shows whole (a class: its first line)."""
    made = context.plan(view, row.query)
    contents = {item: (tree / view.items[item].path).read_bytes() for item in made.wanted}
    parts = context.compose(made, contents, TOKENS).parts
    shown: dict[str, set[int]] = {}
    for part in parts:
        shown.setdefault(part.path, set()).update(range(part.first, part.last + 1))
    if row.symbols:
        return _symbols_inside(view, row, shown)
    wanted = [(path, line) for path, spans in row.lines.items() for a, b in spans for line in range(a, b + 1)]
    return _mean(line in shown.get(path, ()) for path, line in wanted) if wanted else None


def _symbols_inside(view: View, row: Row, shown: dict[str, set[int]]) -> float | None:
    found: list[bool] = []
    for path, names in row.symbols.items():
        item = view.catalogue.row(path)
        if item is None:
            continue
        known = {one.qualified: one for one in view.outlines([item])[item]}
        for one in (known[name] for name in names if name in known):
            last = one.first if one.kind == "class" else one.last
            found.append(set(range(one.first, last + 1)) <= shown.get(path, set()))
    return _mean(found) if found else None


def measures(results: Sequence[Result]) -> dict[str, float]:
    """Means over rows."""
    found: dict[str, float] = {}
    for k in KS:
        found[f"acc@{k}"] = _mean(all(rank is not None and rank < k for rank in r.ranks) for r in results)
        found[f"hit@{k}"] = _mean(any(rank is not None and rank < k for rank in r.ranks) for r in results)
    found["mrr"] = _mean(max((1 / (rank + 1) for rank in r.ranks if rank is not None), default=0.0) for r in results)
    inside = [r.inside for r in results if r.inside is not None]
    if inside:
        found["lines@30k"] = _mean(inside)
    return {name: round(value, 4) for name, value in found.items()}


def _mean(values: Iterable[float]) -> float:
    listed = [float(value) for value in values]
    return sum(listed) / max(len(listed), 1)


def intervals(results: Sequence[Result]) -> dict[str, list[float]]:
    """95 % by bootstrap over rows."""
    chance = random.Random(0)
    draws = [measures(chance.choices(results, k=len(results))) for _ in range(DRAWS // 4)]
    return {
        name: [round(float(np.percentile([draw[name] for draw in draws], at)), 3) for at in (2.5, 97.5)]
        for name in ("acc@1", "acc@5", "acc@10", "mrr")
    }


@contextmanager
def _place(keep: Path | None, archive: str) -> Iterator[Path]:
    """Where the tree and its index lie; kept between runs when asked."""
    if keep is None:
        with tempfile.TemporaryDirectory() as scratch:
            yield Path(scratch)
    else:
        place = keep / archive.replace("==", "-").replace("@", "-")
        place.mkdir(parents=True, exist_ok=True)
        yield place


@dataclass(frozen=True, slots=True)
class Laid:
    """Rows of one tree, its files as a plain folder, its index, and the seconds that took."""

    rows: list[Row]
    tree: Path
    index: Path
    seconds: float


def laid(rows: list[Row], *, snapshots: Path, mirrors: Path | None, keep: Path | None) -> Iterator[Laid]:
    """Every tree with its index, one after the other; none stays when `keep` is not given."""
    for archive, group in localisation.by_archive(rows).items():
        with _place(keep, archive) as place:
            tree, index = place / "tree", place / "index.db"
            if not tree.is_dir():
                localisation.lay(group[0], tree, snapshots=snapshots, mirrors=mirrors)
            start = time.perf_counter()
            store = Store(index)
            index_folder(store, tree)
            store.close()
            yield Laid(group, tree, index, time.perf_counter() - start)
        print(f"{archive}: {len(group)} rows", file=sys.stderr)


@contextmanager
def viewed(one: Laid) -> Iterator[View]:
    """The view of a tree that is laid out and indexed."""
    store = Store(one.index)
    view, _ = index_folder(store, one.tree)
    yield view
    store.close()


def run(rows: list[Row], *, snapshots: Path, mirrors: Path | None, keep: Path | None) -> tuple[list[Result], float]:
    """All rows; seconds of indexing beside."""
    results: list[Result] = []
    seconds = 0.0
    for one in laid(rows, snapshots=snapshots, mirrors=mirrors, keep=keep):
        seconds += one.seconds
        with viewed(one) as view:
            for row in one.rows:
                result = ranked(view, row)
                result.inside = inside(view, row, one.tree)
                results.append(result)
    return results, seconds


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--snapshots", type=Path, required=True)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--keep", type=Path, help="keep trees and indexes here, so that a second run need not index")
    parser.add_argument(
        "--mirrors", type=Path, help="OWNER+NAME/repo of the rows that have no archive; without it they are left out"
    )
    given = parser.parse_args()
    rows = localisation.rows(given.data, mirrored=given.mirrors is not None)
    results, seconds = run(rows, snapshots=given.snapshots, mirrors=given.mirrors, keep=given.keep)
    if given.rows:
        lines = [json.dumps(asdict(r)) for r in results]
        given.rows.write_text("\n".join(lines) + "\n", "utf-8")
    report: dict[str, object] = {
        "rows": len(results),
        **measures(results),
        "interval95": intervals(results),
        "without_rows_that_name_a_file": measures([r for r in results if not r.named]),
        "projects": {p: measures([r for r in results if r.project == p]) for p in sorted({r.project for r in results})},
        "seconds": {"index": round(seconds, 1), "query_p50": float(np.median([r.seconds for r in results]))},
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
