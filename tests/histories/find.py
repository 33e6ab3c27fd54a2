"""Which seeds find which mutant: `python -m tests.histories.find LAST`; prints one line each."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ProcessPoolExecutor

from bot.settings import load_policies
from tests.histories.history import Violation
from tests.histories.mutants import MUTANTS
from tests.histories.play import play
from tests.histories.stage import POLICIES


def hunt(index: int, last: int) -> str:
    """The first seed that finds this mutant, and how."""
    mutant = MUTANTS[index][0]
    policies = load_policies(POLICIES)
    for seed in range(last):
        try:
            asyncio.run(play(seed, policies, mutant))
        except Violation as violation:
            return f"{seed}: {mutant.name}: {str(violation).partition(chr(10))[0]}"
    return f"none of {last}: {mutant.name}"


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(hunt, range(len(MUTANTS)), [int(sys.argv[1])] * len(MUTANTS)):
            print(line, flush=True)
