"""What the same work costs, here and with other agents, and what a task of the reference size costs. Prints one JSON object last.

The product plans and codes as `pullwright run` does: real tools in local sandboxes, a scripted model behind the strict stand-in, whose
own bill is what is reported; the product's ledger is compared with it. `same_work` counts the coder's calls, as the other agents have
no planner; the plan's price stands beside them. All prices are on the headline day of the price list, at 3 bytes a token; `later`
columns are at the next price of cache reads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bench import peers, work
from bench.costing import MICROS, Part, figures, share
from bench.local import Script, Worked, worked
from bench.work import CODER, PLANNER
from bot.domain.verdict import TestOutcome
from bot.providers.llm.pricing import PriceBook
from bot.stages.coding.observe import DEFAULT_TOKENS, tokens
from tests.scenarios.real import sources
from tests.scenarios.real.trees import files_of

PRICES = PriceBook.load()
LATER = PRICES.on(date(2026, 10, 7))
"""The day from which reads of the coder's model cost half."""

RUNS: Mapping[str, tuple[bool, work.Reads]] = {
    "serial": (False, "default"),
    "batched": (True, "default"),
    "serial, the ranges the others read": (False, "ranges"),
    "batched, the ranges the others read": (True, "ranges"),
    "serial, every read needs a second one": (False, "twice"),
}
PREFIX_TOKENS = 3_000
TARGETS = {"over_cheapest": 0.5, "reference_usd": 0.25, "write_amplification": 1.05, "efficiency": 0.95}
REFERENCE_THINKING, PLAN_THINKING = 170, 1_400
"""Tokens of thinking per answer: with what the calls say, the coder puts out 6,000 tokens and the planner 2,000."""


def repository() -> dict[str, bytes]:
    """Every file of the release, with the product's settings for it."""
    files = {path: file.data for path, file in files_of(sources.release(work.PROJECT, work.VERSION)).items()}
    settings = f"test = '''{work.TEST.replace('-v', '-q')}'''\ntemplate = \"real\"\n"
    return {**files, ".github/pullwright.toml": settings.encode()}


async def done(script: Script, files: Mapping[str, bytes]) -> Worked:
    """One task in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-economy-") as directory:
        home = Path(directory)
        sources.offer_template(home / "data")
        return await worked(script, files, home, title=work.TITLE, request=work.REQUEST)


def part(run: Worked, model: str) -> Part:
    return next(one for one in run.parts if one.model == model)


def report(run: Worked) -> dict[str, Any]:
    """One run of the work: the coder's bill, the plan's price, and whether it is the work."""
    coder, planner = part(run, CODER), part(run, PLANNER)
    return {
        **figures([coder], PRICES, LATER),
        "plan_usd": round(planner.micro_dollars / MICROS, 4),
        "ledger_agrees": run.agrees,
        "right": right(run),
    }


def right(run: Worked) -> bool:
    """All tests pass and the change is the work's: 50 lines more, one less."""
    lines = run.proposal.diff.splitlines()
    more = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    less = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    passed = run.proposal.built.verified.verdict.after.count(TestOutcome.PASSED)
    return (passed, more, less) == (work.PASSING, 50, 1)


def spending(run: Worked) -> dict[str, Any]:
    """Where a run may pay more than it must: its prefix, outputs of tools over the default, the tail that nobody reads."""
    first = next(entry["body"] for entry in run.log if entry["body"] and entry["body"].get("tools"))
    tools = json.dumps(first["tools"], separators=(",", ":"), ensure_ascii=False)
    system = [tokens(block["text"]) for block in first["system"]]
    rows = run.bill["requests"]
    misses = [row for row in rows[2:] if not row["usage"]["read"]]
    return {
        "prefix_tokens": {"tools": tokens(tools), "system": system, "in_all": tokens(tools) + sum(system)},
        "outputs": outputs(run),
        "calls_that_read_nothing_after_the_first": len(misses),
        "last_write_tokens": {
            model: _written([row for row in rows if row["model"] == model][-1]) for model in (PLANNER, CODER)
        },
    }


