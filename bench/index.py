"""First index, re-index after 10 changed files, query, memory and disk, beside parsing alone and ctags. Prints one JSON object last.

  python -m bench.index [--files 1000] [--files 10000] [--files 50000]

The tree is Python's own library over and over, each copy with a line of its own, so that no two blobs are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from bot.retrieval.index import index_folder
from bot.retrieval.languages import tools_for
from bot.retrieval.rank import rank
from bot.retrieval.store import Store

CHANGED = 10
QUERIES = (
    "Timeout is ignored when a connection is retried\n\nhttp.client.HTTPConnection waits forever",
    "json.dumps fails on subclasses of int\n\n`JSONEncoder.default` is never called",
    "zipfile: wrong date for members written by another system",
)


def tree(root: Path, files: int) -> int:
    """Write that many files of code; their bytes."""
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = [path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts][:1500]
    texts = [(path.relative_to(library), path.read_bytes()) for path in sources]
    written = 0
    for number in range(files):
        inside, data = texts[number % len(texts)]
        path = root / f"copy_{number // len(texts)}" / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        written += path.write_bytes(b"# copy %d\n" % number + data[:200_000])
    return written


def parse_alone(root: Path, most: int) -> tuple[float, int]:
    """Seconds of one process for parsing alone, on at most `most` files, and how many they were."""
    parser, _ = tools_for("python")
    paths = sorted(root.rglob("*.py"))
    chosen = paths[:: max(1, len(paths) // most)][:most]
    contents = [path.read_bytes() for path in chosen]
    start = time.perf_counter()
    for data in contents:
        parser.parse(data)
    return time.perf_counter() - start, len(chosen)


def ctags(root: Path) -> float | None:
    """Seconds of Universal Ctags over the tree; None where it is not installed."""
    if shutil.which("ctags") is None:
        return None
    start = time.perf_counter()
    subprocess.run(["ctags", "-R", "-f", os.devnull, str(root)], check=True, capture_output=True)
    return time.perf_counter() - start


def measure(files: int) -> dict[str, object]:
    """One size."""
    with tempfile.TemporaryDirectory() as scratch:
        root, path = Path(scratch, "tree"), Path(scratch, "index.db")
        size = tree(root, files)
        alone, parsed = parse_alone(root, 1000)
        start = time.perf_counter()
        store = Store(path)
        index_folder(store, root)
        first = time.perf_counter() - start
        for changed in sorted(root.rglob("*.py"))[:: max(1, files // CHANGED)][:CHANGED]:
            changed.write_bytes(changed.read_bytes() + b"\n\ndef changed():\n    pass\n")
        start = time.perf_counter()
        view, report = index_folder(store, root)
        again = time.perf_counter() - start
        queries = []
        for query in QUERIES:
            start = time.perf_counter()
            rank(view, query)
            queries.append(time.perf_counter() - start)
        store.close()
        cores = os.cpu_count() or 1
        return {
            "files": files,
            "mb": round(size / 1e6, 1),
            "first_seconds": round(first, 2),
            "parse_alone_seconds_per_core": round(alone * files / parsed / cores, 2),
            "times_parse_alone": round(first / (alone * files / parsed / cores), 2),
            "ctags_seconds": ctags(root),
            "after_10_changes_seconds": round(again, 3),
            "read_again": report.read,
            "query_seconds_max": round(max(queries), 3),
            "disk_share_of_source": round(sum(p.stat().st_size for p in path.parent.glob("index.db*")) / size, 2),
        }


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, action="append")
    sizes = parser.parse_args().files or [1000, 10_000]
    measured = []
    for files in sizes:
        print(f"{files} files", file=sys.stderr)
        measured.append(measure(files))
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"sizes": measured, "peak_mb": own // 1024, "peak_mb_of_a_parsing_process": parts // 1024}))


if __name__ == "__main__":
    main()
