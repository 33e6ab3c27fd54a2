"""`make crash`: stories under lightning at random requests, reads and writes alike; seeds and faults as one JSON object."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from pathlib import Path

from tests.scenarios.brains import FILES, StepBrain
from tests.scenarios.lightning import Lightning, Point, When
from tests.scenarios.storm import Report, story

SHARE = 0.06
MOST_STRIKES = 8
MOST_MODEL_CALLS = 1
"""Each lost answer is booked at its worst price, so a story pays for few of them."""


class Weather:
    """Which requests a seed strikes."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._strikes = 0
        self._calls = 0

    def falls_on(self, point: Point) -> bool:
        """Called once for each request, in their order."""
        is_call = point.request == "POST /v1/messages"
        falls = self._random.random() < (0.4 if is_call else SHARE)
        if not falls or self._strikes >= MOST_STRIKES or (is_call and self._calls >= MOST_MODEL_CALLS):
            return False
        self._strikes += 1
        self._calls += is_call
        return True


async def storm(seed: int) -> Report:
    """One story; a fault of the story itself is a sentence in the report."""
    lightning = Lightning(list(When)[seed % 2], Weather(seed).falls_on)
    with tempfile.TemporaryDirectory(prefix="storm-") as home:
        try:
            return await story(lightning, StepBrain(), Path(home), FILES)
        except AssertionError as fault:
            return Report(tuple(map(str, lightning.struck)), (str(fault)[-4000:],))


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill the product at random requests; each story has to land once.")
    parser.add_argument("stories", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    reports: dict[int, Report] = {}
    for seed in range(given.first, given.first + given.stories):
        reports[seed] = asyncio.run(storm(seed))
        print(f"seed {seed}: {len(reports[seed].struck)} strikes, {len(reports[seed].wrong)} faults", file=sys.stderr)
    wrong = {seed: report.wrong for seed, report in reports.items() if report.wrong}
    strikes = [point for report in reports.values() for point in report.struck]
    told = {
        "stories": len(reports),
        "first": given.first,
        "strikes": len(strikes),
        "kinds_of_requests_struck": len({point.partition(" #")[0] for point in strikes}),
        "faults": wrong,
    }
    print(json.dumps(told, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
