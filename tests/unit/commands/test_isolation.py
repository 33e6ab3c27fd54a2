"""What an operator is told about the sandboxes of this machine, and what is not served without having been asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.commands.doctor import egress, isolation
from bot.commands.serve import admitted
from bot.domain.errors import UserError
from bot.sandboxd.serve import Endpoint
from bot.settings import Settings

LESS = "Limits on memory are not enforced by a control group."
FULL, WEAK = Endpoint("http://a", "http://s", "k"), Endpoint("http://a", "http://s", "k", LESS)


def test_weaker_sandboxes_are_served_only_when_that_was_asked_for_by_name():
    with pytest.raises(UserError) as refused:
        admitted(WEAK, weaker=False)
    assert str(refused.value.message) == LESS
    assert "PULLWRIGHT_WEAKER_ISOLATION=true" in refused.value.hint


def test_the_sentence_goes_along_to_every_approval_summary():
    assert admitted(WEAK, weaker=True).isolation == LESS
    assert admitted(FULL, weaker=True).isolation == admitted(FULL, weaker=False).isolation == ""


def test_the_level_is_told_in_words_and_blocks_when_it_is_less_than_it_should_be():
    full, blocked, weak = isolation("", weaker=False), isolation(LESS, weaker=False), isolation(LESS, weaker=True)
    assert "shares this machine's kernel" in full.state
    assert "bounded by control groups" in full.state
    assert (full.blocks, blocked.blocks, weak.blocks) == (False, True, False)
    assert "weaker" in blocked.state
    assert "weaker" in weak.state
    assert LESS in blocked.hint
    assert LESS in weak.hint
    assert "PULLWRIGHT_WEAKER_ISOLATION=true" in blocked.hint


@pytest.mark.parametrize(
    ("always", "setup", "said", "hint"),
    [
        ("", "", "closed", ""),
        ("files.example.org", "", "reach files.example.org", ""),
        ("", "mirror.example.org:8443", "during set-up also mirror.example.org:8443", ""),
        ("files.example.org, GitHub.com", "", "reach files.example.org, GitHub.com", "upload to github.com:443"),
        ("", "bucket.s3.amazonaws.com:443", "set-up", "upload to bucket.s3.amazonaws.com:443"),
        ("notgithub.com", "", "reach notgithub.com", ""),
    ],
)
def test_hosts_that_take_uploads_are_named(tmp_path: Path, always: str, setup: str, said: str, hint: str):
    found = egress(Settings(home=tmp_path, egress=always, setup_egress=setup))
    assert said in found.state
    assert hint in found.hint
    assert bool(found.hint) is bool(hint)
    assert not found.blocks


def test_an_entry_that_is_no_host_blocks(tmp_path: Path):
    assert egress(Settings(home=tmp_path, egress="*.example.org")).blocks
