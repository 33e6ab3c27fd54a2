"""What the tests of a repository ask of the network is decided by the operator's list, and told where the change is judged."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.brains import FILES, StepBrain
from tests.world import world

ASKING = """test = '''curl -sS https://files.example.org/data https://other.example.org/data 2>&1
python -m pytest -q -p no:cacheprovider'''
"""


async def test_hosts_that_tests_ask_for_are_told_with_the_line_that_would_open_them(tmp_path: Path):
    files = {**FILES, ".github/pullwright.toml": ASKING}
    settings = {"PULLWRIGHT_EGRESS": "only.example.org:443"}
    async with world(StepBrain(), tmp_path, contents=files, settings=settings) as here:
        issue = await here.ask("Add triple", "Please add calc.triple with a test.")
        pull = await here.draft()
        for said in (pull["body"], await here.says(issue, "waits for a review")):
            assert "<summary>Network: 0 reached, 2 denied</summary>" in said
            for phase in ("the tests on the base", "the work on a step", "the full check"):
                assert f"- `other.example.org:443`: denied during {phase}" in said
            assert "adding it, such as `files.example.org:443`, to `PULLWRIGHT_EGRESS`" in said
        assert "only.example.org" not in pull["body"], "the list itself is the operator's"
