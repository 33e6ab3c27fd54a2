"""What the checks leave to be seen is kept in the same repository, apart from the change, and linked from the pull request."""

from __future__ import annotations

import pytest

from tests.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")

SETTINGS = """test = "python -m pytest -q -p no:cacheprovider"
proof = '''mkdir -p /home/user/artefacts && cd /home/user/artefacts &&
printf '\\211PNG\\r\\n\\032\\nrest' > shot.png && echo fine > run.log && echo '<svg/>' > evil.svg && ln -s /etc/passwd link.txt'''
"""


async def test_a_screenshot_is_linked_and_is_no_part_of_the_change(here: World):
    await here.carl.push("main", ".github/pullwright.toml", SETTINGS, "Show how it looks")
    issue = await here.ask("Add triple", "Please add calc.triple with a test.")
    pull = await here.draft()
    assert "## What the checks show" in pull["body"]
    assert "[shot.png](" in pull["body"]
    assert "[run.log](" in pull["body"]
    assert "Not kept: `evil.svg`" in pull["body"]
    assert "link.txt" not in pull["body"]
    branch = f"agent/artefacts-{issue}-1"
    commit = await here.rosa.here("GET", f"/git/ref/heads/{branch}")
    record = await here.rosa.here("GET", f"/git/commits/{commit['object']['sha']}")
    assert record["parents"] == []
    tree = await here.rosa.here("GET", f"/git/trees/{record['tree']['sha']}")
    assert [one["path"] for one in tree["tree"]] == ["run.log", "shot.png"]
    assert f"/{here.repository}/blob/{record['sha']}/shot.png" in pull["body"]
    files = await here.rosa.here("GET", f"/pulls/{pull['number']}/files")
    assert sorted(one["filename"] for one in files) == ["calc.py", "test_calc.py"]
