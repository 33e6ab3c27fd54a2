"""The command as an operator runs it: a token, a file, no App's key; and the report of one day compared with the day before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from bot.audit.findings import Severity
from bot.commands.audit import audit, exit_code, told
from bot.emulators.github import IssueSeed
from bot.settings import Settings
from tests.attacks.audit_world import CLEAN
from tests.contracts.github_world import Hub, hub


def settings(world: Hub, home: Path) -> Settings:
    """Nothing but a token; sandboxes are E2B's, so that no local one is probed."""
    return Settings(
        home=home,
        github_api_url=world.endpoint.url,
        audit_token=world.token("octo-admin"),
        e2b_api_key="k",
    )


async def test_a_tidy_organisation_ends_with_zero_and_says_what_was_not_checked(tmp_path: Path):
    config = tmp_path / "audit.toml"
    config.write_text('allowed_apps = ["known"]\nagents = ["octo-agent"]\n')
    async with hub(CLEAN) as world:
        found = await audit(settings(world, tmp_path), "octo-org", config)
    assert (exit_code(found), found.findings) == (0, ())
    assert {one.check for one in found.not_checked} >= {"A4", "A6", "A7", "A9", "A13", "A14", "A16"}
    assert not (tmp_path / "pullwright.db").exists()


async def test_a_later_report_tells_what_changed_in_instructions(tmp_path: Path):
    last, config = tmp_path / "last.json", tmp_path / "audit.toml"
    config.write_text(f'allowed_apps = ["known"]\nlast_report = "{last}"\nenterprise_cloud = false\n')
    async with hub(CLEAN) as world:
        last.write_text(told(await audit(settings(world, tmp_path), "octo-org", None), as_json=True))
        same = await audit(settings(world, tmp_path), "octo-org", config)
        report = json.loads(last.read_text())
        report["instruction_files"]["octo-org/hello:AGENTS.md"] = "0" * 40
        last.write_text(json.dumps(report))
        changed = await audit(settings(world, tmp_path), "octo-org", config)
    assert same.findings == ()
    assert [(one.check, one.severity, one.target) for one in changed.findings] == [
        ("A5", Severity.LOW, "octo-org/hello:AGENTS.md")
    ]
    assert "A3" in {one.check for one in same.not_checked}


async def test_lists_longer_than_a_page_are_read_to_the_end(tmp_path: Path):
    shown = tuple(IssueSeed(f"{number}", "![x](https://example.org/x.png)", "octo-agent") for number in range(105))
    first, *others = CLEAN.seed.repositories
    full = replace(CLEAN, seed=replace(CLEAN.seed, repositories=(replace(first, issues=shown), *others)))
    config = tmp_path / "audit.toml"
    config.write_text('agents = ["octo-agent"]\nallowed_apps = ["known"]\n')
    async with hub(full) as world:
        found = await audit(settings(world, tmp_path), "octo-org", config)
    assert [one.check for one in found.findings] == ["A17"] * 105
