"""Many seeded histories of the gate: `python -m tests.histories.run N [--first SEED] [--jobs J]`; prints one JSON object last."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bot.settings import load_policies
from tests.histories.history import Violation
from tests.histories.play import play
from tests.histories.stage import POLICIES

_CHUNK = 20


def chunk(first: int, count: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """The histories of these seeds, one after the other."""
    policies = load_policies(Path(POLICIES))
    counts: Counter[str] = Counter()
    faults: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        try:
            counts += asyncio.run(play(seed, policies))
        except Violation as violation:
            faults.append((seed, str(violation)))
    return counts, faults


def main(argv: list[str]) -> int:
    """Play them on all cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args(argv)
    began = time.monotonic()
    last = asked.first + asked.n
    starts = range(asked.first, last, _CHUNK)
    sizes = [min(_CHUNK, last - start) for start in starts]
    counts: Counter[str] = Counter()
    faults: list[tuple[int, str]] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        for some, wrong in pool.map(chunk, starts, sizes):
            counts += some
            faults += wrong
    for _, text in faults if asked.verbose else ():
        print(text, file=sys.stderr)
    report = {
        "histories": asked.n,
        "seeds": [asked.first, last - 1],
        "violations": len(faults),
        "failing_seeds": {seed: text.partition("\n")[0] for seed, text in faults},
        "seconds": round(time.monotonic() - began, 1),
        **dict(sorted(counts.items())),
    }
    print(json.dumps(report))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
