"""A repository may want to see the plan first: nothing is coded before somebody types its hash."""

from __future__ import annotations

import re

import pytest

from tests.scenarios.town.town import GATED, Town

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_nothing_is_coded_before_the_plan_is_approved_by_its_hash(town: Town):
    here = town.at(GATED)
    issue = await here.ask("Add triple", "Please add calc.triple with a test.")
    said = await here.says(issue, "/agent approve ")
    found = re.search(r"/agent approve ([0-9a-f]{12})", said)
    assert found is not None
    assert "Add triple" in said
    asked = town.brain.heard(GATED)
    await here.rosa.comment(issue, "/agent approve 000000000000")
    await here.says(issue, "is not this plan's hash")
    await here.rudi.comment(issue, f"/agent approve {found[1]}")
    await here.quiet()
    assert town.brain.heard(GATED) == asked == 1
    await here.rosa.comment(issue, f"/agent approve {found[1]}")
    pull = await here.draft()
    assert pull["draft"] is True
    assert town.brain.heard(GATED) > asked