def outputs(run: Worked) -> dict[str, Any]:
    """Tokens of the tools' answers, and how many are over the default by more than a line."""
    sizes: dict[str, list[int]] = {}
    for request in run.brain.heard.values():
        names = {call.id: call.name for message in request.messages for call in message.calls}
        for message in request.messages:
            for result in message.results:
                sizes.setdefault(names[result.tool_use_id], []).append(tokens(result.text))
    over = {name: [size for size in own if size > DEFAULT_TOKENS + 50] for name, own in sizes.items()}
    return {"by_tool": sizes, "over_default": {name: own for name, own in over.items() if own}}


def _written(row: Mapping[str, Any]) -> int:
    return int(row["usage"]["write_5m"] + row["usage"]["write_1h"])


async def same_work(files: Mapping[str, bytes], *, with_mini: bool) -> dict[str, Any]:
    """Ours in every shape, the others' dated figures, and mini-swe-agent here and now."""
    anchors = peers.anchors()
    ours: dict[str, Any] = {}
    for name, (batched, reads) in RUNS.items():
        run = await done(Script(work.plan(), {work.TITLE: work.ours(reads).turns(batched=batched)}), files)
        ours[name] = report(run)
        if name == "serial":
            spent = spending(run)
        shape = "batched" if batched else "serial"
        ours[name]["over_cheapest_anchor"] = share(ours[name]["usd"], peers.cheapest(anchors, shape))
        _say(f"{name}: ${ours[name]['usd']}")
    mini: dict[str, Any] = await _mini(files) if with_mini else {"skipped": "--without-mini"}
    if "skipped" not in mini:
        for name, (batched, _) in RUNS.items():
            ours[name]["over_mini_here"] = share(ours[name]["usd"], mini["batched" if batched else "serial"]["usd"])
    return {"ours": ours, "mini_here": mini, "anchors": anchors, "where_it_goes": spent}


async def _mini(files: Mapping[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        peers.install()
        for shape in ("serial", "batched"):
            found[shape] = figures([await peers.mini(files, batched=shape == "batched")], PRICES, LATER)
            _say(f"mini-swe-agent, {shape}: ${found[shape]['usd']}")
    except (peers.Unavailable, OSError) as reason:
        return {"skipped": str(reason)}
    return {"stand_in": "tolerant", **found}


async def reference(files: Mapping[str, bytes]) -> dict[str, Any]:
    """A plan of two steps, 25 calls of the coder, with thinking."""
    plan, steps = work.reference()
    run = await done(Script(plan, steps, PLAN_THINKING, REFERENCE_THINKING), files)
    by_model = {one.model: figures([one], PRICES, LATER) for one in run.parts}
    found = {**figures(run.parts, PRICES, LATER), "by_model": by_model, "ledger_agrees": run.agrees}
    _say(f"reference task: ${found['usd']}")
    return found


def met(document: Mapping[str, Any]) -> dict[str, bool]:
    """Which targets hold."""
    ours, task = document["same_work"]["ours"], document["reference"]
    models = task[
        "by_model"
    ].values()  # the planner writes nothing: added up, it would hide what the coder writes twice
    return {
        "serial_over_cheapest": ours["serial"]["over_cheapest_anchor"] <= TARGETS["over_cheapest"],
        "batched_over_cheapest": ours["batched"]["over_cheapest_anchor"] <= TARGETS["over_cheapest"],
        "reference_usd": task["usd"] <= TARGETS["reference_usd"],
        "write_amplification": all(one["write_amplification"] <= TARGETS["write_amplification"] for one in models),
        "efficiency": all(one["efficiency"] >= TARGETS["efficiency"] for one in models),
        "prefix": document["same_work"]["where_it_goes"]["prefix_tokens"]["in_all"] <= PREFIX_TOKENS,
        "ledger_agrees": task["ledger_agrees"] and all(one["ledger_agrees"] for one in ours.values()),
        "the_work_is_done": all(one["right"] for one in ours.values()),
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def measure(*, with_mini: bool) -> dict[str, Any]:
    sources.prepare()
    files = repository()
    document = {
        "bench": "economy",
        "same_work": await same_work(files, with_mini=with_mini),
        "reference": await reference(files),
        "targets": TARGETS,
    }
    return {**document, "met": met(document)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-mini", action="store_true", help="do not install and run mini-swe-agent")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(with_mini=not given.without_mini))))


if __name__ == "__main__":
    main()
