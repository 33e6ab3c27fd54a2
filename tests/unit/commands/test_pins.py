"""`pullwright pin`: what an operator uses is the commit that was named, then and later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.commands.pins import check, place, told
from bot.domain.errors import UserError
from bot.settings import Settings
from tests.unit.custody.local import Clone


@pytest.fixture
def upstream(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "upstream")
    clone.commit({"skill.md": "do this\n", "bin/run": "#!/bin/sh\n"})
    return clone


async def test_what_was_placed_is_told_and_checked_later(upstream: Clone, tmp_path: Path):
    where, at = str(upstream.path), tmp_path / "plugin"
    placed = await place(Settings(home=tmp_path / "home"), where, upstream.head(), at)
    assert placed == await check(Settings(home=tmp_path / "home"), where, upstream.head(), at)
    assert json.loads(told(placed, as_json=True))["tree"] == upstream.git("rev-parse", "HEAD^{tree}")
    (at / "skill.md").write_text("do that\n")
    with pytest.raises(UserError, match=r"pin_tampered.*place it again"):
        await check(Settings(home=tmp_path / "home"), where, upstream.head(), at)


async def test_a_file_that_came_later_is_found_although_it_is_hidden(upstream: Clone, tmp_path: Path):
    await place(Settings(home=tmp_path / "home"), str(upstream.path), upstream.head(), tmp_path / "plugin")
    (tmp_path / "plugin/.extra").write_text("more\n")
    with pytest.raises(UserError, match="pin_tampered"):
        await check(Settings(home=tmp_path / "home"), str(upstream.path), upstream.head(), tmp_path / "plugin")


async def test_a_short_id_and_a_disguised_ref_are_refused_with_what_to_do(upstream: Clone, tmp_path: Path):
    good = upstream.head()
    with pytest.raises(UserError, match="whole commit id"):
        await place(Settings(home=tmp_path / "home"), str(upstream.path), good[:10], tmp_path / "plugin")
    upstream.git("update-ref", f"refs/heads/{good}", upstream.commit({"skill.md": "evil\n"}))
    with pytest.raises(UserError, match="Do not use this upstream"):
        await place(Settings(home=tmp_path / "home"), str(upstream.path), good, tmp_path / "plugin")
    assert not (tmp_path / "plugin").exists()


@pytest.mark.parametrize(
    "repository", ["http://example.org/x", "ext::sh -c id", "--upload-pack=id", "no/such/place", "ssh://x/y"]
)
async def test_only_https_and_local_repositories_are_asked(repository: str, tmp_path: Path):
    with pytest.raises(UserError, match="neither an https address"):
        await place(Settings(home=tmp_path), repository, "0" * 40, tmp_path / "plugin")


async def test_a_directory_with_something_in_it_is_left_alone(upstream: Clone, tmp_path: Path):
    with pytest.raises(UserError, match="not an empty directory"):
        await place(Settings(home=tmp_path / "home"), str(upstream.path), upstream.head(), upstream.path)
