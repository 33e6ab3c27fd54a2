"""`pullwright run`: the pipeline on a clone, approved by its digest at the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.emulators.anthropic import server as anthropic
from bot.emulators.anthropic.state import Config
from tests.scenarios.brains import FILES, StepBrain
from tests.world import ROOT

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"]}


def told(command: Sequence[str | Path], where: Path | None = None) -> str:
    return subprocess.run(command, cwd=where, env=GIT, check=True, capture_output=True, text=True).stdout


def git(clone: Path, *args: str) -> str:
    return told(["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *args], clone)


def cloned(root: Path, files: Mapping[str, str]) -> Path:
    """A repository with one commit, and something that is not committed."""
    clone = root / "shop"
    for name, text in files.items():
        path = clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "First")
    (clone / "calc.py").write_text("raise SystemExit('not committed')\n")
    return clone


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    told: dict[str, object]
    screen: str


async def ran(clone: Path, home: Path, answer: Callable[[str], str], *options: str) -> Outcome:
    """The command as a program drives it; `answer` gets the screen up to each question and says what is typed."""
    async with anthropic.running(Config(brain=StepBrain())) as model:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PULLWRIGHT_HOME": str(home / "data"),
            "ANTHROPIC_API_KEY": model.api_key,
            "ANTHROPIC_BASE_URL": model.url,
        }
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            ROOT / ".venv/bin/pullwright", "run", "--repo", clone, "--json", *options, "Add triple",
            env=environment, stdin=pipe, stdout=pipe, stderr=pipe,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        screen = ""
        while data := await asyncio.wait_for(process.stderr.read(4096), 120):
            screen += data.decode()
            if re.search(r"(leaves it|to stop): $", screen):
                process.stdin.write(f"{answer(screen)}\n".encode())
        process.stdin.close()
        line = (await process.stdout.read()).decode()
        return Outcome(await process.wait(), json.loads(line), screen)


def the_digest(screen: str) -> str:
    found = re.findall(r"Change digest: ([0-9a-f]{64})", screen)
    return str(found[-1])[:12] if found else str(re.findall(r"Plan ([0-9a-f]{12})", screen)[-1])


async def test_what_is_approved_by_its_digest_is_committed_to_a_branch_of_its_own(tmp_path: Path):
    gated = {**FILES, ".github/pullwright.toml": FILES[".github/pullwright.toml"] + "plan_gate = true\n"}
    clone = cloned(tmp_path, gated)
    base = git(clone, "rev-parse", "main").strip()
    asked: list[str] = []

    def slipping(screen: str) -> str:
        """The plan's hash, then another digest than the change's, then that."""
        asked.append(screen)
        assert git(clone, "branch", "--format=%(refname:short)") == "main\n"
        return the_digest(screen) if len(asked) != 2 else "0123456789ab"

    outcome = await ran(clone, tmp_path, slipping)
    assert outcome.code == 0, outcome.screen
    assert "That is not this change's digest." in asked[2]
    branch = str(outcome.told["branch"])
    assert git(clone, "rev-parse", branch).strip() == outcome.told["commit"]
    assert git(clone, "rev-parse", f"{branch}^").strip() == base
    assert git(clone, "rev-parse", f"{branch}^{{tree}}").strip() == outcome.told["tree"]
    assert "triple" in git(clone, "show", f"{branch}:calc.py")
    assert git(clone, "fsck", "--strict") == ""
    assert git(clone, "rev-parse", "main").strip() == base
    assert (clone / "calc.py").read_text().startswith("raise SystemExit")
    assert "3 passed" in outcome.screen
    shown = told([ROOT / ".venv/bin/pullwright", "digest", clone, "main", branch, "--base-ref", "main"])
    assert shown.strip() == outcome.told["digest"]
