"""Many seeded histories of the gate, on several processes; prints one JSON object last.

A seed is one history, whatever the number of processes and of histories. A failing one is replayed with
`python -m tests.histories.run 1 --first SEED`, which tells its story.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.histories.history import Violation
from tests.histories.play import play
from tests.histories.stage import shipped

_CHUNK = 20
Fault = tuple[int, str]

KINDS = frozenset(
    [
        "pushes",
        "forced_pushes",
        "rebases",
        "retargets",
        "base_moves",
        "forced_base_moves",
        "base_renames",
        "repository_renames",
        "other_merges",
        "branch_updates",
        "reviews_approve",
        "reviews_comment",
        "reviews_request_changes",
        "dismissals",
        "re_requests",
        "permissions_lost",
        "closes",
        "reopens",
        "draft_flips",
        "merges_by_people",
        "commands_approve",
        "commands_merge",
        "deliveries_lost",
        "deliveries_doubled",
        "deliveries_reordered",
        "races",
        "with_2_approvals",
        "with_1_approvals_and_owners",
        "with_2_approvals_and_owners",
        "landed",
        "calm_landings",
    ]
)
"""What has to have happened, and taken effect, in a run that says anything; the report names what did not."""


def chunk(first: int, count: int) -> tuple[Counter[str], list[Fault]]:
    """The histories of these seeds, one after the other. Anything that goes wrong in one is a fault of its seed."""
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    for seed in range(first, first + count):
        try:
            counts += asyncio.run(play(seed, shipped()))
        except Violation as violation:
            faults.append((seed, str(violation)))
        except Exception as bug:
            faults.append((seed, f"seed {seed}: {bug!r}\n{traceback.format_exc()}"))
    return counts, faults


def _tell(fault: Fault) -> None:
    seed, text = fault
    print(f"{text}\nAgain: python -m tests.histories.run 1 --first {seed}\n", file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    """0 when no history of the asked ones was violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(argv)
    began = time.monotonic()
    last = asked.first + asked.n
    starts = range(asked.first, last, _CHUNK)
    sizes = [min(_CHUNK, last - start) for start in starts]
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    with ProcessPoolExecutor(asked.processes) as pool:
        for some, wrong in pool.map(chunk, starts, sizes):
            counts += some
            faults += wrong
            for fault in wrong:
                _tell(fault)
    report = {
        "histories": asked.n,
        "seeds": [asked.first, last - 1],
        "violations": len(faults),
        "failing_seeds": {seed: text.partition("\n")[0] for seed, text in faults},
        "not_drawn": sorted(KINDS - counts.keys()),
        "processes": asked.processes,
        "seconds": round(time.monotonic() - began, 1),
        **dict(sorted(counts.items())),
    }
    print(json.dumps(report))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
