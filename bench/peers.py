"""The other agents: what they paid for the work when they were measured, and mini-swe-agent run here on the same work.

mini-swe-agent lives in an environment of its own, `.venv-mini`, which only this benchmark makes. The strict stand-in refuses it (an
older API version, a tool result sent as text first and as a block later), so it talks to the tolerant one; the bill is the same.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import work
from bench.costing import Part, parts
from bench.work import CODER
from bot.emulators.anthropic import server as anthropic
from bot.emulators.anthropic.brain import BrainAnswer, BrainError, BrainRequest, ToolUse
from bot.emulators.anthropic.state import Config
from tests.scenarios.real import sources

ROOT = Path(__file__).parents[1]
MINI = ROOT / ".venv-mini" / "bin" / "mini"
TARGETED = ("mini-swe-agent", "Claude Code", "aider")
"""Whose prices the target is about; the other anchors only show where they stand."""


def anchors() -> dict[str, Any]:
    """The dated figures, as they stand in the file."""
    document = tomllib.loads((ROOT / "bench" / "anchors.toml").read_text("utf-8"))
    return {**document, "measured": str(document["measured"])}


def cheapest(document: Mapping[str, Any], shape: str) -> float:
    """The lowest price in dollars that one of the targeted agents paid for the work in this shape."""
    return float(min(one["usd"] for one in document["anchor"] if one["shape"] == shape and one["agent"] in TARGETED))


class Unavailable(Exception):  # noqa: N818 - a reason to skip, not a fault
    """Why mini-swe-agent cannot be run here."""


@dataclass(frozen=True, slots=True)
class Turns:
    """A brain that says the same turns whoever asks."""

    turns: work.Turns

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """The next turn."""
        if request.turn >= len(self.turns):
            raise BrainError("the script is at its end")
        return BrainAnswer([ToolUse(name, given) for name, given in self.turns[request.turn]])


def install() -> None:
    """Make its environment, locked by hashes. Raises Unavailable."""
    done = subprocess.run(
        [ROOT / "scripts" / "setup.sh", "mini"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"it could not be installed: {done.stderr.strip()[-300:]}")


async def mini(files: Mapping[str, bytes], *, batched: bool) -> Part:
    """The work done by mini-swe-agent, as the stand-in billed it. Raises Unavailable where it did not do it."""
    with tempfile.TemporaryDirectory(prefix="bench-mini-") as directory:
        home = Path(directory)
        clone = home / "repository"
        for name, data in files.items():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes(data)
        config = Config(brain=Turns(work.bash().turns(batched=batched)), mode="lenient")
        async with anthropic.running(config) as model:
            said = await _run(clone, home, model.url, model.api_key)
            document = model.state.bill.document()
        for path, text in work.applied({path: files[path].decode() for path in work.PATHS}).items():
            if (clone / path).read_text("utf-8") != text:
                raise Unavailable(f"it left {path} as something else: {said[-300:]}")
    return parts(document, {CODER: document["totals"]["distinct_tokens"]})[0]


async def _run(clone: Path, home: Path, url: str, key: str) -> str:
    environment = {
        "PATH": f"{sources.TOOLS / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_API_BASE": url,
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_GLOBAL_CONFIG_DIR": str(home / "config"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        str(MINI),
        "-m",
        f"anthropic/{CODER}",
        "-t",
        f"{work.TITLE}\n\n{work.REQUEST}",
        "-y",
        "--exit-immediately",
    ]
    process = await asyncio.create_subprocess_exec(
        *(*command, "-o", str(home / "trajectory.json")),
        env=environment,
        cwd=clone,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 300)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise Unavailable("it did not end within 5 minutes") from None
    return said.decode("utf-8", "replace")
