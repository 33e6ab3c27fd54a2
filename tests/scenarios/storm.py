"""One story from label to merge under lightning, and what has to be true at its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.emulators.anthropic.brain import Brain
from tests.scenarios.lightning import Lightning, kept_up
from tests.world import World, digest_in, world

PATIENCE = 240.0
MODEL_CALLS = 3
"""What the story costs undisturbed."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a story ended; `wrong` is what must not be, one sentence each."""

    struck: tuple[str, ...]
    wrong: tuple[str, ...]


async def story(
    lightning: Lightning,
    brain: Brain,
    home: Path,
    files: Mapping[str, str],
    settings: Mapping[str, str] | None = None,
) -> Report:
    """Label, draft, approval, merge; the product is started again after each strike."""
    struck = lightning.thinking(brain)
    async with world(struck, home, contents=files, settings=settings, around=lightning.around) as here:
        lightning.strike = lambda: _kill(here)
        keeper = asyncio.create_task(kept_up(here))
        try:
            issue = await here.ask("Add triple", "Please add calc.triple with a test.")
            pull = await here.draft(PATIENCE)
            number = int(pull["number"])
            await here.robin.review(number)
            await here.pull_when(number, "ready", lambda p: not p["draft"], PATIENCE)
            await here.robin.comment(number, f"/agent merge {digest_in(pull)[:12]}")
            await here.pull_when(number, "merged", lambda p: p["merged"], PATIENCE)
            await here.says(issue, "Merged", PATIENCE)
            await here.quiet()
            wrong = [line async for line in _faults(here, issue, number, len(lightning.struck))]
        finally:
            keeper.cancel()
    return Report(tuple(str(point) for point in lightning.struck), tuple(wrong))


def _kill(here: World) -> None:
    assert here.process is not None
    here.process.send_signal(signal.SIGKILL)


async def _faults(here: World, issue: int, number: int, strikes: int) -> AsyncIterator[str]:
    pulls = await here.rosa.pulls()
    if len(pulls) != 1:
        yield f"{len(pulls)} pull requests"
    for subject in (issue, number):
        own = [c for c in await here.rosa.comments(subject) if c["user"]["login"].endswith("[bot]")]
        if len(own) != 1:
            yield f"{len(own)} comments of the product on #{subject}"
    merged = await here.rosa.pull(number)
    head = merged["head"]["sha"]
    checks = [check for check in await here.rosa.checks(head) if check["name"] == "pullwright/gate"]
    if len(checks) != 1:
        yield f"{len(checks)} check runs on the head"
    if merged["commits"] != 1:
        yield f"{merged['commits']} commits on the branch"
    if await here.rosa.tree_of(await here.rosa.head_of("main")) != await here.rosa.tree_of(head):
        yield "what landed is not the head's tree"
    answered = sum(charge.status == 200 for charge in here.model.state.bill.charges)
    if not MODEL_CALLS <= answered <= MODEL_CALLS + strikes:
        yield f"{answered} model calls for {strikes} strikes"
